/* SPDX-License-Identifier: Apache-2.0
 * Membership: hello and its refusals, streams that break and come back, leases, drain, stray tasks.
 */
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"

#include "tests/unit/coordinator_core/script.h"

static void joins_and_is_listed(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 2);
    join(s, 2, "b", 1);
    expect_output(s, "welcome link 1: worker 1\n"
                     "welcome link 2: worker 2\n");
    struct core_worker_view view;
    assert_int_equal(core_worker_count(s->core), 2);
    uint32_t cursor = 0;
    assert_true(core_worker_next(s->core, &cursor, &view));
    assert_string_equal(view.name, "a");
    assert_true(core_worker_next(s->core, &cursor, &view));
    assert_string_equal(view.name, "b");
    assert_int_equal(view.slots, 1);
    assert_int_equal(view.link.n, 2);
    assert_false(core_worker_next(s->core, &cursor, &view));
    assert_false(core_worker_next(s->core, &cursor, &view));
    assert_true(core_worker_find(s->core, (struct worker_id){1}, &view));
    assert_string_equal(view.name, "a");
    assert_false(core_worker_find(s->core, (struct worker_id){3}, &view));
    script_close(s);
}

static void hello_of(struct script *s, uint64_t link, uint32_t oldest, uint32_t newest)
{
    struct agent_up message = {.type = AGENT_UP_HELLO,
        .hello = {.protocol_version = oldest,
            .protocol_newest = newest,
            .name = "a",
            .boot_nonce = link,
            .slots = 1}};
    step(s, &(struct core_event){
                .type = CORE_EVENT_AGENT_UP, .agent = {.link = {link}, .up = &message}});
}

