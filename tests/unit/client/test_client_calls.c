/* SPDX-License-Identifier: Apache-2.0
 * Connecting, the calls with one answer, the form with callbacks, and closing in the middle. */
#include "stub.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cadre/client.h"
#include "cadre/client_coordinators.h"

struct world {
    struct stub stub;
    cadre_client *client;
};

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    stub_open(&world->stub, NULL);
    const cadre_client_options options = {.address = world->stub.address};
    assert_int_equal(cadre_client_connect(&options, &world->client), CADRE_OK);
    *state = world;
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    cadre_client_release(world->client);
    stub_close(&world->stub);
    free(world);
    return 0;
}

static void assert_says(const char *part)
{
    if (strstr(cadre_error_message(), part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, cadre_error_message());
    }
}

static void no_coordinator_is_reported_clearly(void **state)
{
    (void)state;
    char address[256];
    snprintf(address, sizeof address, "unix:%s/none.sock", test_temp_dir());
    cadre_client *client = (cadre_client *)&address;
    const cadre_client_options options = {.address = address};
    assert_int_equal(cadre_client_connect(&options, &client), CADRE_UNAVAILABLE);
    assert_null(client);
    assert_says("no coordinator answers at unix:");
    assert_says("start cadre-coordinator or give --coordinator / CADRE_COORDINATOR");
}

static void of_several_addresses_the_one_that_answers_is_used(void **state)
{
    struct world *world = *state;
    char addresses[512];
    cadre_client *client = NULL;
    snprintf(addresses, sizeof addresses, "unix:%s/none.sock,%s,unix:%s/none2.sock",
        test_temp_dir(), world->stub.address, test_temp_dir());
    const cadre_client_options options = {.address = addresses};
    assert_int_equal(cadre_client_connect(&options, &client), CADRE_OK);
    assert_string_equal(cadre_client_address(client), world->stub.address);
    cadre_job *job = NULL;
    assert_int_equal(cadre_client_job(client, 3, &job, NULL), CADRE_OK);
    cadre_result_release(job);
    assert_int_equal(cadre_client_job(client, JOB_NONE, &job, NULL), CADRE_NOT_FOUND);
    cadre_client_release(client);
    const cadre_client_options wrong = {.address = "unix:/a,,unix:/b"};
    assert_int_equal(cadre_client_connect(&wrong, &client), CADRE_INVALID_ARGUMENT);
    assert_says("one of them is empty");
}

/* In a process of its own, for it gives up being root; before a client was here, whose threads a
 * fork would lose. */
