/* SPDX-License-Identifier: Apache-2.0
 * The history that follows from records, messages and the core's state: of a job that loses tasks,
 * stalls, is drained and preempted, across a start of the coordinator. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/engine/stage.h"

struct shown {
    char text[8192];
    size_t length;
    uint64_t last;
    uint64_t time_us; /* of the newest one */
};

static void add(struct shown *shown, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct shown *shown, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    shown->length += (size_t)vsnprintf(
        shown->text + shown->length, sizeof shown->text - shown->length, format, arguments);
    va_end(arguments);
    assert_true(shown->length < sizeof shown->text);
}

static void take_event(struct shown *shown, const struct history_event *event)
{
    assert_true(event->time_us >= shown->time_us);
    assert_int_equal(event->number, shown->last + 1);
    shown->last = event->number;
    shown->time_us = event->time_us;
    add(shown, "%s g%" PRIu64 " at %" PRIu64, history_kind_name(event->kind), event->generation,
        event->position);
    if (event->slot != HISTORY_SLOT_NONE) {
        add(shown, " task %" PRIu32 ".%" PRIu64, event->slot, event->incarnation);
    }
    if (event->worker[0] != '\0') {
        add(shown, " on %s", event->worker);
    }
    if (event->tasks > 0) {
        add(shown, " tasks %" PRIu32, event->tasks);
    }
    if (event->roster[0] != '\0') {
        add(shown, " [%s]", event->roster);
    }
    if (event->undone > 0 || event->restarted) {
        add(shown, " undone %" PRIu64 "%s", event->undone, event->restarted ? " restarted" : "");
    }
    if (event->exit_code != 0 || event->exit_signal != 0) {
        add(shown, " exit %d/%d", (int)event->exit_code, (int)event->exit_signal);
    }
    if (event->state != 0) {
        add(shown, " %s", job_state_name(event->state));
    }
    add(shown, "%s%s\n", event->text[0] != '\0' ? ": " : "", event->text);
}

static struct shown history_after(struct stage *stage, uint64_t after)
{
    struct shown shown = {.last = after};
    struct history_response response;
    const struct history_request request = {.id = {1}, .after = after};
    assert_ok(engine_history(stage->engine, &request, &response, &stage->error), &stage->error);
    for (size_t i = 0; i < response.event_count; i++) {
        take_event(&shown, &response.events[i]);
    }
    assert_int_equal(response.last, shown.last);
    assert_false(response.more);
    assert_int_equal(response.job.id.n, 1);
    return shown;
}

/* The events since the number *after, which is set to the newest one. */
static void expect_history(struct stage *stage, uint64_t *after, const char *wanted)
{
    struct shown shown = history_after(stage, *after);
    assert_string_equal(shown.text, wanted);
    *after = shown.last;
}

static const char formed[] = "submitted g0 at 0 tasks 3\n"
                             "started g0 at 0 tasks 3\n"
                             "task_started g0 at 0 task 0.1 on one\n"
                             "task_started g0 at 0 task 1.2 on one\n"
                             "task_started g0 at 0 task 2.3 on two\n"
                             "generation g1 at 0 tasks 3 [0-2]\n";

static void a_lost_worker(void **state)
{
    (void)state;
    uint64_t after = 0;
    struct stage *stage = stage_formed();
    expect_history(stage, &after, formed);
    for (uint64_t up_to = 1; up_to <= 4; up_to++) { /* steps make no event */
        arrived(stage, 1, 1, 2, up_to);
        arrived(stage, 2, 1, 1, up_to);
        flush(stage);
    }
    expect_history(stage, &after, "");
    for (int i = 0; i < 11; i++) {
        stage->now_us += SECOND;
        heartbeat(stage, 1);
        engine_tick(stage->engine, stage->now_us);
        flush(stage);
    }
    expect_history(stage, &after,
        "task_lost g1 at 3 task 2.3 on two: task 2 was lost with worker two, which was silent for "
        "10 s\n");
    report(stage, 1, 1, 0, 4, REPORT_ABORT);
    report(stage, 1, 1, 1, 4, REPORT_ABORT);
    flush(stage);
    expect_history(stage, &after, ""); /* two are too few: the job waits for a third */
    stage_close(stage);
}

static void the_coordinator_is_started_again(void **state)
{
    (void)state;
    uint64_t after = 0;
    struct stage *stage = stage_formed();
    expect_history(stage, &after, formed);
    stage_reopen(stage);
    flush(stage);
    expect_history(stage, &after,
        "coordinator_restarted g1 at 0: the coordinator was started again, or another one leads\n");
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    started(stage, 1, 1, 0); /* again: it is in the history */
    flush(stage);
    expect_history(stage, &after, "");
    stage_close(stage);
}