static void the_newest_common_protocol_is_used(void **state)
{
    (void)state;
    static const struct {
        struct version_range a, b;
        uint32_t common; /* 0: none */
    } cases[] = {
        {{7, 7}, {7, 7}, 7},
        {{7, 9}, {7, 7}, 7},
        {{7, 9}, {8, 10}, 9},
        {{7, 9}, {8, 8}, 8},
        {{7, 9}, {9, 12}, 9},
        {{7, 9}, {10, 12}, 0},
        {{8, 8}, {7, 7}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t version = 0;
        assert_int_equal(
            version_range_common(cases[i].a, cases[i].b, &version), cases[i].common != 0);
        assert_true(cases[i].common == 0 || version == cases[i].common);
        assert_int_equal(
            version_range_common(cases[i].b, cases[i].a, &version), cases[i].common != 0);
        assert_true(cases[i].common == 0 || version == cases[i].common);
    }
}

static void a_hello_has_a_range_of_protocols(void **state)
{
    (void)state;
    const uint32_t own = AGENT_PROTOCOL_VERSION;
    const uint32_t oldest = AGENT_PROTOCOL_OLDEST;
    char said[200];
    struct script *s = script_open(NULL);
    hello_of(s, 1, 1, 2);
    snprintf(said, sizeof said,
        "refuse link 1: FAILED_PRECONDITION: the worker has agent protocol 1 to 2, this "
        "coordinator %u to %u: install the same version of both\n",
        oldest, own);
    expect_output(s, said);
    hello_of(s, 1, own + 1, own + 2);
    snprintf(said, sizeof said,
        "refuse link 1: FAILED_PRECONDITION: the worker has agent protocol %u to %u, this "
        "coordinator %u to %u: install the same version of both\n",
        own + 1, own + 2, oldest, own);
    expect_output(s, said);
    hello_of(s, 1, own, own + 2);
    expect_output(s, "welcome link 1: worker 1\n");
    hello_of(s, 1, own, 0); /* that of an earlier version has no range */
    expect_output(s, "welcome link 1: worker 1\n");
    script_close(s);
}

static void refuses_bad_hellos(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    struct agent_up message = {.type = AGENT_UP_HELLO,
        .hello = {.protocol_version = 99, .name = "a", .boot_nonce = 1, .slots = 1}};
    step(s,
        &(struct core_event){.type = CORE_EVENT_AGENT_UP, .agent = {.link = {1}, .up = &message}});
    expect_output(s, "refuse link 1: FAILED_PRECONDITION: the worker has agent protocol 99, this "
                     "coordinator 8 to 9: install the same version of both\n");
    join(s, 1, "", 1);
    expect_output(s,
        "refuse link 1: INVALID_ARGUMENT: a worker's name has 1 to 127 bytes: give another one "
        "with --name\n");
    char name[LIMIT_NAME_BYTES + 1];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    join(s, 1, name, 1);
    expect_output(s,
        "refuse link 1: INVALID_ARGUMENT: a worker's name has 1 to 127 bytes: give another one "
        "with --name\n");
    join(s, 1, "a", 0);
    expect_output(s,
        "refuse link 1: INVALID_ARGUMENT: a worker offers 1 to 1024 slots, not 0: give another "
        "number with --slots\n");
    join(s, 1, "a", 1025);
    expect_output(s,
        "refuse link 1: INVALID_ARGUMENT: a worker offers 1 to 1024 slots, not 1025: give "
        "another number with --slots\n");
    assert_int_equal(core_worker_count(s->core), 0);
    script_close(s);
}

static void names_are_unique(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    hello(s, 1, "a", 11, 1, NULL, 0);
    hello(s, 2, "a", 22, 1, NULL, 0);
    expect_output(s,
        "welcome link 1: worker 1\n"
        "refuse link 2: ALREADY_EXISTS: a worker named a is connected already: give this one "
        "another name with --name\n");
    /* Once the first one's stream is down, another incarnation of the daemon takes the name over.
     */
    link_down(s, 1);
    hello(s, 3, "a", 22, 1, NULL, 0);
    expect_output(s, "welcome link 3: worker 2\n");
    assert_int_equal(core_worker_count(s->core), 1);
    /* A stream belongs to one worker. */
    hello(s, 3, "b", 33, 1, NULL, 0);
    expect_output(
        s, "refuse link 3: INVALID_ARGUMENT: a stream belongs to one worker: open another\n");
    script_close(s);
}

static void comes_back_on_a_new_stream(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    hello(s, 1, "a", 11, 1, NULL, 0);
    link_down(s, 1);
    wait_us(s, 9 * SECOND);
    hello(s, 2, "a", 11, 1, NULL, 0);
    expect_output(s, "welcome link 1: worker 1\n"
                     "welcome link 2: worker 1\n");
    /* Before the old stream is known to be down: it is ended, and its end changes nothing. */
    hello(s, 3, "a", 11, 1, NULL, 0);
    expect_output(s, "refuse link 2: ABORTED: the worker came back on a newer stream\n"
                     "welcome link 3: worker 1\n");
    link_down(s, 2);
    struct core_worker_view view;
    uint32_t cursor = 0;
    assert_true(core_worker_next(s->core, &cursor, &view));
    assert_int_equal(view.link.n, 3);
    script_close(s);
}

static void a_lease_runs_out(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    script_skip(s);
    wait_us(s, 6 * SECOND);
    heartbeat(s, 1);
    wait_us(s, 5 * SECOND);
    expect_output(s,
        "refuse link 2: UNAVAILABLE: the worker was silent for too long and is lost: join "
        "again\n");
    assert_int_equal(core_worker_count(s->core), 1);
    heartbeat(s, 2); /* its stream is being ended */
    expect_output(s, "");
    link_down(s, 2);
    link_down(s, 1);
    wait_us(s, 10 * SECOND - 1);
    assert_int_equal(core_worker_count(s->core), 1);
    wait_us(s, 1);
    assert_int_equal(core_worker_count(s->core), 0);
    expect_output(s, "");
    assert_true(core_wake_us(s->core) == UINT64_MAX);
    script_close(s);
}

/* Messages that came while this process was suspended are still to be read. */
static void who_was_paused_itself_loses_no_task(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    script_skip(s);
    s->now_us += 60 * SECOND;
    wait_us(s, 0);
    expect_output(s, "");
    heartbeat(s, 1);
    wait_us(s, 3 * SECOND);
    expect_output(s,
        "refuse link 2: UNAVAILABLE: the worker was silent for too long and is lost: join "
        "again\n");
    assert_int_equal(core_worker_count(s->core), 1);
    script_close(s);
}

/* The same when its deadlines come up in time, or hardly late, and when one of two is read first:
 * the other one's messages are unread, too. */
static void no_task_is_given_up_unread(void **state)
{
    (void)state;
    static const uint64_t paused_us[] = {7500000, 8 * SECOND, 9 * SECOND, 11 * SECOND};
    for (size_t i = 0; i < 2 * sizeof paused_us / sizeof paused_us[0]; i++) {
        struct script *s = script_open(NULL);
        join(s, 1, "a", 1);
        join(s, 2, "b", 1);
        script_skip(s);
        s->now_us += 2900000; /* nothing is due before the next heartbeats */
        s->now_us += paused_us[i / 2];
        if (i % 2 == 0) {
            heartbeat(s, 1);
        }
        wait_us(s, 0);
        expect_output(s, "");
        heartbeat(s, 1);
        heartbeat(s, 2);
        wait_us(s, 6 * SECOND);
        expect_output(s, "");
        heartbeat(s, 1);
        wait_us(s, 5 * SECOND);
        expect_output(s,
            "refuse link 2: UNAVAILABLE: the worker was silent for too long and is lost: join "
            "again\n");
        script_close(s);
    }
}

/* Where only one is silent, or all are and their time is over, none is waited for longer. */
static void silence_is_not_taken_for_a_stop(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    script_skip(s);
    wait_us(s, 10 * SECOND - 1);
    expect_output(s, "");
    wait_us(s, 1);
    expect_output(s,
        "refuse link 1: UNAVAILABLE: the worker was silent for too long and is lost: join "
        "again\n"
        "refuse link 2: UNAVAILABLE: the worker was silent for too long and is lost: join "
        "again\n");
    script_close(s);
}

static void workers_have_a_limit(void **state)
{
    (void)state;
    struct script *s =
        script_open(&(struct core_limits){.workers_max = 1, .jobs_max = 1, .tasks_max = 1});
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    expect_output(s,
        "welcome link 1: worker 1\n"
        "refuse link 2: RESOURCE_EXHAUSTED: the coordinator knows 1 workers already, which is "
        "its limit: raise --workers-max\n");
    link_down(s, 1);
    wait_us(s, 10 * SECOND);
    join(s, 3, "b", 1);
    expect_output(s, "welcome link 3: worker 2\n");
    script_close(s);
}

static void a_draining_worker_gets_no_tasks(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 2);
    draining(s, 1);
    submit(s, 0, 1, 0);
    script_skip(s);
    assert_string_equal(script_job_text(s, 1), "waits for workers: none has joined");
    /* With nothing on it, it is gone when its stream is. */
    link_down(s, 1);
    assert_int_equal(core_worker_count(s->core), 0);
    join(s, 2, "b", 1);
    expect_output(s, "welcome link 2: worker 2\n"
                     "record! job 1: started, incarnations to 1\n"
                     "start job 1\n");
    script_close(s);
    /* Its hello reports it to a coordinator that was started again and has a queue. */
    s = script_open(NULL);
    submit(s, 0, 1, 0);
    script_skip(s);
    join_draining(s, 1, "a", 2);
    expect_output(s, "welcome link 1: worker 1\n");
    assert_string_equal(script_job_text(s, 1), "waits for workers: none has joined");
    script_close(s);
}

