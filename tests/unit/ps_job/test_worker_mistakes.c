/* SPDX-License-Identifier: Apache-2.0
 * The mistakes of a newcomer in closures, one row each: what is about the job is called with the
 * worker's own strategy, and the sentence names the call and what to call instead. */
#include <stdio.h>

#include "cadre/cadre.h"
#include "tests/lib/test.h"
#include "tests/unit/ps_job/worker_calls.h"

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static cadre_status saved(cadre_strategy *own)
{
    return cadre_save(own, true);
}

static cadre_status listed(cadre_strategy *own)
{
    uint32_t count;
    return cadre_checkpoints(own, NULL, 0, &count);
}

static cadre_status restored(cadre_strategy *own)
{
    return cadre_restore(own, "nowhere", NULL);
}

static cadre_status asked_what_was_restored(cadre_strategy *own)
{
    return cadre_restored(own, CADRE_RESTORED_EXISTING, NULL);
}

static cadre_status imported(cadre_strategy *own)
{
    return cadre_import(own, "nothing.safetensors");
}

static cadre_status exported(cadre_strategy *own)
{
    return cadre_export(own, "nothing.safetensors", NULL, 0);
}

static cadre_status registered(cadre_strategy *own)
{
    static int64_t number;
    return cadre_state_register(own, "number", &number, sizeof number);
}

static cadre_status distributed(cadre_strategy *own)
{
    cadre_distributed_dataset *made;
    return cadre_distribute_dataset(own, cadre_dataset_range(0, 4, 1), NULL, &made);
}

static cadre_status handled_preemption(cadre_strategy *own)
{
    return cadre_preemption_handler_set(own, NULL);
}

static cadre_status preempted(cadre_strategy *own)
{
    return cadre_preempt(own);
}

static cadre_status adapted(cadre_strategy *own)
{
    cadre_normalization *made;
    return cadre_normalization_adapt(own, cadre_dataset_range(0, 4, 1), NULL, &made);
}

static cadre_status looked_up(cadre_strategy *own)
{
    cadre_lookup *made;
    return cadre_lookup_adapt(own, cadre_dataset_range(0, 4, 1), NULL, &made);
}

static cadre_status reported(cadre_strategy *own)
{
    return cadre_report(own, "loss", 1);
}

static cadre_status scheduled(cadre_strategy *own)
{
    return cadre_schedule(own, "all", NULL, 0, NULL);
}

static cadre_status joined(cadre_strategy *own)
{
    return cadre_join(own);
}

static cadre_status run_with_the_chiefs(cadre_strategy *own)
{
    (void)own;
    return cadre_run(chief, nothing, NULL, NULL, 0, NULL);
}

static cadre_status made_a_strategy(cadre_strategy *own)
{
    (void)own;
    cadre_strategy *made;
    return cadre_strategy_mirrored(2, &made);
}

static cadre_status set_a_strategy(cadre_strategy *own)
{
    return cadre_strategy_set(own);
}

static const struct {
    cadre_status (*call)(cadre_strategy *own);
    const char *expected_text;
} mistakes[] = {
    {saved, "cadre_save was called with the strategy that a worker has"},
    {listed, "cadre_checkpoints was called with the strategy that a worker has"},
    {restored, "in the chief's program"},
    {asked_what_was_restored, "in the chief's program"},
    {imported, "in the chief's program"},
    {exported, "in the chief's program"},
    {registered, "cadre_state_register was called with the strategy that a worker has"},
    {distributed, "take its batches in closures with cadre_closure_batch"},
    {handled_preemption, "in the chief's program"},
    {preempted, "cadre_preempt was called with the strategy that a worker has"},
    {adapted, "in the chief's program"},
    {looked_up, "in the chief's program"},
    {reported, "as an output of the closure"},
    {scheduled, "only the chief's program schedules"},
    {joined, "only the chief's program schedules"},
    {run_with_the_chiefs, "use the worker's own, which is cadre_strategy_current()"},
    {made_a_strategy, "use that one, cadre_strategy_current()"},
    {set_a_strategy, "cadre_strategy_current"},
};

/* The row that the argument says; then the worker takes a step. */
static cadre_status make_mistake(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_tensor *row = NULL;
    cadre_strategy *own = cadre_strategy_current();
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_closure_tensor(closure, 0, &row));
    int64_t i = *(const int64_t *)cadre_tensor_const_data(row);
    if (!expected_text(
            mistakes[i].call(own), CADRE_FAILED_PRECONDITION, mistakes[i].expected_text)) {
        return cadre_fail(CADRE_INTERNAL, "row %lld is not refused", (long long)i);
    }
    return cadre_run(own, nothing, NULL, NULL, 0, NULL);
}

static void each_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        cadre_tensor *row = NULL;
        assert_int_equal(cadre_tensor_from_i64((int64_t)i, &row), CADRE_OK);
        const cadre_closure_argument argument = {.tensor = row};
        if (call("make_mistake", &argument, 1, NULL) != CADRE_OK) {
            fail_msg("%s", cadre_error_message());
        }
        cadre_tensor_release(row);
    }
}

int main(void)
{
    if (!worker_calls_init()) {
        return 1;
    }
    CADRE_CHECK(cadre_function_register("make_mistake", make_mistake, NULL));
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_reported)};
    return cmocka_run_group_tests(tests, worker_calls_begin, worker_calls_end);
}
