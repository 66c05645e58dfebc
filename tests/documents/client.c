/* SPDX-License-Identifier: Apache-2.0
 * What a program can ask a cluster: cadre/client.h. Here it asks a coordinator with one worker,
 * which this test starts. To submit a job and follow it: deploy/examples/submit. */
#include "cadre/client.h"
#include "cadre/client_coordinators.h"
#include "cadre/client_trace.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/program.h"
#include "tests/lib/test.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CADRE_OK) {                                                                  \
            fail_msg("%s: %s", #call, cadre_error_message());                                      \
        }                                                                                          \
    } while (0)

static struct program coordinator;
static struct program worker;
static char address[TEST_PATH_BYTES];
static cadre_client *client;

/* --- the cluster --- */

/* Who answers there, and of which version both are. */
static void a_client_is_connected(void **state)
{
    (void)state;
    cadre_coordinator_version *version;
    OK(cadre_client_version(client, &version, NULL));
    assert_string_equal(version->version, CADRE_VERSION);
    assert_int_equal(version->jobs_live, 0);
    assert_string_equal(cadre_client_address(client), address);
    cadre_result_release(version);
}

/* Which coordinators there are: one, which leads. */
static void coordinators_are_listed(void **state)
{
    (void)state;
    cadre_coordinator_list *list;
    OK(cadre_client_coordinators(client, &list, NULL));
    assert_int_equal(list->count, 1);
    const cadre_coordinator *first = &list->coordinators[0];
    assert_true(first->leads);
    assert_string_equal(first->state, "leading");
    assert_string_equal(first->addresses, address);
    assert_int_equal(first->term, 1);
    cadre_result_release(list);
}

/* Its workers: all, or one with all that it tells. */
static void workers_are_listed(void **state)
{
    (void)state;
    cadre_worker_list *workers;
    OK(cadre_client_workers(client, NULL, &workers, NULL));
    assert_int_equal(workers->count, 1);
    assert_string_equal(workers->workers[0].name, "alpha");
    assert_int_equal(workers->workers[0].slots, 2);
    cadre_result_release(workers);
    OK(cadre_client_workers(client, "alpha", &workers, NULL));
    assert_true(workers->workers[0].connected);
    cadre_result_release(workers);
    assert_int_equal(cadre_client_workers(client, "beta", &workers, NULL), CADRE_NOT_FOUND);
}

/* A worker is emptied, so that its host can be switched off, and takes tasks again. */
static void a_worker_is_drained(void **state)
{
    (void)state;
    cadre_worker_list *workers;
    OK(cadre_client_drain(client, "alpha", "new disks", NULL));
    OK(cadre_client_workers(client, "alpha", &workers, NULL));
    assert_true(workers->workers[0].draining);
    assert_string_equal(workers->workers[0].drained_why, "new disks");
    cadre_result_release(workers);
    OK(cadre_client_undrain(client, "alpha", NULL));
    OK(cadre_client_workers(client, "alpha", &workers, NULL));
    assert_false(workers->workers[0].draining);
    cadre_result_release(workers);
}

/* --- a job --- */

static bool until_it_ended(const cadre_job *job, void *user)
{
    *(cadre_job_state *)user = job->state;
    return !cadre_job_state_is_final(job->state);
}

/* Sums up what a job did in the steps that are traced. */
static bool count_spans(const cadre_trace *trace, void *user)
{
    *(size_t *)user += trace->span_count;
    return true; /* false would end the trace */
}

/* A job is listed, its tasks are shown, and what it consumed is proved: one that consumed nothing
 * has no epochs, and one that has ended saves nothing more. */
