/* SPDX-License-Identifier: Apache-2.0
 * Generation after generation in one process: a step that fails in the middle of a collective ends
 * the mesh with its communicators, and the next step has another one. Nothing is left of them: no
 * descriptor, no thread, no memory of a device, nothing page-locked. */
#include <dirent.h>
#include <stdlib.h>

#include "cadre/gpu.h"
#include "step_program.h"
#include "tests/gpu/standin/standin.h"
#include "tests/lib/test.h"

#define COUNT       3000
#define GENERATIONS 25 /* of each kind */
#define WARM        6  /* until all that is kept for reuse is there */

enum where { BEFORE, STARTED, AFTER }; /* of the collectives */

struct model {
    cadre_variable *weights;
    bool fails;
    enum where where;
    cadre_tensor *lent; /* to a collective that was started and not waited for */
};

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct model *model = user;
    const int64_t dims[1] = {COUNT};
    cadre_tensor *gradients[6];
    cadre_buckets *buckets;
    const cadre_bucket_options options = {.first_bytes = 4, .bucket_bytes = 2 * COUNT};
    (void)inputs;
    (void)outputs;
    bool fails = model->fails && cadre_replica_id(replica) == 1;
    if (fails && model->where == BEFORE) {
        return cadre_fail(CADRE_DATA_LOSS, "it is damaged");
    }
    if (fails && model->where == STARTED) {
        cadre_collective *handle;
        CADRE_TRY(step_vector(replica, CADRE_F32, 1, dims, &model->lent));
        CADRE_TRY(cadre_all_reduce_start(replica, CADRE_SUM, &model->lent, 1, NULL, &handle));
        return cadre_fail(CADRE_DATA_LOSS, "it is damaged");
    }
    cadre_status status = CADRE_OK;
    size_t count = 0;
    if (model->where == STARTED) {
        CADRE_TRY(step_vector(replica, CADRE_F32, 1, dims, &gradients[0]));
        status = cadre_all_reduce(replica, CADRE_SUM, gradients, 1, NULL);
        cadre_tensor_release(gradients[0]);
    }
    while (status == CADRE_OK && count < 6) {
        status = step_vector(replica, CADRE_F32, 1, dims, &gradients[count]);
        count += status == CADRE_OK ? 1 : 0;
    }
    if (status == CADRE_OK) {
        status = cadre_all_reduce(replica, CADRE_SUM, gradients, 6, NULL); /* packed */
    }
    if (status == CADRE_OK) {
        status = cadre_buckets_begin(replica, CADRE_MEAN, gradients, 6, &options, &buckets);
    }
    bool begun = status == CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < 6; i++) {
        status = cadre_buckets_ready(buckets, i);
    }
    if (begun) { /* they are borrowed until then */
        cadre_status waited = cadre_buckets_wait(buckets);
        status = status == CADRE_OK ? waited : status;
    }
    if (status == CADRE_OK && fails) {
        status = cadre_fail(CADRE_DATA_LOSS, "it is damaged");
    }
    if (status == CADRE_OK) {
        status = cadre_variable_assign(replica, model->weights, CADRE_ASSIGN_ADD, gradients[0]);
    }
    for (size_t i = 0; i < count; i++) {
        cadre_tensor_release(gradients[i]);
    }
    return status;
}

/* --- what there is --- */

struct held {
    size_t descriptors;
    size_t threads;
    size_t bytes;
    size_t blocks;
    size_t pinned;
};

static size_t entries(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t count = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static struct held look(void)
{
    struct held held = {.descriptors = entries("/proc/self/fd"),
        .threads = entries("/proc/self/task"),
        .pinned = standin_pinned_blocks()};
    for (int i = 0; i < STEP_REPLICAS; i++) {
        held.bytes += standin_memory_used(i);
        held.blocks += standin_memory_blocks(i);
    }
    return held;
}

/* What ends by itself soon may still be there. */
static bool has_not_grown(void *user)
{
    const struct held *before = user;
    struct held now = look();
    return now.descriptors <= before->descriptors && now.threads <= before->threads &&
           now.bytes <= before->bytes && now.blocks <= before->blocks &&
           now.pinned <= before->pinned;
}

static void check_generations(enum where where)
{
    struct model model = {.where = where};
    struct held before = {0};
    const int64_t dims[1] = {COUNT};
    cadre_strategy *strategy = step_strategy_gpus();
    assert_public_ok(
        cadre_variable_create(strategy, "weights", CADRE_F32, 1, dims, NULL, &model.weights));
    uint64_t begun = standin_calls("ncclCommInitRankConfig");
    for (int i = 0; i < GENERATIONS; i++) {
        model.fails = true;
        assert_int_equal(cadre_run(strategy, step, &model, NULL, 0, NULL), CADRE_DATA_LOSS);
        cadre_tensor_release(model.lent);
        model.lent = NULL;
        model.fails = false;
        assert_public_ok(cadre_run(strategy, step, &model, NULL, 0, NULL));
        if (i == WARM) {
            before = look();
        }
    }
    uint64_t formed = standin_calls("ncclCommInitRankConfig") - begun;
    assert_true(!step_connected || formed >= GENERATIONS);
    if (!test_wait(has_not_grown, &before, UINT64_C(10000000))) {
        struct held now = look();
        fail_msg("descriptors %zu -> %zu, threads %zu -> %zu, bytes on devices %zu -> %zu in %zu "
                 "-> %zu blocks, page-locked blocks %zu -> %zu",
            before.descriptors, now.descriptors, before.threads, now.threads, before.bytes,
            now.bytes, before.blocks, now.blocks, before.pinned, now.pinned);
    }
    /* Each step that counted, once. */
    const float *weights = cadre_variable_read(NULL, model.weights);
    assert_non_null(weights);
    assert_true(weights[2] == GENERATIONS * (2.5F + 4.5F));
    cadre_strategy_release(strategy);
}

static void nothing_is_left_of_a_generation(void **state)
{
    (void)state;
    check_generations(BEFORE);
    check_generations(STARTED);
    check_generations(AFTER);
}

int main(int argc, char **argv)
{
    step_program_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_of_a_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
