/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <math.h>
#include <string.h>

static const char *const names[PARAMETERS] = {"w1", "b1", "w2", "b2"};
static const uint32_t ranks[PARAMETERS] = {2, 1, 2, 1};
static const int64_t shapes[PARAMETERS][2] = {
    {PIXELS, HIDDEN}, {HIDDEN, 0}, {HIDDEN, CLASSES}, {CLASSES, 0}};
static const int inputs_of[PARAMETERS] = {PIXELS, 0, HIDDEN, 0}; /* 0: a bias, starts at zero */

cadre_status model_create(cadre_strategy *strategy, uint64_t seed, double learning_rate,
    uint64_t steps, struct model *ret_model)
{
    const cadre_optimizer_options descent = {.kind = CADRE_OPTIMIZER_MOMENTUM,
        .rate = learning_rate,
        .momentum = 0.9,
        .schedule = {.kind = CADRE_RATE_POLYNOMIAL, .decay_steps = steps}};
    for (int i = 0; i < PARAMETERS; i++) {
        cadre_variable_options options = {0};
        if (inputs_of[i] > 0) {
            options.initializer.kind = CADRE_INITIALIZER_NORMAL;
            options.initializer.stddev = sqrt(2.0 / inputs_of[i]);
            options.initializer.seed = seed;
        }
        CADRE_TRY(cadre_variable_create(
            strategy, names[i], CADRE_F32, ranks[i], shapes[i], &options, &ret_model->weights[i]));
    }
    return cadre_optimizer_create(strategy, &descent, &ret_model->optimizer);
}

cadre_status gradients_create(const struct model *model, struct gradients *ret_gradients)
{
    memset(ret_gradients, 0, sizeof *ret_gradients);
    for (int i = 0; i < PARAMETERS; i++) {
        const cadre_variable *weight = model->weights[i];
        cadre_status status = cadre_tensor_create(CADRE_F32, cadre_variable_rank(weight),
            cadre_variable_dims(weight), &ret_gradients->tensors[i]);
        if (status != CADRE_OK) {
            gradients_release(ret_gradients);
            return status;
        }
    }
    return CADRE_OK;
}

void gradients_release(struct gradients *gradients)
{
    for (int i = 0; i < PARAMETERS; i++) {
        cadre_tensor_release(gradients->tensors[i]);
        gradients->tensors[i] = NULL;
    }
}

/* One image through both layers: `hidden` after the rectifier, `odds` of the classes. */
static void forward(
    const float *const weights[PARAMETERS], const float *image, float *hidden, float *odds)
{
    memcpy(hidden, weights[1], HIDDEN * sizeof *hidden);
    for (int p = 0; p < PIXELS; p++) {
        for (int h = 0; h < HIDDEN; h++) {
            hidden[h] += image[p] * weights[0][p * HIDDEN + h];
        }
    }
    memcpy(odds, weights[3], CLASSES * sizeof *odds);
    for (int h = 0; h < HIDDEN; h++) {
        hidden[h] = hidden[h] > 0 ? hidden[h] : 0;
        for (int c = 0; c < CLASSES; c++) {
            odds[c] += hidden[h] * weights[2][h * CLASSES + c];
        }
    }
    float top = odds[0];
    for (int c = 1; c < CLASSES; c++) {
        top = odds[c] > top ? odds[c] : top;
    }
    float sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        odds[c] = expf(odds[c] - top);
        sum += odds[c];
    }
    for (int c = 0; c < CLASSES; c++) {
        odds[c] /= sum;
    }
}

/* `error` is the gradient of the loss by the classes' scores: odds minus the right answer. */
static void backward(const float *const weights[PARAMETERS], const float *image,
    const float *hidden, const float *error, float *const slopes[PARAMETERS])
{
    float hidden_error[HIDDEN];
    for (int h = 0; h < HIDDEN; h++) {
        float sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            slopes[2][h * CLASSES + c] += hidden[h] * error[c];
            sum += weights[2][h * CLASSES + c] * error[c];
        }
        hidden_error[h] = hidden[h] > 0 ? sum : 0;
        slopes[1][h] += hidden_error[h];
    }
    for (int c = 0; c < CLASSES; c++) {
        slopes[3][c] += error[c];
    }
    for (int p = 0; p < PIXELS; p++) {
        for (int h = 0; h < HIDDEN; h++) {
            slopes[0][p * HIDDEN + h] += image[p] * hidden_error[h];
        }
    }
}

struct score model_run(const struct model *model, const cadre_replica *replica, const float *images,
    const int32_t *labels, int64_t rows, float scale, struct gradients *gradients)
{
    const float *weights[PARAMETERS];
    float *slopes[PARAMETERS] = {NULL};
    for (int i = 0; i < PARAMETERS; i++) {
        weights[i] = cadre_variable_read(replica, model->weights[i]);
        slopes[i] = gradients == NULL ? NULL : cadre_tensor_data(gradients->tensors[i]);
    }
    struct score score = {0, 0};
    for (int64_t row = 0; row < rows; row++) {
        const float *image = images + row * PIXELS;
        int32_t label = labels[row];
        float hidden[HIDDEN];
        float odds[CLASSES];
        forward(weights, image, hidden, odds);
        int best = 0;
        for (int c = 1; c < CLASSES; c++) {
            best = odds[c] > odds[best] ? c : best;
        }
        score.right += best == label;
        score.loss -= logf(odds[label] > 1e-30f ? odds[label] : 1e-30f);
        if (gradients != NULL) {
            odds[label] -= 1;
            for (int c = 0; c < CLASSES; c++) {
                odds[c] *= scale;
            }
            backward(weights, image, hidden, odds, slopes);
        }
    }
    return score;
}
