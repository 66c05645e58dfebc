/* SPDX-License-Identifier: Apache-2.0
 * The state of replicas on devices: read, received, undone; in checkpoints, which a job on
 * processors goes on from, and the other way round, bit by bit. */
#include <string.h>

#include "gpu_training.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define COUNT 1000

static cadre_variable *random_variable(
    cadre_strategy *strategy, const char *name, cadre_dtype dtype, uint64_t seed)
{
    const cadre_variable_options options = {.initializer = {
                                                .kind = CADRE_INITIALIZER_NORMAL,
                                                .stddev = 1,
                                                .seed = seed,
                                            }};
    const int64_t dims[] = {COUNT};
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, dtype, 1, dims, &options, &variable));
    return variable;
}

static void make_variables(cadre_strategy *strategy, uint64_t seed)
{
    random_variable(strategy, "weights", CADRE_F32, seed);
    random_variable(strategy, "half", CADRE_BF16, seed);
    random_variable(strategy, "wide", CADRE_F64, seed);
    const cadre_variable_options sum = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    cadre_variable *counted;
    assert_public_ok(cadre_variable_create(strategy, "sum", CADRE_I64, 0, NULL, &sum, &counted));
}

static cadre_status count_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_strategy *strategy = replica->strategy;
    CADRE_TRY(cadre_variable_assign_literal(
        replica, variable_lookup(strategy, "weights"), CADRE_ASSIGN_ADD, 0.1));
    return cadre_variable_assign_literal(
        replica, variable_lookup(strategy, "sum"), CADRE_ASSIGN_ADD, 1);
}

/* The whole state, as it would travel. */
static size_t state_of(cadre_strategy *strategy, char bytes[16 * COUNT])
{
    struct cadre_error error = {0};
    size_t size = state_bytes(strategy);
    assert_in_range(size, 1, 16 * COUNT);
    assert_ok(state_read(strategy, 0, bytes, size, &error), &error);
    return size;
}

/* The second replica's device. */
static const char *other(void)
{
    return device_count() > 1 ? "GPU:1" : "CPU:0";
}

static void a_checkpoint_goes_from_one_to_the_other(void **state)
{
    (void)state;
    const char *const from[][3] = {{"GPU:0", other(), NULL}, {"CPU:0", "CPU:1", NULL}};
    const char *const to[][3] = {
        {"CPU:0", NULL, NULL}, {device_count() > 1 ? "GPU:1" : "GPU:0", "CPU:0", NULL}};
    for (int way = 0; way < 2; way++) {
        static char before[16 * COUNT];
        static char after[16 * COUNT];
        char path[TEST_PATH_BYTES];
        struct cadre_error error = {0};
        uint64_t position = 0;
        const char *folder = test_temp_dir();
        cadre_strategy *strategy = gpu_strategy(from[way]);
        strategy->state_part->checkpointer->folder = folder;
        make_variables(strategy, 5);
        for (int i = 0; i < 3; i++) {
            assert_public_ok(cadre_run(strategy, count_step, NULL, NULL, 0, NULL));
        }
        assert_public_ok(cadre_save(strategy, true));
        assert_public_ok(cadre_save(strategy, true)); /* the same once more */
        assert_public_ok(cadre_run(strategy, count_step, NULL, NULL, 0, NULL));
        assert_public_ok(cadre_save(strategy, true));
        size_t size = state_of(strategy, before);
        cadre_strategy_release(strategy);
        strategy = gpu_strategy(to[way]);
        strategy->state_part->checkpointer->folder = test_temp_dir();
        make_variables(strategy, 6);
        assert_int_equal(state_of(strategy, after), size);
        assert_memory_not_equal(after, before, size);
        strategy->state = STATE_RESTORES;
        assert_ok(checkpoint_load(
                      strategy, test_path(path, folder, "checkpoint-4.json"), &position, &error),
            &error);
        strategy->state = STATE_PRESENT;
        assert_int_equal(position, 4);
        assert_int_equal(state_of(strategy, after), size);
        assert_memory_equal(after, before, size);
        const cadre_variable *weights = variable_lookup(strategy, "weights");
        static float component[COUNT];
        for (uint32_t i = 0; i < weights->component_count; i++) {
            assert_ok(device_copy(component, NULL, weights->components[i].value,
                          weights->components[i].device, sizeof component, &error),
                &error);
            assert_memory_equal(component, cadre_variable_read(NULL, weights), sizeof component);
        }
        cadre_strategy_release(strategy);
    }
}

