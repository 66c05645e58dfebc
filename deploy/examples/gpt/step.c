/* SPDX-License-Identifier: Apache-2.0 */
#include "step.h"

#include <math.h>

static cadre_status space_of(
    struct training *training, cadre_replica *replica, struct space **ret_space)
{
    const struct settings *settings = training->settings;
    struct space *space = &training->spaces[cadre_replica_local_id(replica)];
    *ret_space = space;
    CADRE_TRY(space_create(replica, &training->model, settings->precision, space));
    return settings->ceiling && space->ceiling == 0 ? space_measure(replica, space) : CADRE_OK;
}

/* --- training --- */

/* When the step cannot fail any more: no copy of the old weights is made. */
static void update(cadre_replica *replica, void *user)
{
    struct training *training = user;
    const struct space *space = &training->spaces[cadre_replica_local_id(replica)];
    model_update(&training->model, replica, space->compute, space->slopes);
}

static cadre_status ready(cadre_buckets *buckets, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(cadre_buckets_ready(buckets, first + i));
    }
    return CADRE_OK;
}

/* A replica without rows has nothing to add. */
static cadre_status nothing(struct space *space, cadre_buckets *buckets)
{
    const struct operations *does = space->compute->does;
    does->zero(space->compute, 1, cadre_tensor_data(space->loss));
    for (enum kind kind = 0; kind < KINDS; kind++) {
        does->zero(space->compute, cadre_tensor_count(space->slopes[kind]),
            cadre_tensor_data(space->slopes[kind]));
    }
    return ready(buckets, 0, space->travelling_count);
}

/* Forward and back; what is done with goes to the other replicas meanwhile. */
static cadre_status learn(
    const struct pass *pass, float scale, struct space *space, cadre_buckets *buckets)
{
    const struct shape *shape = pass->shape;
    network_forward(pass);
    network_loss(pass, scale, cadre_tensor_data(space->loss));
    network_back_head(pass);
    CADRE_TRY(ready(buckets, 0, travelling_layer(shape, shape->layers - 1)));
    for (int64_t layer = shape->layers - 1; layer >= 0; layer--) {
        network_back_layer(pass, layer);
        CADRE_TRY(ready(buckets, travelling_layer(shape, layer), LAYER_KINDS));
    }
    network_back_embedding(pass);
    return ready(buckets, travelling_embedding(shape), 2);
}

cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct training *training = user;
    struct space *space;
    struct pass pass;
    cadre_buckets *buckets;
    CADRE_TRY(space_of(training, replica, &space));
    CADRE_TRY(space_pass(replica, &training->model, space, inputs[0], &pass));
    CADRE_TRY(cadre_buckets_begin(
        replica, CADRE_SUM, space->travelling, space->travelling_count, NULL, &buckets));
    const int64_t bytes = cadre_replica_global_rows(replica) * pass.shape->length;
    CADRE_TRY(pass.windows.rows > 0 ? learn(&pass, 1 / (float)bytes, space, buckets)
                                    : nothing(space, buckets));
    CADRE_TRY(cadre_buckets_wait(buckets));
    CADRE_TRY(compute_status(space->compute));
    CADRE_TRY(cadre_on_apply(replica, update, training));
    return cadre_tensor_copy_to(replica, space->loss, &outputs[0]);
}

cadre_status test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct training *training = user;
    struct space *space;
    struct pass pass;
    CADRE_TRY(space_of(training, replica, &space));
    CADRE_TRY(space_pass(replica, &training->model, space, inputs[0], &pass));
    if (pass.windows.rows > 0) {
        network_forward(&pass);
        network_loss(&pass, 1, cadre_tensor_data(space->loss));
    } else {
        space->compute->does->zero(space->compute, 1, cadre_tensor_data(space->loss));
    }
    CADRE_TRY(compute_status(space->compute));
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &space->loss, 1, NULL));
    return cadre_tensor_copy_to(replica, space->loss, &outputs[0]);
}

/* --- writing --- */

/* The scores of what comes behind byte `last` of the window, on the host: f32 [VOCABULARY]. */
static cadre_status scores_behind(cadre_replica *replica, struct training *training,
    const cadre_tensor *window, int64_t last, cadre_tensor **ret_scores)
{
    struct space *space;
    struct pass pass;
    CADRE_RELEASE_AT_EXIT(tensor) there = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) view = NULL;
    CADRE_TRY(space_of(training, replica, &space));
    CADRE_TRY(cadre_tensor_copy_to(replica, window, &there));
    CADRE_TRY(space_pass(replica, &training->model, space, there, &pass));
    network_forward(&pass);
    CADRE_TRY(compute_status(space->compute));
    const float *scores = pass.scores + last * VOCABULARY;
    CADRE_TRY(cadre_tensor_view_rows(
        space->room, scores - (float *)cadre_tensor_data(space->room), VOCABULARY, &view));
    return cadre_tensor_copy_to_host(view, ret_scores);
}

/* A byte by its odds, which are the sharper the colder it is. */
static uint8_t choose(const float *scores, float temperature, double drawn)
{
    int best = 0;
    for (int v = 1; v < VOCABULARY; v++) {
        best = scores[v] > scores[best] ? v : best;
    }
    if (!(temperature > 0)) {
        return (uint8_t)best;
    }
    double odds[VOCABULARY];
    double sum = 0;
    for (int v = 0; v < VOCABULARY; v++) {
        odds[v] = exp((double)((scores[v] - scores[best]) / temperature));
        sum += odds[v];
    }
    double rest = drawn * sum;
    for (int v = 0; v < VOCABULARY; v++) {
        rest -= odds[v];
        if (rest < 0) {
            return (uint8_t)v;
        }
    }
    return (uint8_t)best;
}

/* Byte after byte: the window holds the newest, behind an end of line as a beginning. */
static cadre_status write_text(cadre_replica *replica, struct training *training,
    cadre_tensor *window, uint8_t *text, int64_t count)
{
    const int64_t length = training->model.shape.length;
    uint8_t *seen = cadre_tensor_data(window);
    int64_t last = 0;
    cadre_random random;
    CADRE_TRY(cadre_random_for_sample(training->settings->seed, "sample", 0, 0, &random));
    seen[0] = '\n';
    for (int64_t i = 0; i < count; i++) {
        cadre_tensor *scores;
        CADRE_TRY(scores_behind(replica, training, window, last, &scores));
        text[i] = choose(cadre_tensor_const_data(scores), training->settings->temperature,
            cadre_random_f64(&random));
        cadre_tensor_release(scores);
        if (last + 1 == length) {
            for (int64_t t = 0; t < last; t++) {
                seen[t] = seen[t + 1];
            }
        } else {
            last++;
        }
        seen[last] = text[i];
    }
    return CADRE_OK;
}

cadre_status sample_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    struct training *training = user;
    const int64_t count = training->settings->sample;
    CADRE_TRY(cadre_tensor_create(CADRE_U8, 1, &count, &outputs[0]));
    if (cadre_replica_id(replica) != 0) {
        return CADRE_OK;
    }
    CADRE_RELEASE_AT_EXIT(tensor) window = NULL;
    const int64_t dims[2] = {1, training->model.shape.length + 1};
    CADRE_TRY(cadre_tensor_create(CADRE_U8, 2, dims, &window));
    return write_text(replica, training, window, cadre_tensor_data(outputs[0]), count);
}