/* The ledger has had so many. */
static void had_jobs(struct script *s, uint64_t jobs)
{
    step(s,
        &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = jobs}});
}

static void unknown_tasks_are_ended(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    had_jobs(s, 5);
    struct task_ref strays[] = {
        {.job = {5}, .slot = 0, .incarnation = 1}, {.job = {5}, .slot = 3, .incarnation = 4}};
    hello(s, 1, "a", 11, 2, strays, 2);
    expect_output(s, "welcome link 1: worker 1\n"
                     "stop task 5/0#1 on link 1\n"
                     "stop task 5/3#4 on link 1\n");
    /* Each message about them is answered, so that it can remove them. */
    started(s, 1, 5, 0);
    gone(s, 1, 5, 0, 0, 15, "");
    collected(s, 1, 5, 0);
    expect_output(s, "stop task 5/0#1 on link 1\n"
                     "stop task 5/0#1 on link 1\n");
    script_close(s);
}

/* A worker has two places for each slot: what it holds of others takes some until it is collected,
 * once for each that the hello listed. */
static void what_is_not_collected_takes_entries(void **state)
{
    (void)state;
    static const struct task_ref leftovers[] = {
        {.job = {9}, .slot = 0, .incarnation = 2}, {.job = {9}, .slot = 0, .incarnation = 3}};
    struct script *s = script_open(NULL);
    had_jobs(s, 9);
    hello(s, 1, "a", 11, 1, leftovers, 2);
    submit(s, 0, 1, 0);
    assert_int_equal(job_view(s, 10).state, JOB_QUEUED);
    assert_string_equal(script_job_text(s, 10), "waits for 1 free slot, 0 of 1 are free");
    /* Sent again, it is listed again. */
    link_down(s, 1);
    hello(s, 2, "a", 11, 1, leftovers, 2);
    assert_int_equal(job_view(s, 10).state, JOB_QUEUED);
    script_skip(s);
    gone(s, 2, 9, 0, 0, 9, "");
    expect_output(s, "");
    collected(s, 2, 9, 0);
    expect_output(s, "stop task 9/0#1 on link 2\n"
                     "record! job 10: started, incarnations to 1\n"
                     "start job 10\n");
    script_close(s);
}

