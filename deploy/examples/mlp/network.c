/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const part_names[PARAMETERS] = {"weights", "biases"};

static blasint size(int64_t count)
{
    return (blasint)count; /* at most a few thousand */
}

cadre_status network_create(cadre_strategy *strategy, const struct preset *preset, uint64_t seed,
    struct network *ret_network)
{
    ret_network->preset = preset;
    for (int layer = 0; layer < LAYERS; layer++) {
        const double span = 1 / sqrt((double)preset->widths[layer]);
        const cadre_variable_options drawn = {
            .initializer = {
                .kind = CADRE_INITIALIZER_UNIFORM, .low = -span, .high = span, .seed = seed}};
        for (int part = 0; part < PARAMETERS; part++) {
            char name[32];
            char momentum[48];
            snprintf(name, sizeof name, "layer%d/%s", layer + 1, part_names[part]);
            snprintf(momentum, sizeof momentum, "momentum/%s", name);
            const int64_t *dims = &preset->widths[layer + part]; /* of biases the second alone */
            const uint32_t rank = part == WEIGHTS ? 2 : 1;
            CADRE_TRY(cadre_variable_create(
                strategy, name, CADRE_F32, rank, dims, &drawn, &ret_network->values[layer][part]));
            CADRE_TRY(cadre_variable_create(strategy, momentum, CADRE_F32, rank, dims, NULL,
                &ret_network->momenta[layer][part]));
        }
    }
    return CADRE_OK;
}

/* --- workspaces --- */

static cadre_status floats_of(int64_t count, float **ret_floats)
{
    *ret_floats = aligned_alloc(64, ((size_t)count * sizeof(float) + 63) / 64 * 64);
    return *ret_floats != NULL ? CADRE_OK
                               : cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory for %lld numbers",
                                     (long long)count);
}

cadre_status workspace_create(const struct network *network, struct workspace *ret_space)
{
    const struct preset *preset = network->preset;
    cadre_status status = cadre_tensor_create(CADRE_F32, 0, NULL, &ret_space->loss);
    for (int layer = 0; layer < LAYERS && status == CADRE_OK; layer++) {
        const int64_t count = preset->batch * preset->widths[layer + 1];
        for (int part = 0; part < PARAMETERS && status == CADRE_OK; part++) {
            const cadre_variable *of = network->values[layer][part];
            status = cadre_tensor_create(CADRE_F32, cadre_variable_rank(of),
                cadre_variable_dims(of), &ret_space->slopes[layer][part]);
        }
        if (status == CADRE_OK) {
            status = floats_of(count, &ret_space->outputs[layer]);
        }
        if (status == CADRE_OK) {
            status = floats_of(count, &ret_space->errors[layer]);
        }
    }
    if (status != CADRE_OK) {
        workspace_free(ret_space);
    }
    return status;
}

void workspace_free(struct workspace *space)
{
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int part = 0; part < PARAMETERS; part++) {
            cadre_tensor_release(space->slopes[layer][part]);
        }
        free(space->outputs[layer]);
        free(space->errors[layer]);
    }
    cadre_tensor_release(space->loss);
    memset(space, 0, sizeof *space);
}

/* --- the passes --- */

static void add_biases(
    float *restrict rows, int64_t count, const float *restrict biases, int64_t width, bool rectify)
{
    for (int64_t row = 0; row < count; row++) {
        float *restrict out = rows + row * width;
        for (int64_t n = 0; n < width; n++) {
            float sum = out[n] + biases[n];
            out[n] = rectify && !(sum > 0) ? 0 : sum;
        }
    }
}

void network_forward(const struct network *network, const cadre_replica *replica,
    const cadre_tensor *images, struct workspace *space)
{
    space->rows = cadre_tensor_rows(images);
    space->activations[0] = cadre_tensor_const_data(images);
    for (int layer = 0; layer < LAYERS; layer++) {
        const int64_t in = network->preset->widths[layer];
        const int64_t out = network->preset->widths[layer + 1];
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size(space->rows), size(out),
            size(in), 1, space->activations[layer], size(in),
            cadre_variable_read(replica, network->values[layer][WEIGHTS]), size(out), 0,
            space->outputs[layer], size(out));
        add_biases(space->outputs[layer], space->rows,
            cadre_variable_read(replica, network->values[layer][BIASES]), out, layer + 1 < LAYERS);
        space->activations[layer + 1] = space->outputs[layer];
    }
}

