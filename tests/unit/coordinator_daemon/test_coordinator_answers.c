/* SPDX-License-Identifier: Apache-2.0
 * Answers of a job below /api/ that a thread makes: what they are, who gets them, and what becomes
 * of them when each call fails once. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/http/server.h"
#include "common/json/json.h"
#include "common/rpc/loop.h"
#include "common/view/view.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/pages/api_deferred.h"
#include "coordinator/daemon/pages/pages.h"
#include "tests/lib/test.h"

#define CLIENTS   6     /* more than an answer has room for at first */
#define MANY      16384 /* tasks: LIMIT_TASKS_PER_JOB */
#define WAIT_US   (30 * CADRE_US_PER_S)
#define TEXT_SIZE ((size_t)16 * 1024 * 1024)

static struct daemon stand;
static int port;

/* ---- the engine: one job ---- */

static struct task_info tasks[MANY];
static size_t task_count;
static bool forgotten;

static struct job_info the_job(void)
{
    return (struct job_info){.id = {7},
        .name = "a job",
        .program = "program",
        .state = JOB_RUNNING,
        .message = "",
        .checkpoint = "",
        .outputs_folder = "",
        .workers = (uint32_t)task_count,
        .tasks = tasks,
        .task_count = task_count};
}

cadre_status listing_job(
    struct engine *engine, struct job_id job, struct job_info *ret_info, struct cadre_error *error)
{
    (void)engine;
    *ret_info = the_job();
    return job.n == 7 ? CADRE_OK : cadre_error_set(error, CADRE_NOT_FOUND, "there is no job");
}

bool engine_job_basics(struct engine *engine, struct job_id job, struct job_info *ret_info)
{
    (void)engine;
    *ret_info = the_job();
    return job.n == 7 && !forgotten;
}

/* ---- the page: as api.c, without access ---- */

static void serve(void *user, struct http_request *request)
{
    struct api_request api = {
        .daemon = user, .request = request, .key = "the job", .began_us = clock_monotonic_us()};
    snprintf(api.subject, sizeof api.subject, "7");
    struct http_response *kept =
        answer_cache_find(stand.answer_cache, api.key, clock_monotonic_us());
    if (kept != NULL) {
        http_answer(request, http_response_share(kept));
    } else if (!api_deferred_join(&api)) {
        api_job(&api);
    }
}

static const struct http_page page = {.path = "/job", .serve = serve};

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    stand = (struct daemon){.engine = NULL};
    forgotten = false;
    for (size_t i = 0; i < MANY; i++) {
        tasks[i] = (struct task_info){
            .slot = (uint32_t)i, .worker = "w", .incarnation = i + 1, .state = TASK_RUNNING};
    }
    assert_ok(rpc_loop_open(&stand.loop, &error), &error);
    stand.file_pool.loop = stand.loop;
    const struct http_options options = {.address = "127.0.0.1:0",
        .program = "test",
        .pages = &page,
        .page_count = 1,
        .user = &stand};
    assert_ok(
        http_server_open(rpc_loop_uv(stand.loop), &options, &stand.http, &port, &error), &error);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_server_close(stand.http);
    file_work_pool_wait(&stand.file_pool);
    assert_null(stand.deferred_answers);
    api_forget(&stand);
    rpc_loop_close(stand.loop);
    return 0;
}

/* ---- clients ---- */

struct asker {
    int fd;
    char *text;
    size_t size;
};

static void run_loop(void)
{
    bool never = false;
    (void)rpc_loop_run_until(stand.loop, &never, clock_monotonic_us() + CADRE_US_PER_MS);
}

