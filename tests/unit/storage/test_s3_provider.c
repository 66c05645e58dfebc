/* SPDX-License-Identifier: Apache-2.0
 * Credentials that end: renewed in time by one thread while the others go on, kept where they
 * cannot be renewed, looked for again where the store refused them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/thread.h"
#include "tests/lib/test.h"
#include "tests/unit/storage/s3_standin.h"

#define NOW_US  UINT64_C(1369353600000000) /* 24 May 2013, 00:00:00 */
#define SOON    (clock_monotonic_us() + 600 * CADRE_US_PER_S)
#define THREADS 8
#define URL     "http://169.254.170.2/x"

#define JSON(key, ends)                                                                            \
    "{\"AccessKeyId\": \"" key "\", \"SecretAccessKey\": \"s\", \"Expiration\": \"" ends "\"}"
#define GOOD(key, ends)                                                                            \
    {                                                                                              \
        "GET", URL, NULL, CADRE_OK, 200, JSON(key, ends)                                           \
    }
#define BAD                                                                                        \
    {                                                                                              \
        "GET", URL, NULL, CADRE_OK, 500, ""                                                        \
    }

struct bench {
    struct standin standin;
    struct storage_variables variables;
    struct s3_provider *provider;
};

static void begin(struct bench *bench)
{
    standin_set(&bench->standin, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
    bench->standin.now_us = NOW_US;
    bench->variables = standin_variables(&bench->standin);
    bench->provider = standin_provider(&bench->standin, &bench->variables);
}

static const struct s3_credentials *taken(struct bench *bench, const char *key)
{
    const struct s3_credentials *credentials = NULL;
    struct cadre_error error;
    assert_ok(s3_provider_take(bench->provider, SOON, &credentials, &error), &error);
    assert_string_equal(credentials->access_key, key);
    return credentials;
}

static void assert_takes(struct bench *bench, const char *key)
{
    s3_provider_give_back(bench->provider, taken(bench, key));
}

static void assert_fails(struct bench *bench, cadre_status status, const char *part)
{
    const struct s3_credentials *credentials = NULL;
    struct cadre_error error;
    assert_error(
        s3_provider_take(bench->provider, SOON, &credentials, &error), status, &error, part);
}

static void advance(struct bench *bench, uint64_t seconds)
{
    __atomic_add_fetch(&bench->standin.now_us, seconds * CADRE_US_PER_S, __ATOMIC_SEQ_CST);
}

static void renewed_before_they_end(void **state)
{
    struct bench bench = {
        .standin.script = {GOOD("A", "2013-05-24T01:00:00Z"), GOOD("B", "2013-05-24T02:00:00Z")}};
    (void)state;
    begin(&bench);
    const struct s3_credentials *old = taken(&bench, "A");
    advance(&bench, 3600 - 301);
    assert_takes(&bench, "A");
    assert_int_equal(bench.standin.asked, 1);
    advance(&bench, 2); /* five minutes before the end */
    assert_takes(&bench, "B");
    assert_takes(&bench, "B");
    assert_int_equal(bench.standin.asked, 2);
    assert_string_equal(old->access_key, "A"); /* until it is given back */
    assert_string_equal(old->secret_key, "s");
    s3_provider_give_back(bench.provider, old);
    s3_provider_close(bench.provider);
}

static void a_renewal_that_fails_is_repeated_while_the_old_ones_hold(void **state)
{
    struct bench bench = {.standin.script = {GOOD("A", "2013-05-24T01:00:00Z"), BAD, BAD, BAD, BAD,
                              GOOD("B", "2013-05-24T02:00:00Z")}};
    (void)state;
    begin(&bench);
    assert_takes(&bench, "A");
    advance(&bench, 3600 - 200);
    assert_takes(&bench, "A");
    assert_takes(&bench, "A"); /* not asked again at once */
    assert_int_equal(bench.standin.asked, 2);
    advance(&bench, 6);
    assert_takes(&bench, "A");
    assert_int_equal(bench.standin.asked, 3);
    advance(&bench, 200);
    assert_fails(&bench, CADRE_UNAUTHENTICATED,
        "the credentials of the container's agent (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI) ended "
        "at "
        "2013-05-24 01:00:00 UTC, and no new ones came: the container's agent");
    assert_fails(&bench, CADRE_UNAUTHENTICATED, "HTTP 500");
    assert_int_equal(bench.standin.asked, 4);
    advance(&bench, 6);
    assert_fails(&bench, CADRE_UNAUTHENTICATED, "HTTP 500");
    assert_int_equal(bench.standin.asked, 5);
    advance(&bench, 6);
    assert_takes(&bench, "B");
    s3_provider_close(bench.provider);
}

/* A source that gives what it has, though it ends soon: used, and asked again after a pause. */
static void credentials_that_end_soon(void **state)
{
    struct bench bench = {
        .standin.script = {GOOD("A", "2013-05-24T00:01:00Z"), GOOD("A", "2013-05-24T00:01:00Z"),
            GOOD("B", "2013-05-24T02:00:00Z"), GOOD("C", "2013-05-24T02:00:02Z"),
            GOOD("D", "2013-05-24T04:00:00Z")}};
    (void)state;
    begin(&bench);
    assert_takes(&bench, "A");
    assert_takes(&bench, "A");
    assert_int_equal(bench.standin.asked, 1);
    advance(&bench, 6);
    assert_takes(&bench, "A");
    assert_int_equal(bench.standin.asked, 2);
    advance(&bench, 6);
    assert_takes(&bench, "B");
    advance(&bench, 7200 - 13);
    assert_takes(&bench, "C");
    advance(&bench, 4); /* it ended within the pause */
    assert_takes(&bench, "D");
    assert_int_equal(bench.standin.asked, 5);
    s3_provider_close(bench.provider);
}

static void a_clock_that_is_set_back(void **state)
{
    struct bench bench = {.standin.script = {BAD, GOOD("A", "2013-05-24T01:00:00Z")}};
    (void)state;
    begin(&bench);
    assert_fails(&bench, CADRE_UNAVAILABLE, "HTTP 500");
    bench.standin.now_us = NOW_US - 3600 * CADRE_US_PER_S;
    assert_takes(&bench, "A");
    s3_provider_close(bench.provider);
}

static void refused_ones_are_looked_for_again(void **state)
{
    struct bench bench = {.standin.script = {GOOD("A", "2013-05-24T01:00:00Z"),
                              GOOD("B", "2013-05-24T01:00:00Z"), BAD}};
    (void)state;
    begin(&bench);
    const struct s3_credentials *one = taken(&bench, "A");
    const struct s3_credentials *same = taken(&bench, "A");
    s3_provider_refuse(bench.provider, one);
    assert_takes(&bench, "B");
    s3_provider_refuse(bench.provider, same); /* which are not the present ones any more */
    assert_takes(&bench, "B");
    assert_int_equal(bench.standin.asked, 2);
    assert_string_equal(one->access_key, "A");
    s3_provider_give_back(bench.provider, one);
    s3_provider_give_back(bench.provider, same);
    s3_provider_give_back(bench.provider, NULL);
    one = taken(&bench, "B");
    s3_provider_refuse(bench.provider, one);
    s3_provider_give_back(bench.provider, one);
    assert_fails(&bench, CADRE_UNAVAILABLE, "HTTP 500");
    s3_provider_close(bench.provider);
    s3_provider_close(NULL);
}

/* Also when the last look failed just now. */
static void refused_ones_after_a_look_that_failed(void **state)
{
    struct bench bench = {.standin.script = {GOOD("A", "2013-05-24T01:00:00Z"), BAD,
                              GOOD("B", "2013-05-24T03:00:00Z")}};
    (void)state;
    begin(&bench);
    assert_takes(&bench, "A");
    advance(&bench, 3500);
    const struct s3_credentials *old = taken(&bench, "A");
    assert_int_equal(bench.standin.asked, 2);
    s3_provider_refuse(bench.provider, old);
    s3_provider_give_back(bench.provider, old);
    assert_takes(&bench, "B");
    s3_provider_close(bench.provider);
}

/* A file, an answer, what is found, what is signed: each has memory of its own. */
static void memory_that_is_short(void **state)
{
    struct bench bench = {.provider = NULL};
    char path[TEST_PATH_BYTES];
    uint64_t nth = 0;
    bool was_hit = true;
    (void)state;
    test_write(test_path(path, test_temp_dir(), "token"), "Bearer x");
    while (was_hit) {
        const struct s3_credentials *credentials = NULL;
        struct cadre_error error;
        struct s3_signed sent;
        const struct s3_request request = {
            .method = "GET", .host = "h", .path = "/b/k", .payload_sha256 = S3_EMPTY_SHA256};
        bench = (struct bench){.standin.script = {{"GET", URL, "Authorization: Bearer x", CADRE_OK,
                                   200, JSON("A", "2013-05-24T01:00:00Z")}}};
        begin(&bench);
        standin_set(&bench.standin, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path);
        fault_arm("storage.memory", ++nth);
        cadre_status status = s3_provider_take(bench.provider, SOON, &credentials, &error);
        if (status == CADRE_OK) {
            status = s3_sign(&request, credentials, "r", NOW_US / CADRE_US_PER_S, &sent, &error);
            s3_signed_wipe(&sent);
            s3_provider_give_back(bench.provider, credentials);
        }
        was_hit = fault_disarm();
        assert_int_equal(status, was_hit ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        s3_provider_close(bench.provider);
    }
    assert_int_equal(nth, 5);
}

/* --- several threads --- */

/* Holds the one thread that asks until the test lets it go on. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    bool within; /* a thread is in a request */
};

static void wait_at_gate(struct standin *standin)
{
    struct gate *gate = standin->user;
    pthread_mutex_lock(&gate->mutex);
    gate->within = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open) {
        pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    gate->within = false;
    pthread_mutex_unlock(&gate->mutex);
}

static void set_gate(struct gate *gate, bool open)
{
    pthread_mutex_lock(&gate->mutex);
    gate->open = open;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

static void wait_for_request(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    while (!gate->within) {
        pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    pthread_mutex_unlock(&gate->mutex);
}

struct taker {
    struct bench *bench;
    pthread_t thread;
    cadre_status status;
    char key[8];
};

static void *take_once(void *argument)
{
    struct taker *taker = argument;
    const struct s3_credentials *credentials = NULL;
    taker->status = s3_provider_take(taker->bench->provider, SOON, &credentials, NULL);
    if (taker->status == CADRE_OK) {
        snprintf(taker->key, sizeof taker->key, "%s", credentials->access_key);
        s3_provider_give_back(taker->bench->provider, credentials);
    }
    return NULL;
}

static void start(struct bench *bench, struct taker *takers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        takers[i] = (struct taker){.bench = bench};
        assert_int_equal(thread_start(&takers[i].thread, take_once, &takers[i]), 0);
    }
}

static void assert_end(struct taker *takers, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        pthread_join(takers[i].thread, NULL);
        assert_int_equal(takers[i].status, CADRE_OK);
        assert_string_equal(takers[i].key, key);
    }
}

static void one_thread_asks(void **state)
{
    struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct bench bench = {.standin = {.script = {GOOD("A", "2013-05-24T01:00:00Z"),
                                          GOOD("B", "2013-05-24T02:00:00Z")},
                              .within = wait_at_gate,
                              .user = &gate}};
    struct taker takers[THREADS];
    struct taker renewer;
    const struct s3_credentials *none = NULL;
    struct cadre_error error;
    (void)state;
    begin(&bench);
    /* The first ones: all wait, and one deadline passes. */
    start(&bench, takers, THREADS);
    wait_for_request(&gate);
    assert_error(s3_provider_take(bench.provider, clock_monotonic_us(), &none, &error),
        CADRE_DEADLINE_EXCEEDED, &error, "their source is slow to answer");
    set_gate(&gate, true);
    assert_end(takers, THREADS, "A");
    assert_int_equal(bench.standin.asked, 1);
    /* A renewal: one waits, the others go on with what there is. */
    set_gate(&gate, false);
    advance(&bench, 3400);
    start(&bench, &renewer, 1);
    wait_for_request(&gate);
    start(&bench, takers, THREADS);
    assert_end(takers, THREADS, "A");
    set_gate(&gate, true);
    assert_end(&renewer, 1, "B");
    assert_int_equal(bench.standin.asked, 2);
    assert_takes(&bench, "B");
    s3_provider_close(bench.provider);
}

/* For the thread sanitizer, too: all that may be done at once. */
static void *take_often(void *argument)
{
    struct taker *taker = argument;
    taker->status = CADRE_OK;
    for (int i = 0; i < 2000 && taker->status == CADRE_OK; i++) {
        const struct s3_credentials *credentials = NULL;
        taker->status = s3_provider_take(taker->bench->provider, SOON, &credentials, NULL);
        if (taker->status == CADRE_OK && i % 100 == 99) {
            s3_provider_refuse(taker->bench->provider, credentials);
        }
        if (taker->status == CADRE_OK) {
            s3_provider_give_back(taker->bench->provider, credentials);
        }
    }
    return NULL;
}

static void many_threads(void **state)
{
    struct bench bench = {.provider = NULL};
    struct taker takers[THREADS];
    (void)state;
    begin(&bench);
    standin_set(&bench.standin, "AWS_ACCESS_KEY_ID", "A");
    standin_set(&bench.standin, "AWS_SECRET_ACCESS_KEY", "s");
    for (size_t i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.bench = &bench};
        assert_int_equal(thread_start(&takers[i].thread, take_often, &takers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(takers[i].thread, NULL);
        assert_int_equal(takers[i].status, CADRE_OK);
    }
    s3_provider_close(bench.provider);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renewed_before_they_end),
        cmocka_unit_test(a_renewal_that_fails_is_repeated_while_the_old_ones_hold),
        cmocka_unit_test(credentials_that_end_soon),
        cmocka_unit_test(a_clock_that_is_set_back),
        cmocka_unit_test(refused_ones_are_looked_for_again),
        cmocka_unit_test(refused_ones_after_a_look_that_failed),
        cmocka_unit_test(memory_that_is_short),
        cmocka_unit_test(one_thread_asks),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