static void what_ends(void **state)
{
    (void)state;
    uint64_t after = 0;
    struct stage *stage = stage_formed();
    expect_history(stage, &after, formed);
    part(stage, 1, 1, 0);
    cancel(stage, 5, 1);
    flush(stage);
    for (uint32_t slot = 0; slot < 3; slot++) {
        gone(stage, slot < 2 ? 1 : 2, 1, slot, 143, "bye");
        collected(stage, slot < 2 ? 1 : 2, 1, slot);
    }
    flush(stage);
    expect_history(stage, &after,
        "ending g1 at 0 exit 130/0 cancelled: cancelled\n"
        "task_ended g1 at 0 task 0.1 on one exit 143/0: bye\n"
        "task_ended g1 at 0 task 1.2 on one exit 143/0: bye\n"
        "task_ended g1 at 0 task 2.3 on two exit 143/0: bye\n"
        "ended g1 at 0 exit 130/0 cancelled: cancelled\n");
    struct history_response response;
    struct history_request request = {.id = {9}};
    assert_error(engine_history(stage->engine, &request, &response, &stage->error), CADRE_NOT_FOUND,
        &stage->error, "there is no job 9");
    request = (struct history_request){.id = {1}, .after = 2, .limit = 3};
    assert_ok(engine_history(stage->engine, &request, &response, &stage->error), &stage->error);
    assert_int_equal(response.event_count, 3);
    assert_int_equal(response.events[0].number, 3);
    assert_true(response.more);
    assert_int_equal(response.dropped, 0);
    stage_close(stage);
}

/* Steps of 0.1 s, then one that does not end: the core shows it after 5 s. */
static void a_stall(void **state)
{
    (void)state;
    uint64_t after = 0;
    struct stage *stage = stage_formed();
    expect_history(stage, &after, formed);
    for (uint64_t up_to = 1; up_to <= 4; up_to++) {
        stage->now_us += SECOND / 10;
        arrived(stage, 1, 1, 2, up_to);
        arrived(stage, 2, 1, 1, up_to);
        flush(stage);
    }
    stage->now_us += SECOND;
    stalled(stage, 1, 1, 0, 3, 2);
    for (int i = 0; i < 4; i++) {
        stage->now_us += SECOND;
        heartbeat(stage, 1);
        heartbeat(stage, 2);
        engine_tick(stage->engine, stage->now_us);
        flush(stage);
    }
    expect_history(stage, &after,
        "stalled g1 at 3 task 2.3 on two: step 3 has not ended for 5 s (median 0.1 s): task 2 on "
        "worker two is waited for by 1 other\n");
    stage_reopen(stage); /* it goes on to be stalled */
    flush(stage);
    expect_history(stage, &after,
        "coordinator_restarted g1 at 0: the coordinator was started again, or another one leads\n");
    stage_close(stage);
}

static void a_stall_that_ends(void **state)
{
    (void)state;
    uint64_t after = 0;
    struct stage *stage = stage_formed();
    expect_history(stage, &after, formed);
    arrived(stage, 1, 1, 2, 1);
    arrived(stage, 2, 1, 1, 1);
    stalled(stage, 1, 1, 0, 0, 2);
    for (int i = 0; i < 6; i++) {
        stage->now_us += SECOND;
        heartbeat(stage, 1);
        heartbeat(stage, 2);
        engine_tick(stage->engine, stage->now_us);
        flush(stage);
    }
    arrived(stage, 1, 1, 2, 2);
    arrived(stage, 2, 1, 1, 2);
    flush(stage);
    expect_history(stage, &after,
        "stalled g1 at 0 task 2.3 on two: step 0 has not ended for 5 s (median 0 ms): task 2 on "
        "worker two is waited for by 1 other\n"
        "went_on g1 at 1\n");
    stage_close(stage);
}

static void a_drain(void **state)
{
    (void)state;
    uint64_t after = 0;
    struct stage *stage = stage_formed();
    expect_history(stage, &after, formed);
    engine_drain(stage->engine, stage->now_us, (struct call_id){6},
        &(struct drain_request){.worker = "two", .reason = "a new disk"}, "ann");
    flush(stage);
    expect_history(stage, &after,
        "drained g1 at 0 on two: worker two is drained by ann: a new disk\n"
        "halted g1 at 1: is preempted (its worker drains, and there is no room "
        "elsewhere): stops at step 1\n");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_worker),
        cmocka_unit_test(the_coordinator_is_started_again),
        cmocka_unit_test(what_ends),
        cmocka_unit_test(a_stall),
        cmocka_unit_test(a_stall_that_ends),
        cmocka_unit_test(a_drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
