/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <math.h>

/* --- what is to be learned --- */

static float true_weight(int k)
{
    return (float)(k - FEATURES / 2) / 4;
}

/* A feature of a sample, the same each time: in [-1, 1). */
static float feature(int64_t sample, int k)
{
    uint64_t bits = (uint64_t)(sample * FEATURES + k + 1) * UINT64_C(0x9E3779B97F4A7C15);
    bits ^= bits >> 29;
    return (float)((bits * UINT64_C(0xBF58476D1CE4E5B9)) >> 40) / (float)(1 << 23) - 1;
}

static cadre_status make_sample(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t sample = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    float x[FEATURES];
    float y = 1;
    const int64_t dims[1] = {FEATURES};
    for (int k = 0; k < FEATURES; k++) {
        x[k] = feature(sample, k);
        y += x[k] * true_weight(k);
    }
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, x, &ret_out->tensors[0]));
    ret_out->count = 1;
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 0, NULL, &y, &ret_out->tensors[1]));
    ret_out->count = 2;
    return CADRE_OK;
}

cadre_dataset *model_data(bool endless)
{
    cadre_dataset *data = cadre_dataset_range(0, SAMPLES, 1);
    if (endless) {
        data = cadre_dataset_repeat(data, -1);
    }
    return cadre_dataset_batch(cadre_dataset_map(data, make_sample, NULL, NULL), BATCH, false);
}

/* --- the model --- */

cadre_status model_open(cadre_strategy *strategy, struct model *ret_model)
{
    static const int64_t weights[1] = {FEATURES};
    static const int64_t bias[1] = {1};
    static const cadre_optimizer_options adam = {.kind = CADRE_OPTIMIZER_ADAM, .rate = 0.05};
    *ret_model = (struct model){0};
    CADRE_TRY(cadre_variable_create(
        strategy, "weights", CADRE_F32, 1, weights, NULL, &ret_model->weights));
    CADRE_TRY(cadre_variable_create(strategy, "bias", CADRE_F32, 1, bias, NULL, &ret_model->bias));
    CADRE_TRY(cadre_optimizer_create(strategy, &adam, &ret_model->optimizer));
    return cadre_optimizer_build(
        ret_model->optimizer, (cadre_variable *[]){ret_model->weights, ret_model->bias}, 2);
}

void model_close(struct model *model)
{
    cadre_optimizer_release(model->optimizer);
}

/* Of the squared error, over the whole batch of all replicas. */
static void gradients_of(cadre_replica *replica, cadre_tensor *const inputs[], const float *weights,
    float bias, float slopes[FEATURES + 1])
{
    const float *x = cadre_tensor_const_data(inputs[0]);
    const float *y = cadre_tensor_const_data(inputs[1]);
    float whole = (float)cadre_replica_global_rows(replica);
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[1]); i++, x += FEATURES) {
        float error = bias - y[i];
        for (int k = 0; k < FEATURES; k++) {
            error += x[k] * weights[k];
        }
        for (int k = 0; k < FEATURES; k++) {
            slopes[k] += 2 * error * x[k] / whole;
        }
        slopes[FEATURES] += 2 * error / whole;
    }
}

cadre_status model_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct model *model = user;
    const int64_t dims[2] = {FEATURES, 1};
    float slopes[FEATURES + 1] = {0};
    CADRE_RELEASE_AT_EXIT(tensor) weights = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) bias = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) of_weights = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) of_bias = NULL;
    (void)outputs;
    CADRE_TRY(cadre_variable_value(replica, model->weights, NULL, &weights));
    CADRE_TRY(cadre_variable_value(replica, model->bias, NULL, &bias));
    gradients_of(replica, inputs, cadre_tensor_const_data(weights),
        *(const float *)cadre_tensor_const_data(bias), slopes);
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, &dims[0], slopes, &of_weights));
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, &dims[1], &slopes[FEATURES], &of_bias));
    return cadre_optimizer_apply(replica, model->optimizer, (cadre_tensor *[]){of_weights, of_bias},
        (cadre_variable *[]){model->weights, model->bias}, 2, NULL);
}

cadre_status model_distance(const struct model *model, double *ret_distance)
{
    CADRE_RELEASE_AT_EXIT(tensor) weights = NULL;
    *ret_distance = 0;
    CADRE_TRY(cadre_variable_value(NULL, model->weights, NULL, &weights));
    for (int k = 0; k < FEATURES; k++) {
        const float *values = cadre_tensor_const_data(weights);
        *ret_distance += fabs((double)values[k] - (double)true_weight(k)) / FEATURES;
    }
    return CADRE_OK;
}