static void a_socket_of_others_is_said_clearly(void **state)
{
    (void)state;
    char folder[200];
    char address[256];
    snprintf(folder, sizeof folder, "%s/theirs", test_temp_dir());
    snprintf(address, sizeof address, "unix:%s/c.sock", folder);
    assert_int_equal(mkdir(folder, 0), 0);
    const cadre_client_options options = {.address = address};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cadre_client *client = NULL;
        bool root = geteuid() == 0;
        bool reported =
            (!root || setuid(65534) == 0) &&
            cadre_client_connect(&options, &client) == CADRE_UNAVAILABLE &&
            strstr(cadre_error_message(), "this user may not open the socket /") != NULL;
        _exit(reported ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void addresses_are_chosen_and_checked(void **state)
{
    struct world *world = *state;
    cadre_client *client = NULL;
    const cadre_client_options wrong = {.address = "10.0.0.1:80"};
    assert_int_equal(cadre_client_connect(&wrong, &client), CADRE_INVALID_ARGUMENT);
    assert_says("10.0.0.1:80");
    setenv("CADRE_COORDINATOR", world->stub.address, 1);
    assert_int_equal(cadre_client_connect(NULL, &client), CADRE_OK);
    cadre_client_release(client);
    assert_int_equal(cadre_client_connect(&wrong, &client), CADRE_INVALID_ARGUMENT);
    unsetenv("CADRE_COORDINATOR");
    cadre_client_release(NULL);
    cadre_result_release(NULL);
}

static void a_job_comes_whole(void **state)
{
    struct world *world = *state;
    cadre_job *job = NULL;
    assert_int_equal(cadre_client_job(world->client, 12, &job, NULL), CADRE_OK);
    assert_int_equal(job->id, 12);
    assert_string_equal(job->name, "digits");
    assert_int_equal(job->state, CADRE_JOB_RUNNING);
    assert_string_equal(cadre_job_state_name(job->state), "running");
    assert_string_equal(job->message, "a sentence");
    assert_int_equal(job->workers, 2);
    assert_int_equal(job->workers_min, 1);
    assert_int_equal(job->roster, 1);
    assert_int_equal(job->restarts, 6);
    assert_int_equal(job->replicas, 3);
    assert_int_equal(job->priority, -4);
    assert_int_equal(job->ended_us, 7);
    assert_string_equal(job->checkpoint, "0/c");
    assert_true(job->has_progress);
    assert_string_equal(job->progress.stream, "train");
    assert_int_equal(job->progress.metric_count, 2);
    assert_string_equal(job->progress.metrics[1].name, "accuracy");
    assert_true(job->progress.metrics[0].value == 0.25);
    assert_int_equal(job->task_count, 2);
    assert_string_equal(job->tasks[0].worker, "alpha");
    assert_string_equal(job->tasks[0].exit_text, "bad luck");
    assert_int_equal(job->tasks[0].exit_code, 3);
    assert_false(job->tasks[1].has_exit);
    assert_string_equal(job->tasks[1].exit_text, "");
    cadre_result_release(job);
    assert_int_equal(cadre_client_cancel(world->client, 12, &job, NULL), CADRE_OK);
    cadre_result_release(job);
}

static void listings_come_whole(void **state)
{
    struct world *world = *state;
    cadre_job_list *jobs = NULL;
    assert_int_equal(cadre_client_jobs(world->client, &jobs, NULL), CADRE_OK);
    assert_int_equal(jobs->count, 2);
    assert_true(jobs->more);
    assert_int_equal(jobs->jobs[0].id, 2);
    assert_false(jobs->jobs[0].has_progress);
    assert_int_equal(jobs->jobs[0].task_count, 0);
    assert_string_equal(jobs->jobs[1].progress.metrics[0].name, "loss");
    cadre_result_release(jobs);
    cadre_worker_list *workers = NULL;
    assert_int_equal(cadre_client_workers(world->client, NULL, &workers, NULL), CADRE_OK);
    assert_int_equal(workers->count, 2);
    assert_int_equal(workers->workers[1].gpu_count, 0);
    assert_int_equal(workers->workers[1].gpus_omitted, 8);
    assert_int_equal(workers->workers[1].gpus_usable, 8);
    assert_string_equal(workers->workers[1].gpu_reason, "");
    assert_string_equal(workers->workers[0].name, "alpha");
    assert_int_equal(workers->workers[0].slots, 4);
    assert_true(workers->workers[0].connected);
    cadre_result_release(workers);
    cadre_output_list *outputs = NULL;
    assert_int_equal(cadre_client_outputs(world->client, 1, &outputs, NULL), CADRE_OK);
    assert_int_equal(outputs->count, 2);
    assert_string_equal(outputs->outputs[1].path, "1/b/c");
    assert_int_equal(outputs->stored.count, 1);
    assert_string_equal(outputs->stored.checkpoints[0].path, "s3://bucket/run/checkpoint-4.json");
    assert_int_equal(outputs->stored.checkpoints[0].step, 4);
    assert_int_equal(outputs->stored.checkpoints[0].manifest_bytes, 5);
    assert_int_equal(outputs->stored.checkpoints[0].manifest_sha256[0], 6);
    cadre_result_release(outputs);
    cadre_coordinator_version *version = NULL;
    assert_int_equal(cadre_client_version(world->client, &version, NULL), CADRE_OK);
    assert_string_equal(version->version, "1.2.3");
    assert_int_equal(version->workers, 8);
    cadre_result_release(version);
}

static void coordinators_come_whole(void **state)
{
    struct world *world = *state;
    cadre_coordinator_list *list = NULL;
    assert_int_equal(cadre_client_coordinators(world->client, &list, NULL), CADRE_OK);
    assert_int_equal(list->count, 2);
    const cadre_coordinator *first = &list->coordinators[0];
    assert_string_equal(first->name, "c1");
    assert_string_equal(first->addresses, "h1:1");
    assert_string_equal(first->state, "follower");
    assert_string_equal(first->text, "reads");
    assert_false(first->leads);
    assert_int_equal(first->term, 6);
    assert_int_equal(first->since_us, 8);
    assert_int_equal(first->applied, 9);
    assert_int_equal(first->head, 10);
    assert_string_equal(first->version, "1.2.3");
    assert_int_equal(first->age_us, 11);
    assert_true(list->coordinators[1].leads);
    assert_int_equal(list->coordinators[1].term, 0);
    cadre_result_release(list);
}

static void a_worker_tells_its_gpus(void **state)
{
    struct world *world = *state;
    cadre_worker_list *workers = NULL;
    assert_int_equal(cadre_client_workers(world->client, "alpha", &workers, NULL), CADRE_OK);
    assert_int_equal(workers->count, 1);
    const cadre_worker *worker = &workers->workers[0];
    assert_int_equal(worker->gpu_count, 2);
    assert_int_equal(worker->gpus_usable, 1);
    assert_string_equal(worker->gpus[0].name, "NVIDIA H200");
    assert_string_equal(worker->gpus[0].uuid, "GPU-1");
    assert_int_equal(worker->gpus[0].memory_bytes, 7);
    assert_int_equal(worker->gpus[0].compute_major, 9);
    assert_string_equal(worker->gpus[1].uuid, "");
    assert_string_equal(worker->gpus[1].unused, "too old");
    assert_string_equal(worker->gpu_driver, "580.1");
    assert_string_equal(worker->gpu_runtime, "CUDA 13.0");
    assert_int_equal(worker->nccl, 22809);
    assert_string_equal(worker->gpu_reason, "1 is too old");
    cadre_result_release(workers);
    assert_int_equal(
        cadre_client_workers(world->client, "absent", &workers, NULL), CADRE_NOT_FOUND);
    assert_int_equal(
        cadre_client_workers(world->client, "", &workers, NULL), CADRE_INVALID_ARGUMENT);
}

static void a_worker_is_drained(void **state)
{
    struct world *world = *state;
    assert_int_equal(cadre_client_drain(world->client, "alpha", NULL, NULL), CADRE_OK);
    assert_int_equal(stub_seen(&world->stub).drains, 1);
    assert_int_equal(cadre_client_drain(world->client, "beta", NULL, NULL), CADRE_NOT_FOUND);
    assert_says("there is no worker of this name");
    assert_int_equal(cadre_client_drain(world->client, "", NULL, NULL), CADRE_INVALID_ARGUMENT);
    assert_says("DrainRequest.worker is empty");
    assert_int_equal(stub_seen(&world->stub).drains, 1);
}

static void refusals_and_nonsense_are_errors(void **state)
{
    struct world *world = *state;
    cadre_job *job = NULL;
    assert_int_equal(cadre_client_job(world->client, JOB_NONE, &job, NULL), CADRE_NOT_FOUND);
    assert_says("there is no job 404");
    assert_int_equal(
        cadre_client_job(world->client, JOB_GARBAGE, &job, NULL), CADRE_INVALID_ARGUMENT);
    assert_says("JobInfo");
    assert_null(job);
}

/* The stub of version 1.2.3 has no such method. */
static void an_unknown_method_names_both_versions(void **state)
{
    struct world *world = *state;
    cadre_job *job = NULL;
    assert_int_equal(cadre_client_checkpoint(world->client, 1, &job, NULL), CADRE_UNIMPLEMENTED);
    assert_says("has version 1.2.3 and does not know Checkpoint, which this client of "
                "version " CADRE_VERSION " asks for: upgrade the client");
}

static void what_is_not_wanted_may_be_left_out(void **state)
{
    struct world *world = *state;
    assert_int_equal(cadre_client_cancel(world->client, 12, NULL, NULL), CADRE_OK);
    assert_int_equal(cadre_client_version(world->client, NULL, NULL), CADRE_OK);
    assert_int_equal(
        cadre_client_watch(world->client, 1, NULL, NULL, NULL), CADRE_INVALID_ARGUMENT);
    assert_says("cadre_client_watch: the callback is NULL");
    assert_int_equal(
        cadre_client_logs(world->client, 1, NULL, NULL, NULL, NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_client_drain(world->client, NULL, NULL, NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_client_get_output(world->client, 1, NULL, 1, NULL), CADRE_INVALID_ARGUMENT);
}

static void states_of_later_versions_have_their_number(void **state)
{
    (void)state;
    assert_string_equal(cadre_job_state_name((cadre_job_state)9), "unknown (9)");
    assert_string_equal(cadre_task_state_name((cadre_task_state)77), "unknown (77)");
    assert_false(cadre_job_state_is_final((cadre_job_state)9));
}

static void a_silent_coordinator_is_not_waited_for(void **state)
{
    struct world *world = *state;
    cadre_client *hasty = NULL;
    cadre_job *job = NULL;
    const cadre_client_options options = {.address = world->stub.address, .timeout_us = 200000};
    cadre_status status;
    do {
        status = cadre_client_connect(&options, &hasty);
    } while (status == CADRE_DEADLINE_EXCEEDED); /* on a busy machine */
    assert_int_equal(status, CADRE_OK);
    assert_int_equal(cadre_client_job(hasty, JOB_HANGS, &job, NULL), CADRE_DEADLINE_EXCEEDED);
    assert_says("did not answer within 200 ms");
    cadre_client_release(hasty);
}

static void outputs_are_written_to_a_descriptor(void **state)
{
    struct world *world = *state;
    char path[TEST_PATH_BYTES];
    char got[32] = {0};
    test_path(path, test_temp_dir(), "out");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(cadre_client_get_output(world->client, 1, "0/a", fd, NULL), CADRE_OK);
    assert_int_equal(pread(fd, got, sizeof got, 0), 11);
    assert_string_equal(got, "hello world");
    assert_int_equal(
        cadre_client_get_output(world->client, 1, "0/short", fd, NULL), CADRE_DATA_LOSS);
    assert_says("ended after 6 of 11 bytes");
    assert_int_equal(cadre_client_get_output(world->client, 1, "0/x", fd, NULL), CADRE_NOT_FOUND);
    close(fd);
    assert_int_not_equal(cadre_client_get_output(world->client, 1, "0/a", fd, NULL), CADRE_OK);
    assert_says("cannot write 6 bytes to 0/a: Bad file descriptor");
}

/* ---- with callbacks ---- */

struct completion {
    cadre_client *client;
    int count;
    cadre_status status;
    cadre_status inner; /* of what the callback itself tried */
    char message[256];
    cadre_job *job;
    cadre_job *second;
    bool chain;
};

static void on_done(cadre_status status, const char *message, void *user)
{
    struct completion *completion = user;
    completion->count++;
    completion->status = status;
    snprintf(completion->message, sizeof completion->message, "%s", message);
    if (completion->chain) {
        cadre_job *job = NULL;
        completion->chain = false;
        completion->inner = cadre_client_job(completion->client, 1, &job, NULL);
        const cadre_then then = {.done = on_done, .user = completion};
        assert_int_equal(
            cadre_client_job(completion->client, 4, &completion->second, &then), CADRE_OK);
        assert_int_equal(cadre_client_run(completion->client, 0), CADRE_FAILED_PRECONDITION);
    }
}

static void calls_run_beside_each_other(void **state)
{
    struct world *world = *state;
    struct completion a = {.client = world->client};
    struct completion b = {.client = world->client};
    const cadre_then then_a = {.done = on_done, .user = &a};
    const cadre_then then_b = {.done = on_done, .user = &b};
    assert_int_equal(cadre_client_run(world->client, 0), CADRE_OK);
    assert_int_equal(cadre_client_job(world->client, 3, &a.job, &then_a), CADRE_OK);
    assert_int_equal(cadre_client_job(world->client, JOB_NONE, &b.job, &then_b), CADRE_OK);
    assert_int_equal(a.count + b.count, 0);
    assert_int_equal(cadre_client_run(world->client, 20000000), CADRE_OK);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.status, CADRE_OK);
    assert_string_equal(a.message, "");
    assert_int_equal(a.job->id, 3);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.status, CADRE_NOT_FOUND);
    assert_string_equal(b.message, "there is no job 404");
    assert_null(b.job);
    cadre_result_release(a.job);
}

static void callbacks_may_start_calls_but_not_block(void **state)
{
    struct world *world = *state;
    struct completion completion = {.client = world->client, .chain = true};
    const cadre_then then = {.done = on_done, .user = &completion};
    assert_int_equal(cadre_client_job(world->client, 3, &completion.job, &then), CADRE_OK);
    assert_int_equal(cadre_client_run(world->client, 20000000), CADRE_OK);
    assert_int_equal(completion.inner, CADRE_FAILED_PRECONDITION);
    assert_int_equal(completion.count, 2);
    assert_int_equal(completion.second->id, 4);
    cadre_result_release(completion.job);
    cadre_result_release(completion.second);
}

static void running_ends_at_its_time_and_when_woken(void **state)
{
    struct world *world = *state;
    struct completion completion = {.client = world->client};
    const cadre_then then = {.done = on_done, .user = &completion};
    assert_int_equal(cadre_client_job(world->client, JOB_HANGS, &completion.job, &then), CADRE_OK);
    assert_int_equal(cadre_client_run(world->client, 0), CADRE_DEADLINE_EXCEEDED);
    assert_int_equal(cadre_client_run(world->client, 30000), CADRE_DEADLINE_EXCEEDED);
    cadre_client_wake(world->client);
    assert_int_equal(cadre_client_run(world->client, 20000000), CADRE_CANCELLED);
    assert_int_equal(completion.count, 0);
    /* A wake does not disturb a call that blocks. */
    cadre_client_wake(world->client);
    cadre_job *job = NULL;
    assert_int_equal(cadre_client_job(world->client, 1, &job, NULL), CADRE_OK);
    cadre_result_release(job);
    cadre_client_release(world->client);
    world->client = NULL;
    assert_int_equal(completion.count, 1);
    assert_int_equal(completion.status, CADRE_CANCELLED);
}

static void says(struct world *world, const char *ledger, const char *age)
{
    pthread_mutex_lock(&world->stub.lock);
    world->stub.ledger = ledger;
    world->stub.age = age;
    pthread_mutex_unlock(&world->stub.lock);
}

/* Makes a call; with it `sent` is to go, and the answer is made from `ledger`. */
static void answered_from(struct world *world, const char *ledger, const char *sent)
{
    cadre_job *job = NULL;
    says(world, ledger, NULL);
    assert_int_equal(cadre_client_job(world->client, 7, &job, NULL), CADRE_OK);
    cadre_result_release(job);
    assert_string_equal(stub_seen(&world->stub).ledger, sent);
}

static void the_newest_ledger_goes_with_each_call(void **state)
{
    struct world *world = *state;
    cadre_job *job = NULL;
    answered_from(world, "5.2.90", "");
    answered_from(world, "5.2.100", "5.2.90");
    answered_from(world, "5.2.99", "5.2.100"); /* which a coordinator never says */
    answered_from(world, "5.3.7", "5.2.100");
    answered_from(world, "5.2.200", "5.3.7");
    answered_from(world, NULL, "5.3.7");
    answered_from(world, "6.1.1", "5.3.7");
    answered_from(world, "6.1", "6.1.1"); /* it is of another cluster, which counts alone */
    answered_from(world, "6.1.99999999999999999999", "6.1.1");
    says(world, "6.1.8", NULL);
    assert_int_equal(cadre_client_job(world->client, JOB_NONE, &job, NULL), CADRE_NOT_FOUND);
    answered_from(world, NULL, "6.1.8"); /* that there was none is an answer, too */
}

static void an_old_answer_says_its_age(void **state)
{
    struct world *world = *state;
    cadre_job_list *jobs = NULL;
    cadre_client *client = NULL;
    uint64_t age_us = 1;
    const cadre_client_options options = {.address = world->stub.address, .stale_age_us = &age_us};
    assert_false(stub_seen(&world->stub).stale);
    assert_int_equal(cadre_client_connect(&options, &client), CADRE_OK);
    assert_int_equal(age_us, 0);
    says(world, "5.2.90", "1500");
    assert_int_equal(cadre_client_jobs(client, &jobs, NULL), CADRE_OK);
    cadre_result_release(jobs);
    assert_true(stub_seen(&world->stub).stale);
    assert_int_equal(age_us, 1500000);
    says(world, "5.2.90", "unknown");
    assert_int_equal(cadre_client_jobs(client, &jobs, NULL), CADRE_OK);
    cadre_result_release(jobs);
    assert_true(age_us == UINT64_MAX);
    says(world, "5.2.90", NULL);
    assert_int_equal(cadre_client_jobs(client, &jobs, NULL), CADRE_OK);
    cadre_result_release(jobs);
    assert_int_equal(age_us, 0);
    cadre_client_release(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_of_others_is_said_clearly),
        cmocka_unit_test(no_coordinator_is_reported_clearly),
        cmocka_unit_test_setup_teardown(addresses_are_chosen_and_checked, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            of_several_addresses_the_one_that_answers_is_used, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_job_comes_whole, open_world, close_world),
        cmocka_unit_test_setup_teardown(listings_come_whole, open_world, close_world),
        cmocka_unit_test_setup_teardown(coordinators_come_whole, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_worker_tells_its_gpus, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_worker_is_drained, open_world, close_world),
        cmocka_unit_test_setup_teardown(refusals_and_nonsense_are_errors, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            an_unknown_method_names_both_versions, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            what_is_not_wanted_may_be_left_out, open_world, close_world),
        cmocka_unit_test(states_of_later_versions_have_their_number),
        cmocka_unit_test_setup_teardown(
            a_silent_coordinator_is_not_waited_for, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            outputs_are_written_to_a_descriptor, open_world, close_world),
        cmocka_unit_test_setup_teardown(calls_run_beside_each_other, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            callbacks_may_start_calls_but_not_block, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            running_ends_at_its_time_and_when_woken, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            the_newest_ledger_goes_with_each_call, open_world, close_world),
        cmocka_unit_test_setup_teardown(an_old_answer_says_its_age, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