static struct asker asker_open(void)
{
    static const char request[] =
        "GET /job HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const struct sockaddr_in where = {.sin_family = AF_INET,
        .sin_port = htons((in_port_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct asker asker = {
        .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .text = malloc(TEXT_SIZE)};
    assert_non_null(asker.text);
    assert_int_equal(connect(asker.fd, (const struct sockaddr *)&where, sizeof where), 0);
    assert_int_equal(send(asker.fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    return asker;
}

static bool has_ended(void *data)
{
    struct asker *asker = data;
    run_loop();
    ssize_t got = 0;
    while ((got = recv(asker->fd, asker->text + asker->size, TEXT_SIZE - 1 - asker->size,
                MSG_DONTWAIT)) > 0) {
        asker->size += (size_t)got;
    }
    asker->text[asker->size] = '\0';
    return got == 0;
}

static void asker_close(struct asker *asker)
{
    close(asker->fd);
    free(asker->text);
}

/* The status of the answer; 0: the connection was closed without one. */
static int status_of(const struct asker *asker)
{
    return asker->size > 0 ? (int)strtol(asker->text + strlen("HTTP/1.1 "), NULL, 10) : 0;
}

static const char *body_of(const struct asker *asker)
{
    const char *end = strstr(asker->text, "\r\n\r\n");
    return end != NULL ? end + 4 : "";
}

static bool is_made(void *data)
{
    (void)data;
    run_loop();
    return stand.deferred_answers != NULL;
}

/* What the object of the job has to be. */
static void assert_is_the_job(const char *text)
{
    const struct job_info info = the_job();
    cadre_job *job = view_job_new(&info, NULL);
    char *wanted = api_text(json_of_job(job));
    assert_string_equal(text, wanted);
    free(wanted);
    cadre_result_release(job);
}

/* Or it has none, because there was no memory for that either. */
static void assert_is_answer_or_reason(const struct asker *asker)
{
    int status = status_of(asker);
    assert_true(status == 200 || status == 429 || status == 0);
    if (status == 429) {
        assert_non_null(strstr(asker->text, "ask again later"));
    } else if (status == 200) {
        assert_is_the_job(body_of(asker));
    }
}

/* ---- tests ---- */

/* The loop only packs it: the object is a thread's work. */
static void a_job_of_many_tasks_is_a_threads_work(void **state)
{
    (void)state;
    task_count = MANY;
    struct asker asker = asker_open();
    assert_true(test_wait(is_made, NULL, WAIT_US));
    assert_int_equal(asker.size, 0);
    assert_true(test_wait(has_ended, &asker, WAIT_US));
    assert_int_equal(status_of(&asker), 200);
    assert_is_the_job(body_of(&asker));
    asker_close(&asker);
}

static void a_job_of_few_is_answered_at_once(void **state)
{
    (void)state;
    task_count = 2;
    struct asker asker = asker_open();
    while (!has_ended(&asker)) {
        assert_null(stand.deferred_answers);
    }
    assert_int_equal(status_of(&asker), 200);
    assert_is_the_job(body_of(&asker));
    asker_close(&asker);
}

static void a_job_that_is_forgotten_meanwhile(void **state)
{
    (void)state;
    task_count = MANY;
    struct asker asker = asker_open();
    assert_true(test_wait(is_made, NULL, WAIT_US));
    forgotten = true;
    assert_true(test_wait(has_ended, &asker, WAIT_US));
    assert_int_equal(status_of(&asker), 404);
    asker_close(&asker);
}

/* All but one go away. */
static void who_goes_away_changes_nothing(void **state)
{
    (void)state;
    task_count = MANY;
    struct asker askers[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++) {
        askers[i] = asker_open();
    }
    assert_true(test_wait(is_made, NULL, WAIT_US));
    for (size_t i = 1; i < CLIENTS; i++) {
        asker_close(&askers[i]);
    }
    assert_true(test_wait(has_ended, &askers[0], WAIT_US));
    assert_int_equal(status_of(&askers[0]), 200);
    asker_close(&askers[0]);
}

/* Each gets the answer, a reason, or a closed connection, and the next one who asks the answer. */
static void each_call_fails_once(void **state)
{
    (void)state;
    bool met = true;
    task_count = 100;
    for (uint64_t nth = 1; met; nth++) {
        struct asker askers[CLIENTS];
        api_forget(&stand);
        fault_arm("api.", nth);
        for (size_t i = 0; i < CLIENTS; i++) {
            askers[i] = asker_open();
        }
        for (size_t i = 0; i < CLIENTS; i++) {
            assert_true(test_wait(has_ended, &askers[i], WAIT_US));
        }
        met = fault_disarm();
        assert_null(stand.deferred_answers);
        for (size_t i = 0; i < CLIENTS; i++) {
            assert_is_answer_or_reason(&askers[i]);
            asker_close(&askers[i]);
        }
        struct asker next = asker_open();
        assert_true(test_wait(has_ended, &next, WAIT_US));
        assert_int_equal(status_of(&next), 200);
        asker_close(&next);
        assert_true(met || nth > 4);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_job_of_many_tasks_is_a_threads_work),
        TEST(a_job_of_few_is_answered_at_once), TEST(a_job_that_is_forgotten_meanwhile),
        TEST(who_goes_away_changes_nothing), TEST(each_call_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
