/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const names[PARAMETERS] = {"w", "b"};
static const uint32_t ranks[PARAMETERS] = {2, 1};
static const int64_t shapes[PARAMETERS][2] = {{PIXELS, CLASSES}, {CLASSES, 0}};

cadre_status model_create(cadre_strategy *strategy, struct model *ret_model)
{
    for (int i = 0; i < PARAMETERS; i++) {
        CADRE_TRY(cadre_variable_create(
            strategy, names[i], CADRE_F32, ranks[i], shapes[i], NULL, &ret_model->weights[i]));
    }
    return CADRE_OK;
}

int64_t model_classify(const struct model *model, const cadre_replica *replica, const float *image,
    float ret_odds[CLASSES])
{
    const float *w = cadre_variable_read(replica, model->weights[0]);
    const float *b = cadre_variable_read(replica, model->weights[1]);
    memcpy(ret_odds, b, CLASSES * sizeof *b);
    for (int p = 0; p < PIXELS; p++) {
        for (int c = 0; c < CLASSES; c++) {
            ret_odds[c] += image[p] * w[p * CLASSES + c];
        }
    }
    int best = 0;
    for (int c = 1; c < CLASSES; c++) {
        best = ret_odds[c] > ret_odds[best] ? c : best;
    }
    float most = ret_odds[best];
    float sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        ret_odds[c] = expf(ret_odds[c] - most); /* no number too large for a float */
        sum += ret_odds[c];
    }
    for (int c = 0; c < CLASSES; c++) {
        ret_odds[c] /= sum;
    }
    return best;
}

/* Adds the gradient of one image's loss, which is returned. */
static float add_gradient(const struct model *model, const cadre_replica *replica,
    const float *image, int64_t label, float *w, float *b)
{
    float odds[CLASSES];
    model_classify(model, replica, image, odds);
    float loss = -logf(fmaxf(odds[label], 1e-30f));
    odds[label] -= 1; /* now the slope of the loss along each class's input */
    for (int p = 0; p < PIXELS; p++) {
        for (int c = 0; c < CLASSES; c++) {
            w[p * CLASSES + c] += image[p] * odds[c];
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        b[c] += odds[c];
    }
    return loss;
}

cadre_status model_gradients(const struct model *model, const cadre_replica *replica,
    const cadre_tensor *images, const cadre_tensor *labels, cadre_tensor *ret_gradients[PARAMETERS],
    float *ret_loss)
{
    const float *image = cadre_tensor_const_data(images);
    const int64_t *label = cadre_tensor_const_data(labels);
    int64_t rows = cadre_tensor_rows(images);
    for (int64_t row = 0; row < rows; row++) {
        if (label[row] < 0 || label[row] >= CLASSES) {
            return cadre_fail(CADRE_DATA_LOSS,
                "label %" PRId64 " is none of the %d classes; make the records again", label[row],
                CLASSES);
        }
    }
    CADRE_TRY(cadre_tensor_create(CADRE_F32, ranks[0], shapes[0], &ret_gradients[0]));
    cadre_status status = cadre_tensor_create(CADRE_F32, ranks[1], shapes[1], &ret_gradients[1]);
    if (status != CADRE_OK) {
        cadre_tensor_release(ret_gradients[0]);
        return status;
    }
    *ret_loss = 0;
    for (int64_t row = 0; row < rows; row++) {
        *ret_loss += add_gradient(model, replica, image + row * PIXELS, label[row],
            cadre_tensor_data(ret_gradients[0]), cadre_tensor_data(ret_gradients[1]));
    }
    return CADRE_OK;
}

cadre_status model_update(const struct model *model, cadre_replica *replica,
    cadre_tensor *const gradients[PARAMETERS], float scale)
{
    for (int i = 0; i < PARAMETERS; i++) {
        float *weight = cadre_variable_write(replica, model->weights[i]);
        const float *slope = cadre_tensor_const_data(gradients[i]);
        if (weight == NULL) {
            return CADRE_RESOURCE_EXHAUSTED; /* the library left the message */
        }
        for (int64_t k = 0; k < cadre_variable_count(model->weights[i]); k++) {
            weight[k] -= model->learning_rate * scale * slope[k];
        }
    }
    return CADRE_OK;
}
