/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <math.h>
#include <stdio.h>

static const char *const names[KINDS] = {
    [EMBED] = "embed",
    [POSITIONS] = "positions",
    [NORM1] = "norm1",
    [QKV] = "qkv",
    [PROJECT] = "project",
    [NORM2] = "norm2",
    [UP] = "up",
    [DOWN] = "down",
    [NORM] = "norm",
    [HEAD] = "head",
};

static bool is_norm(enum kind kind)
{
    return kind == NORM1 || kind == NORM2 || kind == NORM;
}

/* Of layer norms: gains are 1, biases 0. `user`: the channels. */
static cadre_status gains(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)dtype;
    const int64_t channels = *(const int64_t *)user;
    float *value = values;
    for (int64_t i = 0; i < count; i++) {
        value[i] = i / channels % 2 == 0 ? 1 : 0;
    }
    return CADRE_OK;
}

static cadre_initializer initializer(
    const struct shape *shape, int64_t *channels, enum kind kind, uint64_t seed)
{
    if (is_norm(kind)) {
        return (cadre_initializer){
            .kind = CADRE_INITIALIZER_FUNCTION, .function = gains, .user = channels};
    }
    const double deviation = 0.5 / sqrt((double)shape->channels);
    /* What is added to the stream twice in each layer begins smaller, the more layers there are. */
    const bool adds = kind == PROJECT || kind == DOWN;
    return (cadre_initializer){.kind = CADRE_INITIALIZER_NORMAL,
        .stddev = adds ? deviation / sqrt(2.0 * (double)shape->layers) : deviation,
        .seed = seed};
}

cadre_status model_create(
    cadre_strategy *strategy, const struct shape *shape, uint64_t seed, struct model *ret_model)
{
    *ret_model = (struct model){.shape = *shape};
    for (enum kind kind = 0; kind < KINDS; kind++) {
        char name[64];
        int64_t dims[3];
        const uint32_t rank = shape_dims(shape, kind, dims);
        const cadre_variable_options options = {
            .initializer = initializer(shape, &ret_model->shape.channels, kind, seed)};
        CADRE_TRY(cadre_variable_create(
            strategy, names[kind], CADRE_F32, rank, dims, &options, &ret_model->weights[kind]));
        snprintf(name, sizeof name, "adamw/first/%s", names[kind]);
        CADRE_TRY(cadre_variable_create(
            strategy, name, CADRE_F32, rank, dims, NULL, &ret_model->first[kind]));
        snprintf(name, sizeof name, "adamw/second/%s", names[kind]);
        CADRE_TRY(cadre_variable_create(
            strategy, name, CADRE_F32, rank, dims, NULL, &ret_model->second[kind]));
    }
    return CADRE_OK;
}

int64_t model_weights(const struct shape *shape)
{
    int64_t count = 0;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        count += shape_count(shape, kind);
    }
    return count;
}

void model_update(const struct model *model, cadre_replica *replica, struct compute *compute,
    cadre_tensor *const slopes[KINDS])
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct adamw step = model->step;
        step.decay = is_norm(kind) ? 0 : step.decay;
        compute->does->adamw(compute, &step, shape_count(&model->shape, kind),
            cadre_variable_write(replica, model->weights[kind]),
            cadre_variable_write(replica, model->first[kind]),
            cadre_variable_write(replica, model->second[kind]),
            cadre_tensor_const_data(slopes[kind]));
    }
}
