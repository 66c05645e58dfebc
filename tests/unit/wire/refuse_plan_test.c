/* SPDX-License-Identifier: Apache-2.0
 * The rules for a plan's roster, whole and in part. */
#include "tests/unit/wire/refuse.h"

SEND(task_down)

static void a_whole_roster(void **state)
{
    (void)state;
    struct task_down down = sample_plan;
    down.plan.source = 2;
    assert_error(
        send_task_down(&down), INVALID, &error, "TaskPlan.source is 2; it must be from 0 to 1");
    down = sample_plan;
    down.plan.roster_count = 0;
    assert_error(send_task_down(&down), INVALID, &error, "TaskPlan.roster is empty");
    struct roster_entry roster[2] = {sample_plan.plan.roster[0], sample_plan.plan.roster[0]};
    down = sample_plan;
    down.plan.roster = roster;
    assert_error(send_task_down(&down), INVALID, &error,
        "RosterEntry.slot 16383 is there twice (in TaskPlan.roster[1])");
    roster[1].slot = LIMIT_TASKS_PER_JOB;
    assert_error(send_task_down(&down), INVALID, &error, "RosterEntry.slot is 16384");
    roster[1] = (struct roster_entry){.slot = 1, .replicas = 1, .mesh_address = ""};
    assert_error(send_task_down(&down), INVALID, &error, "RosterEntry.incarnation is 0");
}

static void an_address_is_bounded(void **state)
{
    (void)state;
    char *address = long_text(LIMIT_ADDRESS_BYTES);
    const struct roster_entry entry = {.incarnation = 1, .replicas = 1, .mesh_address = address};
    struct task_down down = sample_plan;
    down.plan.source = 0;
    down.plan.roster = &entry;
    down.plan.roster_count = 1;
    assert_error(send_task_down(&down), TOO_LARGE, &error, "RosterEntry.mesh_address");
    address[LIMIT_ADDRESS_BYTES - 1] = '\0';
    assert_ok(send_task_down(&down), &error);
    free(address);
}

static void a_part_of_a_roster(void **state)
{
    (void)state;
    struct task_down down = sample_part;
    down.plan.source = 16384;
    assert_error(send_task_down(&down), INVALID, &error,
        "TaskPlan.source is 16384; it must be from 0 to 16383");
    down = sample_part;
    down.plan.members = LIMIT_TASKS_PER_JOB + 1;
    assert_error(send_task_down(&down), INVALID, &error,
        "TaskPlan.members is 16385; it must be from 2 to 16384");
    down.plan.members = 1;
    assert_error(send_task_down(&down), INVALID, &error,
        "TaskPlan.members is 1; it must be from 2 to 16384");
    down.plan.members = 16383;
    down.plan.source = 0;
    assert_error(send_task_down(&down), INVALID, &error,
        "RosterEntry.rank is 16383; it must be from 0 to 16382 (in TaskPlan.roster[0])");
    struct roster_entry part[2] = {sample_part.plan.roster[0], sample_part.plan.roster[1]};
    part[1].rank = part[0].rank;
    down = sample_part;
    down.plan.roster = part;
    assert_error(send_task_down(&down), INVALID, &error,
        "RosterEntry.rank 16383 is there twice (in TaskPlan.roster[1])");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_whole_roster),
        cmocka_unit_test(an_address_is_bounded), cmocka_unit_test(a_part_of_a_roster)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
