/* SPDX-License-Identifier: Apache-2.0
 * Where values lie: by hand in the process's own memory, in a job of several tasks in the arena
 * that the tasks of the host map, both variables and what replica functions make for collectives.
 */
#include <string.h>

#include "job.h"
#include "training.h"
#include "worker/library/arena/arena.h"

static const char *self;

static bool is_shared(const void *data, size_t bytes)
{
    uint64_t offset = 0;
    return arena_locate(data, bytes, &offset);
}

static cadre_status look(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    cadre_variable *variable = training_find(cadre_replica_strategy(replica), "v");
    const bool wanted = *(const bool *)user;
    CADRE_TRY(cadre_tensor_from_f32(1, &outputs[0]));
    bool tensor = is_shared(cadre_tensor_const_data(outputs[0]), sizeof(float));
    bool component = is_shared(
        cadre_variable_write(replica, variable), (size_t)cadre_variable_count(variable) * 4);
    return tensor == wanted && component == wanted
               ? CADRE_OK
               : cadre_fail(CADRE_INTERNAL, "tensor %d, component %d", tensor, component);
}

static cadre_status check(cadre_strategy *strategy, bool shared)
{
    const int64_t dims = 100000;
    cadre_variable *variable;
    cadre_per_replica *outputs;
    cadre_tensor *outside;
    CADRE_TRY(cadre_variable_create(strategy, "v", CADRE_F32, 1, &dims, NULL, &variable));
    CADRE_TRY(cadre_run(strategy, look, &shared, NULL, 1, &outputs));
    CADRE_TRY(cadre_tensor_from_f32(1, &outside));
    bool between = is_shared(cadre_tensor_const_data(outside), sizeof(float));
    cadre_tensor_release(outside);
    return between ? cadre_fail(CADRE_INTERNAL, "the preference stayed") : CADRE_OK;
}

static void by_hand_nothing_is_shared(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_ok(check(strategy, false));
    assert_int_equal(arena_bytes(), 0);
    cadre_strategy_release(strategy);
}

static void tasks_of_a_host_share(void **state)
{
    (void)state;
    job_must_succeed(self, "shared", 2, 2);
}

static int task(void)
{
    struct cadre_error error;
    bool possible = arena_open(&error) == CADRE_OK;
    cadre_strategy *strategy = job_strategy();
    CADRE_CHECK(check(strategy, possible));
    return cadre_finish(strategy);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand_nothing_is_shared),
        cmocka_unit_test(tasks_of_a_host_share),
    };
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "shared") == 0) {
        return task();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