static void a_job_is_looked_at(void **state)
{
    (void)state;
    static const char *const arguments[] = {"-c", "exit 0"};
    const cadre_submit_options options = {
        .program = "/bin/sh", .arguments = arguments, .argument_count = 2, .name = "nothing"};
    cadre_job_state job_state;
    cadre_submitted submitted;
    cadre_job_list *jobs;
    cadre_job *job;
    cadre_verification *proof;
    cadre_job_series *metrics;
    cadre_history *history;
    cadre_login *login;
    const cadre_trace_options next_five = {.steps = 5, .limit_us = 1000000};
    size_t spans = 0;
    OK(cadre_client_submit(client, &options, &submitted, NULL));
    OK(cadre_client_watch(client, submitted.job, until_it_ended, &job_state, NULL));
    assert_string_equal(cadre_job_state_name(job_state), "succeeded");
    OK(cadre_client_jobs(client, &jobs, NULL));
    assert_int_equal(jobs->count, 1);
    assert_string_equal(jobs->jobs[0].name, "nothing");
    cadre_result_release(jobs);
    OK(cadre_client_job(client, submitted.job, &job, NULL));
    assert_int_equal(job->task_count, 1);
    assert_string_equal(cadre_task_state_name(job->tasks[0].state), "exited");
    cadre_result_release(job);
    OK(cadre_client_verify(client, submitted.job, NULL, &proof, NULL));
    assert_true(proof->tiled);
    assert_int_equal(proof->epoch_count, 0);
    assert_string_equal(cadre_verdict_name(CADRE_VERDICT_EXACT), "exact");
    cadre_result_release(proof);
    OK(cadre_client_metrics(client, submitted.job, NULL, &metrics, NULL));
    assert_int_equal(metrics->count, 0); /* it reported nothing */
    cadre_result_release(metrics);
    OK(cadre_client_login(client, &login, NULL));
    assert_string_equal(login->role, "local");
    assert_string_equal(login->token, ""); /* there is no page */
    cadre_result_release(login);
    OK(cadre_client_history(client, submitted.job, 0, 0, &history, NULL));
    assert_string_equal(cadre_event_kind_name(history->events[0].kind), "submitted");
    assert_int_equal(history->events[history->count - 1].kind, CADRE_EVENT_ENDED);
    cadre_result_release(history);
    assert_int_equal(/* only steps to come can be traced */
        cadre_client_trace(client, submitted.job, &next_five, count_spans, &spans, NULL),
        CADRE_FAILED_PRECONDITION);
    assert_int_equal(spans, 0);
    assert_int_equal(
        cadre_client_checkpoint(client, submitted.job, &job, NULL), CADRE_FAILED_PRECONDITION);
}

/* --- calls that do not block --- */

struct answer {
    cadre_job_list *jobs;
    bool is_there;
};

static void on_answer(cadre_status status, const char *message, void *user)
{
    (void)message;
    ((struct answer *)user)->is_there = status == CADRE_OK;
}

/* With a `then` a call only starts; running the client carries it out, and a wake ends that. */
static void a_call_is_started(void **state)
{
    (void)state;
    struct answer answer = {.is_there = false};
    const cadre_then then = {.done = on_answer, .user = &answer};
    OK(cadre_client_jobs(client, &answer.jobs, &then));
    assert_false(answer.is_there);
    OK(cadre_client_run(client, 60000000));
    assert_true(answer.is_there);
    assert_int_equal(answer.jobs->count, 1);
    cadre_result_release(answer.jobs);
    answer.is_there = false;
    OK(cadre_client_jobs(client, &answer.jobs, &then));
    cadre_client_wake(client);
    assert_int_equal(cadre_client_run(client, 60000000), CADRE_CANCELLED);
    OK(cadre_client_run(client, 60000000));
    assert_true(answer.is_there);
    cadre_result_release(answer.jobs);
}

/* --- the daemons --- */

static bool has_worker(void *data)
{
    cadre_worker_list *workers = NULL;
    (void)data;
    bool has =
        cadre_client_workers(client, NULL, &workers, NULL) == CADRE_OK && workers->count == 1;
    cadre_result_release(workers);
    return has;
}

static bool is_connected(void *data)
{
    const cadre_client_options options = {.address = address};
    (void)data;
    return cadre_client_connect(&options, &client) == CADRE_OK;
}

static int begin(void **state)
{
    (void)state;
    char states[TEST_PATH_BYTES];
    char work[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    snprintf(address, sizeof address, "unix:%s/c", folder);
    const char *const coordinates[] = {
        COORDINATOR, "--listen", address, "--state-dir", test_path(states, folder, "states"), NULL};
    const char *const works[] = {WORKER, "--coordinator", address, "--state-dir",
        test_path(work, folder, "work"), "--name", "alpha", "--slots", "2", NULL};
    program_start(&(struct program_spec){.argv = coordinates}, &coordinator);
    program_start(&(struct program_spec){.argv = works}, &worker);
    if (!test_wait(is_connected, NULL, PROGRAM_DEADLINE_US) ||
        !test_wait(has_worker, NULL, PROGRAM_DEADLINE_US)) {
        fprintf(stderr, "no cluster: %s\n", cadre_error_message());
        return 1;
    }
    return 0;
}

static int end(void **state)
{
    struct program_result result;
    (void)state;
    cadre_client_release(client);
    program_signal(&worker, SIGTERM);
    program_finish(&worker, PROGRAM_DEADLINE_US, &result);
    program_result_free(&result);
    program_close(&worker);
    program_close(&coordinator);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_connected),
        cmocka_unit_test(coordinators_are_listed),
        cmocka_unit_test(workers_are_listed),
        cmocka_unit_test(a_worker_is_drained),
        cmocka_unit_test(a_job_is_looked_at),
        cmocka_unit_test(a_call_is_started),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
