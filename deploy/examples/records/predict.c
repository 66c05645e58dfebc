/* SPDX-License-Identifier: Apache-2.0 */
#include "predict.h"

#include <inttypes.h>

/* A replica has some rows of the batch. Each result goes into a tensor as long as the batch, at a
 * place that depends on the record's number alone, with zeros around it: the sum over all replicas
 * is then the results of the whole batch. The numbers travel beside them, from 1; 0 is no record.
 */
static cadre_status predict_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const int64_t places[1] = {PREDICT_BATCH};
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, places, &outputs[0]));
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, places, &outputs[1]));
    int64_t *digits = cadre_tensor_data(outputs[0]);
    int64_t *marks = cadre_tensor_data(outputs[1]);
    const float *images = cadre_tensor_const_data(inputs[0]);
    const int64_t *numbers = cadre_tensor_const_data(inputs[2]);
    for (int64_t row = 0; row < cadre_tensor_rows(inputs[0]); row++) {
        float odds[CLASSES];
        int64_t slot = numbers[row] % PREDICT_BATCH;
        digits[slot] = model_classify(user, replica, images + row * PIXELS, odds);
        marks[slot] = numbers[row] + 1;
    }
    return CADRE_OK;
}

/* Puts a batch's results where they belong. */
static cadre_status put(const int64_t *digits, const int64_t *marks, struct predictions *into)
{
    for (int64_t slot = 0; slot < PREDICT_BATCH; slot++) {
        if (marks[slot] > PREDICTIONS_MAX) {
            return cadre_fail(CADRE_RESOURCE_EXHAUSTED,
                "record %" PRId64 " is one too many; there is room for %d predictions",
                marks[slot] - 1, PREDICTIONS_MAX);
        }
        if (marks[slot] > 0) {
            into->digits[marks[slot] - 1] = (char)('0' + digits[slot]);
            into->count++;
        }
    }
    return CADRE_OK;
}

void predict(cadre_strategy *strategy, cadre_distributed_dataset *data, struct model *model,
    struct predictions *ret_predictions)
{
    cadre_per_replica *batch;
    cadre_per_replica *outputs[2];
    if (!cadre_next_epoch(data, 1, NULL)) {
        return; /* done before, or an error: cadre_finish says it */
    }
    while (cadre_next(data, &batch) == CADRE_OK) {
        cadre_tensor *digits;
        cadre_tensor *marks;
        CADRE_CHECK(cadre_run(strategy, predict_step, model, batch, 2, outputs));
        CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, outputs[0], CADRE_AXIS_NONE, &digits));
        CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, outputs[1], CADRE_AXIS_NONE, &marks));
        CADRE_CHECK(
            put(cadre_tensor_const_data(digits), cadre_tensor_const_data(marks), ret_predictions));
        cadre_tensor_release(digits);
        cadre_tensor_release(marks);
    }
    CADRE_CHECK(cadre_distributed_status(data));
}