/* Softmax and cross entropy of one row; returns its loss. */
static float row_loss(
    const float *scores, int64_t classes, int32_t label, float scale, float *errors)
{
    float top = scores[0];
    float sum = 0;
    for (int64_t c = 1; c < classes; c++) {
        top = scores[c] > top ? scores[c] : top;
    }
    for (int64_t c = 0; c < classes; c++) {
        errors[c] = expf(scores[c] - top);
        sum += errors[c];
    }
    for (int64_t c = 0; c < classes; c++) {
        errors[c] = (errors[c] / sum - (c == label ? 1.0f : 0.0f)) * scale;
    }
    return logf(sum) + top - scores[label];
}

void network_loss(const struct network *network, const cadre_replica *replica,
    const cadre_tensor *labels, struct workspace *space)
{
    const int64_t classes = network->preset->widths[LAYERS];
    const int32_t *label = cadre_tensor_const_data(labels);
    const float scale = 1 / (float)cadre_replica_global_rows(replica);
    float loss = 0;
    for (int64_t row = 0; row < space->rows; row++) {
        loss += row_loss(space->outputs[LAYERS - 1] + row * classes, classes, label[row], scale,
            space->errors[LAYERS - 1] + row * classes);
    }
    *(float *)cadre_tensor_data(space->loss) = loss * scale;
}

int64_t network_right(
    const struct network *network, const cadre_tensor *labels, const struct workspace *space)
{
    const int64_t classes = network->preset->widths[LAYERS];
    const int32_t *label = cadre_tensor_const_data(labels);
    int64_t right = 0;
    for (int64_t row = 0; row < space->rows; row++) {
        const float *scores = space->outputs[LAYERS - 1] + row * classes;
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++) {
            best = scores[c] > scores[best] ? c : best;
        }
        right += best == label[row];
    }
    return right;
}

void network_slopes(const struct network *network, int layer, struct workspace *space)
{
    const int64_t in = network->preset->widths[layer];
    const int64_t out = network->preset->widths[layer + 1];
    const float *errors = space->errors[layer];
    float *biases = cadre_tensor_data(space->slopes[layer][BIASES]);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, size(in), size(out), size(space->rows), 1,
        space->activations[layer], size(in), errors, size(out), 0,
        cadre_tensor_data(space->slopes[layer][WEIGHTS]), size(out));
    memset(biases, 0, (size_t)out * sizeof *biases);
    for (int64_t row = 0; row < space->rows; row++) {
        for (int64_t n = 0; n < out; n++) {
            biases[n] += errors[row * out + n];
        }
    }
}

void network_pass_back(
    const struct network *network, const cadre_replica *replica, int layer, struct workspace *space)
{
    const int64_t in = network->preset->widths[layer];
    const int64_t out = network->preset->widths[layer + 1];
    float *restrict errors = space->errors[layer - 1];
    const float *restrict activations = space->activations[layer];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size(space->rows), size(in), size(out), 1,
        space->errors[layer], size(out),
        cadre_variable_read(replica, network->values[layer][WEIGHTS]), size(out), 0, errors,
        size(in));
    for (int64_t i = 0; i < space->rows * in; i++) {
        errors[i] = activations[i] > 0 ? errors[i] : 0;
    }
}

/* --- the update --- */

static void descend(float *restrict values, float *restrict momenta, const float *restrict slopes,
    int64_t count, float momentum, float rate)
{
    for (int64_t i = 0; i < count; i++) {
        momenta[i] = momentum * momenta[i] + slopes[i];
        values[i] -= rate * momenta[i];
    }
}

void network_update(struct network *network, cadre_replica *replica, const struct workspace *space)
{
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int part = 0; part < PARAMETERS; part++) {
            cadre_variable *variable = network->values[layer][part];
            float *values = cadre_variable_write(replica, variable);
            float *momenta = cadre_variable_write(replica, network->momenta[layer][part]);
            descend(values, momenta, cadre_tensor_const_data(space->slopes[layer][part]),
                cadre_variable_count(variable), network->momentum, network->learning_rate);
        }
    }
}
