/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs a task finds: those of the slot of the host that it has, and no other task's that
 * runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/stage.h"

#define TELL                                                                                       \
    "echo \"gpus=$CUDA_VISIBLE_DEVICES; devices=$CADRE_DEVICES; reason=$CADRE_DEVICES_REASON;\""

static void start_shell(struct stage *stage, uint32_t attempt, const char *command)
{
    static const char *const environment[] = {"CUDA_VISIBLE_DEVICES=7", "CADRE_DEVICES_REASON=x"};
    const char *arguments[] = {"-c", command};
    stage->program = "/bin/sh";
    start_spec(stage, attempt,
        &(struct job_spec){.name = "a job",
            .program = {.name = "program"},
            .arguments = arguments,
            .argument_count = 2,
            .environment = environment,
            .environment_count = 2,
            .workers = SLOTS_MAX,
            .strategy = ""});
}

/* Runs on until it is stopped. */
static void start_lasting(struct stage *stage, uint32_t attempt, const char *gpus)
{
    char part[64];
    start_shell(stage, attempt, TELL "; exec sleep 60");
    snprintf(part, sizeof part, "gpus=%s;", gpus);
    until_printed(stage, attempt, part);
}

static void tasks_that_run_have_different_ones(void **state)
{
    (void)state;
    char *shares[SLOTS_MAX] = {"GPU-a,GPU-b", "GPU-c", "GPU-d", "GPU-e"};
    struct stage *stage = stage_open_with_gpus(shares, "");
    /* By the order of their starts, whatever their slots are called in the job. */
    start_lasting(stage, 3, "GPU-a,GPU-b");
    start_lasting(stage, 1, "GPU-c");
    start_lasting(stage, 0, "GPU-d");
    stop(stage, 1, 0);
    until_collected(stage, 1);
    start_lasting(stage, 2, "GPU-c");
    start_lasting(stage, 5, "GPU-e"); /* the next attempt of slot 1 */
    stage_close(stage);
}

/* An attempt that has ended and is not collected yet holds nothing. */
static void the_next_attempt_of_a_slot_takes_over(void **state)
{
    (void)state;
    char *shares[SLOTS_MAX] = {"GPU-a", "GPU-b", "GPU-c", "GPU-d"};
    struct stage *stage = stage_open_with_gpus(shares, "");
    stage->delay_collect = true;
    start_lasting(stage, 0, "GPU-a");
    stop(stage, 0, 0);
    until_gone(stage, 0);
    start_lasting(stage, 4, "GPU-a");
    stage_close(stage);
}

static void without_a_share_it_gets_the_reason(void **state)
{
    (void)state;
    char *shares[SLOTS_MAX] = {"", "", "", ""};
    struct stage *stage = stage_open_with_gpus(shares, "the option --gpus none");
    start_shell(stage, 0, TELL);
    until_collected(stage, 0);
    assert_string_equal(
        printed(&stage->tasks[0]), "gpus=; devices=cpu; reason=the option --gpus none;\n");
    stage_close(stage);
}

static void with_a_share_no_reason_is_given(void **state)
{
    (void)state;
    char *shares[SLOTS_MAX] = {"0,1", "2", "3", "4"};
    struct stage *stage = stage_open_with_gpus(shares, "one is broken");
    start_shell(stage, 0, TELL);
    until_collected(stage, 0);
    assert_string_equal(printed(&stage->tasks[0]), "gpus=0,1; devices=; reason=;\n");
    stage_close(stage);
}

/* Only the operator of the host knows where the plugin and NCCL are. */
static void what_the_operator_says_of_gpus_is_passed_on(void **state)
{
    (void)state;
    assert_int_equal(setenv("CADRE_PLUGIN", "/opt/plugin.so", 1), 0);
    assert_int_equal(setenv("NCCL_SOCKET_IFNAME", "ib0", 1), 0);
    assert_int_equal(setenv("NCCLX", "no", 1), 0);
    struct stage *stage = stage_open();
    start_shell(
        stage, 0, "echo \"$CADRE_PLUGIN $NCCL_SOCKET_IFNAME $CUDA_VISIBLE_DEVICES-$NCCLX\"");
    until_collected(stage, 0);
    assert_string_equal(printed(&stage->tasks[0]), "/opt/plugin.so ib0 7-\n");
    stage_close(stage);
}

int main(void)
{
    unsetenv("CADRE_DEVICES");
    const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_that_run_have_different_ones),
        cmocka_unit_test(the_next_attempt_of_a_slot_takes_over),
        cmocka_unit_test(without_a_share_it_gets_the_reason),
        cmocka_unit_test(with_a_share_no_reason_is_given),
        cmocka_unit_test(what_the_operator_says_of_gpus_is_passed_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
