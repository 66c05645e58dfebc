/* SPDX-License-Identifier: Apache-2.0
 * The task between the session's thread and the program's: what comes while the program is on its
 * way. */
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/task/task.h"

/* A session whose daemon is the test. */
struct stand_in {
    struct session session;
    struct session_events events;
};

static cadre_status start(
    struct session *session, const struct session_events *events, struct cadre_error *error)
{
    (void)error;
    ((struct stand_in *)session)->events = *events;
    return CADRE_OK;
}

static unsigned finished;

static void count(struct session *session, const struct task_up *up)
{
    (void)session;
    finished += up->type == TASK_UP_REPORT && up->report.reason == REPORT_FINISHED;
}

static bool take_nothing(struct session *session, struct task_down *ret_down)
{
    (void)session;
    (void)ret_down;
    return false;
}

static void end(struct session *session)
{
    (void)session;
}

static const struct session_ops stand_in_ops = {
    .name = "stand-in", .start = start, .send = count, .take = take_nothing, .close = end};

static void send_plan(struct stand_in *daemon, uint64_t number)
{
    const struct roster_entry entries[] = {
        {.slot = 0, .incarnation = 1, .replicas = 1, .mesh_address = "127.0.0.1:1"},
        {.slot = 1, .incarnation = 2, .replicas = 1, .mesh_address = "127.0.0.1:2"},
    };
    struct task_down down = {.type = TASK_DOWN_PLAN, .generation = {.number = number, .nonce = 1}};
    down.plan = (struct task_plan){.generation = down.generation,
        .roster = entries,
        .roster_count = 2,
        .source = number == 1 ? SOURCE_NONE : 1,
        .checkpoint_at = POSITION_NONE,
        .halt_at = POSITION_NONE};
    daemon->events.down(&down, daemon->events.user);
}

static void send_abort(struct stand_in *daemon, uint64_t number)
{
    const struct task_down down = {.type = TASK_DOWN_ABORT,
        .generation = {.number = number, .nonce = 1},
        .reason = "task 1 is lost"};
    daemon->events.down(&down, daemon->events.user);
}

static unsigned aborts;

static void count_abort(struct mesh *mesh, const char *reason)
{
    (void)mesh;
    assert_true(reason[0] != '\0');
    aborts++;
}

static const struct mesh_ops counting_ops = {.name = "counting", .abort = count_abort};

/* The program took a plan and forms its mesh; before it reports which, that generation is over and
 * the next one planned. No other task comes to the mesh that it forms. */
static void a_mesh_of_a_generation_that_is_over_is_aborted(void **state)
{
    (void)state;
    struct stand_in daemon = {.session = {.ops = &stand_in_ops}};
    struct task_identity identity = {
        .incarnation = 1, .replicas = 1, .mesh_address = "127.0.0.1:1"};
    struct mesh mesh = {.ops = &counting_ops};
    struct cadre_error error = {0};
    struct task_roster roster = {0};
    struct task *task;
    assert_ok(task_open(&daemon.session, &identity, &task, &error), &error);
    send_plan(&daemon, 1);
    assert_ok(task_await_plan(task, &roster, &error), &error);
    task_roster_clear(&roster);
    send_abort(&daemon, 1);
    send_plan(&daemon, 2);
    task_attach_mesh(task, &mesh);
    assert_int_equal(aborts, 1);
    task_detach_mesh(task, &mesh);
    assert_ok(task_await_plan(task, &roster, &error), &error);
    assert_int_equal(roster.generation.number, 2);
    task_roster_clear(&roster);
    task_attach_mesh(task, &mesh); /* the right one */
    assert_int_equal(aborts, 1);
    task_detach_mesh(task, &mesh);
    task_close(task);
}

static void end_of_an_ended_generation_is_not_reported(void **state)
{
    (void)state;
    struct stand_in daemon = {.session = {.ops = &stand_in_ops}};
    struct task_identity identity = {
        .incarnation = 1, .replicas = 1, .mesh_address = "127.0.0.1:1"};
    const struct cursor cursor = {0};
    const struct consumption consumption = {0};
    struct cadre_error error = {0};
    struct task_roster first = {0};
    struct task_roster second = {0};
    struct task *task;
    assert_ok(task_open(&daemon.session, &identity, &task, &error), &error);
    send_plan(&daemon, 1);
    assert_ok(task_await_plan(task, &first, &error), &error);
    assert_true(task_synced(task, first.generation, &cursor, &consumption));
    send_abort(
        &daemon, 1); /* the chief died; this task's program is about to report that it is done */
    send_plan(&daemon, 2);
    assert_false(task_finish(task, first.generation, 0));
    assert_ok(task_await_plan(task, &second, &error), &error);
    assert_true(task_synced(task, second.generation, &cursor, &consumption));
    assert_int_equal(finished, 0); /* now it may be the chief, and has not saved yet */
    assert_true(task_finish(task, second.generation, 0));
    assert_int_equal(finished, 1);
    task_roster_clear(&first);
    task_roster_clear(&second);
    task_close(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mesh_of_a_generation_that_is_over_is_aborted),
        cmocka_unit_test(end_of_an_ended_generation_is_not_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