/* A program exports the values on devices, and another, whose replicas are elsewhere, loads them:
 * one variable that exists already, and others where they are created. */
static void values_go_from_one_to_the_other(void **state)
{
    (void)state;
    const char *const from[][3] = {{"GPU:0", other(), NULL}, {"CPU:0", "CPU:1", NULL}};
    const char *const to[][3] = {
        {"CPU:0", NULL, NULL}, {"GPU:0", device_count() > 1 ? "GPU:1" : "CPU:0", NULL}};
    const cadre_signature all[] = {
        {"half", NULL}, {"sum", NULL}, {"weights", NULL}, {"wide", NULL}};
    for (int way = 0; way < 2; way++) {
        static char before[16 * COUNT];
        static char after[16 * COUNT];
        char path[TEST_PATH_BYTES];
        test_path(path, test_temp_dir(), "model.safetensors");
        cadre_strategy *strategy = gpu_strategy(from[way]);
        make_variables(strategy, 5);
        assert_public_ok(cadre_run(strategy, count_step, NULL, NULL, 0, NULL));
        assert_public_ok(cadre_export(strategy, path, all, 4));
        size_t size = state_of(strategy, before);
        cadre_strategy_release(strategy);
        strategy = gpu_strategy(to[way]);
        cadre_variable *half = random_variable(strategy, "half", CADRE_BF16, 6);
        assert_non_null(cadre_variable_read(NULL, half)); /* the host's copy is old afterwards */
        assert_public_ok(cadre_restore(strategy, path, NULL));
        random_variable(strategy, "weights", CADRE_F32, 6);
        random_variable(strategy, "wide", CADRE_F64, 6);
        const cadre_variable_options sum = {
            .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
        cadre_variable *counted;
        assert_public_ok(
            cadre_variable_create(strategy, "sum", CADRE_I64, 0, NULL, &sum, &counted));
        assert_public_ok(cadre_restored(strategy, CADRE_RESTORED_CONSUMED, NULL));
        assert_int_equal(state_of(strategy, after), size);
        assert_memory_equal(after, before, size);
        assert_memory_equal(cadre_variable_read(NULL, half), before, COUNT * 2); /* the first */
        assert_public_ok(cadre_run(strategy, count_step, NULL, NULL, 0, NULL));
        cadre_strategy_release(strategy);
    }
}

static void what_is_received_is_kept_or_undone(void **state)
{
    (void)state;
    static char before[16 * COUNT];
    static char theirs[16 * COUNT];
    static char is[16 * COUNT];
    struct cadre_error error = {0};
    cadre_strategy *strategy = gpu_strategy((const char *const[]){"GPU:0", other(), NULL});
    make_variables(strategy, 5);
    size_t size = state_of(strategy, before);
    for (size_t i = 0; i < size; i++) {
        theirs[i] = (char)(i * 7);
    }
    for (int keep = 0; keep < 2; keep++) {
        assert_ok(state_receive(strategy, true, true, &error), &error);
        for (size_t at = 0; at < size; at += 777) {
            size_t bytes = size - at < 777 ? size - at : 777;
            assert_ok(state_write(strategy, at, theirs + at, bytes, &error), &error);
        }
        if (keep == 0) {
            state_undo(strategy);
        } else {
            state_commit(strategy);
        }
        state_of(strategy, is);
        assert_memory_equal(is, keep == 0 ? before : theirs, size);
    }
    cadre_strategy_release(strategy);
}

int main(void)
{
    gpu_require(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_goes_from_one_to_the_other),
        cmocka_unit_test(values_go_from_one_to_the_other),
        cmocka_unit_test(what_is_received_is_kept_or_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