/* A job that ended without them leaves tasks that its worker still has. */
static void what_a_job_left_takes_entries(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    for (uint64_t job = 1; job <= 2; job++) {
        submit(s, 0, 1, 0);
        gone(s, 1, job, 0, 0, 0, "");
        for (int i = 0; i < 21; i++) {
            wait_us(s, SECOND);
            heartbeat(s, 1);
        }
    }
    submit(s, 0, 1, 0);
    assert_int_equal(job_view(s, 3).state, JOB_QUEUED);
    collected(s, 1, 2, 0);
    assert_int_equal(job_view(s, 3).state, JOB_STARTING);
    gone(s, 1, 3, 0, 0, 0, "");
    collected(s, 1, 3, 0);
    collected(s, 1, 1, 0);
    collected(s, 1, 1, 0); /* more than it can have */
    submit(s, 0, 1, 0);
    assert_int_equal(job_view(s, 4).state, JOB_STARTING);
    script_close(s);
}

static void many_unknown_tasks_take_several_steps(void **state)
{
    (void)state;
    static struct task_ref strays[2 * LIMIT_SLOTS_PER_WORKER + 1];
    struct script *s = script_open(NULL);
    had_jobs(s, 9);
    for (size_t i = 0; i < CADRE_COUNT_OF(strays); i++) {
        strays[i] = (struct task_ref){.job = {9}, .slot = (uint32_t)i, .incarnation = i + 1};
    }
    hello(s, 1, "a", 11, 2, strays, 500);
    size_t lines = 0;
    for (const char *at = s->transcript; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    assert_int_equal(lines, 501);
    script_skip(s);
    hello(s, 2, "b", 22, 2, strays, CADRE_COUNT_OF(strays));
    expect_output(
        s, "refuse link 2: INVALID_ARGUMENT: a worker holds at most 2048 tasks, not 2049\n");
    script_close(s);
}

static void a_start_that_was_missed_is_resent(void **state)
{
    (void)state;
    struct script *s = stage_started();
    started(s, 2, 1, 1);
    link_down(s, 1);
    link_down(s, 2);
    hello(s, 3, "a", 1001, 1, NULL, 0);
    expect_output(s, "welcome link 3: worker 1\n"
                     "start again job 1 on link 3\n");
    struct task_ref held = ref(s, 1, 1);
    hello(s, 4, "b", 1002, 1, &held, 1);
    expect_output(s, "welcome link 4: worker 2\n");
    script_close(s);
}

/* It was placed there when the exited task was collected; then the daemon was started again, and
 * lists that task once more. */
static void a_start_that_finds_no_slot_is_lost(void **state)
{
    (void)state;
    static const struct task_ref leftovers[] = {
        {.job = {9}, .slot = 0, .incarnation = 2}, {.job = {9}, .slot = 0, .incarnation = 3}};
    struct script *s = stage_started();
    had_jobs(s, 9);
    link_down(s, 1);
    hello(s, 3, "a", 1001, 1, leftovers, 2);
    expect_output(s, "welcome link 3: worker 1\n"
                     "record job 1: task 0 lost 0/0\n"
                     "stop task 9/0#2 on link 3\n"
                     "stop task 9/0#3 on link 3\n");
    collected(s, 3, 9, 0);
    expect_output(s, "stop task 9/0#1 on link 3\n"
                     "record! job 1: task 0#3 on a\n"
                     "start again job 1 on link 3\n");
    script_close(s);
}

static void a_task_that_vanished_is_lost(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    link_down(s, 2);
    hello(s, 4, "b", 1002, 1, NULL, 0);
    expect_output(s,
        "welcome link 4: worker 2\n"
        "tell job 1: abort g1: task 1 was lost with worker b, which came back without it\n"
        "record job 1: task 1 lost 0/0\n"
        "record! job 1: task 1#3 on b\n"
        "start again job 1 on link 4\n");
    script_close(s);
}

static void a_stop_that_was_missed_is_resent(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    link_down(s, 2);
    cancel(s, 9, 1);
    script_skip(s);
    struct task_ref held = ref(s, 1, 1);
    hello(s, 4, "b", 1002, 1, &held, 1);
    expect_output(s, "welcome link 4: worker 2\n"
                     "stop task 1/1#2 on link 4\n");
    script_close(s);
}

static void undrain(struct script *s, uint64_t call, const char *worker)
{
    struct core_event event = {.type = CORE_EVENT_DRAIN, .drain = {.call = {call}, .ends = true}};
    memcpy(event.drain.drained.worker, worker, strlen(worker));
    step(s, &event);
}

static bool drains(const struct script *s, const char *name)
{
    struct core_worker_view view;
    assert_true(core_worker_named(s->core, name, &view));
    return view.draining;
}

/* It belongs to the name: also of a daemon that is started again, or is not connected. */
static void a_drain_lasts_until_it_is_ended(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    script_skip(s);
    drain(s, 5, "a");
    expect_output(s, "record! worker a is drained\n"
                     "answer 5: job 0, 0 before\n");
    hello(s, 2, "a", 77, 1, NULL, 0);
    assert_true(drains(s, "a"));
    submit(s, 1, 1, 0);
    assert_int_equal(job_view(s, 1).state, JOB_QUEUED);
    link_down(s, 2);
    wait_us(s, 10 * SECOND);
    assert_int_equal(core_worker_count(s->core), 0);
    script_skip(s);
    undrain(s, 6, "a");
    expect_output(s, "record! worker a is not drained any more\n"
                     "answer 6: job 0, 0 before\n");
    join(s, 3, "a", 1);
    assert_int_equal(job_view(s, 1).state, JOB_STARTING);
    script_skip(s);
    undrain(s, 7, "a");
    expect_output(s,
        "answer 7: NOT_FOUND: no client drained a worker named a: `cadre workers` lists those "
        "that are drained\n");
    script_close(s);
}

/* Each ends by itself: the client's does not end the daemon's own. */
static void a_daemons_own_drain_is_of_its_incarnation(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    drain(s, 5, "a");
    draining(s, 1);
    undrain(s, 6, "a");
    assert_true(drains(s, "a"));
    hello(s, 2, "a", 1001, 1, NULL, 0); /* the same daemon, which does not drain any more */
    assert_false(drains(s, "a"));
    script_close(s);
}

static void a_drain_outlives_the_coordinator(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DRAIN,
                .restore_drain = {.worker = "a", .who = "alice", .why = "kernel"}});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE});
    join(s, 1, "a", 1);
    assert_true(drains(s, "a"));
    assert_string_equal(core_drain_of(s->core, "a")->who, "alice");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_and_is_listed),
        cmocka_unit_test(the_newest_common_protocol_is_used),
        cmocka_unit_test(a_hello_has_a_range_of_protocols),
        cmocka_unit_test(refuses_bad_hellos),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(comes_back_on_a_new_stream),
        cmocka_unit_test(a_lease_runs_out),
        cmocka_unit_test(who_was_paused_itself_loses_no_task),
        cmocka_unit_test(no_task_is_given_up_unread),
        cmocka_unit_test(silence_is_not_taken_for_a_stop),
        cmocka_unit_test(workers_have_a_limit),
        cmocka_unit_test(a_draining_worker_gets_no_tasks),
        cmocka_unit_test(unknown_tasks_are_ended),
        cmocka_unit_test(many_unknown_tasks_take_several_steps),
        cmocka_unit_test(what_is_not_collected_takes_entries),
        cmocka_unit_test(what_a_job_left_takes_entries),
        cmocka_unit_test(a_start_that_was_missed_is_resent),
        cmocka_unit_test(a_start_that_finds_no_slot_is_lost),
        cmocka_unit_test(a_task_that_vanished_is_lost),
        cmocka_unit_test(a_stop_that_was_missed_is_resent),
        cmocka_unit_test(a_drain_lasts_until_it_is_ended),
        cmocka_unit_test(a_daemons_own_drain_is_of_its_incarnation),
        cmocka_unit_test(a_drain_outlives_the_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
