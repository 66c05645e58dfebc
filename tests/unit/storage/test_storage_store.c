/* SPDX-License-Identifier: Apache-2.0
 * What stores and networks do wrong, and what the client makes of it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "store_rig.h"
#include "tests/lib/speed.h"

#define TEXT "0123456789abcdefghijklmnopqrstuvwxyz"

static struct rig rig;
static struct storage_client *client;
static struct cadre_error error;

/* A client with little patience, and one object. */
static void begin(uint64_t deadline_us)
{
    rig_reset(&rig);
    client = rig_client(&rig, &(struct storage_options){.deadline_us = deadline_us});
    assert_ok(storage_put(client, RIG_BUCKET "a", TEXT, strlen(TEXT), &error), &error);
}

static void end(void)
{
    storage_client_close(client);
    client = NULL;
}

static cadre_status read_a(void)
{
    struct storage_object *object = NULL;
    char got[sizeof TEXT] = "";
    cadre_status status = storage_open(client, RIG_BUCKET "a", &object, &error);
    if (status == CADRE_OK) {
        status = storage_read(object, 2, got, strlen(TEXT) - 4, &error);
        if (status == CADRE_OK) {
            assert_memory_equal(got, &TEXT[2], strlen(TEXT) - 4);
        }
        storage_close(object);
    }
    return status;
}

/* --- what passes --- */

static void what_passes_is_asked_for_again(void **state)
{
    static const char *const acts[] = {
        "'act': 'status', 'code': 500, 's3': 'InternalError'",
        "'act': 'status', 'code': 503, 's3': 'SlowDown'",
        "'act': 'status', 'code': 503",
        "'act': 'status', 'code': 429",
        "'act': 'status', 'code': 502, 'html': '<html>Bad gateway</html>'",
        "'act': 'status', 'code': 200, 'html': '<html>Log in to the network</html>'",
        "'act': 'cut'",
        "'act': 'reset'",
        "'act': 'raw', 'text': ''",
        "'act': 'raw', 'text': 'rubbish'",
        "'act': 'raw', 'text': 'HTTP/1.1 206 Partial Content\\r\\nContent-Le'",
        "'act': 'longer'",
        "'act': 'shorter'",
        "'act': 'other_range'",
        "'act': 'stall'",
    };
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(acts); i++) {
        char rule[256];
        begin(9000000);
        snprintf(rule, sizeof rule, "'match': 'GET /bucket/a', 'times': 2, %s", acts[i]);
        rig_rule(&rig, rule);
        if (read_a() != CADRE_OK) {
            fail_msg("%s: %s", acts[i], error.text);
        }
        assert_int_equal(rig_count(&rig, "GET /bucket/a"), 3);
        end();
    }
}

static void writes_are_repeated_too(void **state)
{
    (void)state;
    begin(0);
    rig_rule(&rig, "'match': 'PUT /bucket/b', 'act': 'reset'");
    rig_rule(&rig, "'match': 'PUT /bucket/b', 'act': 'status', 'code': 503, 's3': 'SlowDown'");
    rig_rule(&rig, "'match': 'PUT /bucket/b', 'act': 'lost'");
    assert_ok(storage_put(client, RIG_BUCKET "b", "text", 4, &error), &error);
    assert_int_equal(rig_count(&rig, "PUT /bucket/b"), 4);
    rig_rule(&rig, "'match': 'DELETE /bucket/b', 'act': 'lost'");
    assert_ok(storage_remove(client, RIG_BUCKET "b", &error), &error);
    assert_int_equal(rig_count(&rig, "DELETE /bucket/b"), 2);
    end();
}

static void until_the_deadline(void **state)
{
    (void)state;
    begin(1500000);
    rig_rule(&rig, "'match': 'GET /bucket/a', 'times': 1000, 'act': 'status', 'code': 503");
    uint64_t begun_us = clock_monotonic_us();
    assert_error(read_a(), CADRE_UNAVAILABLE, &error, "times in");
    assert_non_null(strstr(error.text, RIG_BUCKET "a"));
    assert_true(clock_monotonic_us() - begun_us < speed_scaled_us(3000000));
    assert_in_range(rig_count(&rig, "GET /bucket/a"), 2, 9);
    end();
}

static void a_silent_store(void **state)
{
    static const char *const acts[] = {"'act': 'silent'", "'act': 'drip'"};
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(acts); i++) {
        char rule[128];
        begin(3000000);
        snprintf(rule, sizeof rule, "'match': 'GET /bucket/a', 'times': 9, %s", acts[i]);
        rig_rule(&rig, rule);
        uint64_t begun_us = clock_monotonic_us();
        assert_error(read_a(), CADRE_UNAVAILABLE, &error, "127.0.0.1");
        assert_true(clock_monotonic_us() - begun_us < speed_scaled_us(6000000));
        assert_true(rig_count(&rig, "GET /bucket/a") >= 2); /* given up before the deadline */
        end();
    }
}

static void a_store_that_is_not_there(void **state)
{
    (void)state;
    rig_reset(&rig);
    rig_set(&rig, "AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1");
    client = rig_client(&rig, &(struct storage_options){.deadline_us = 700000});
    assert_error(read_a(), CADRE_UNAVAILABLE, &error, "127.0.0.1");
    assert_non_null(strstr(error.text, "s3://bucket/a"));
    end();
}

/* --- what does not pass --- */

static void errors_that_do_not_pass_are_not_repeated(void **state)
{
    static const struct {
        const char *act;
        cadre_status status;
        const char *part;
    } rows[] = {
        {"'act': 'status', 'code': 403, 's3': 'AccessDenied'", CADRE_PERMISSION_DENIED,
            "s3:GetObject"},
        {"'act': 'status', 'code': 404, 's3': 'NoSuchKey'", CADRE_NOT_FOUND, "s3://bucket/a"},
        {"'act': 'status', 'code': 400, 's3': 'InvalidRequest'", CADRE_INVALID_ARGUMENT,
            "HTTP 400"},
        {"'act': 'changed'", CADRE_DATA_LOSS, "another object"},
        {"'act': 'other_total'", CADRE_DATA_LOSS, "had 36 when"},
        {"'act': 'no_range'", CADRE_INVALID_ARGUMENT, "ranges"},
        {"'act': 'endless'", CADRE_OUT_OF_RANGE, "headers"},
        {"'act': 'redirect', 'to': 'http://127.0.0.1:1/'", CADRE_FAILED_PRECONDITION, "region"},
    };
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(rows); i++) {
        char rule[256];
        begin(0);
        snprintf(rule, sizeof rule, "'match': 'GET /bucket/a', 'times': 9, %s", rows[i].act);
        rig_rule(&rig, rule);
        assert_error(read_a(), rows[i].status, &error, rows[i].part);
        assert_non_null(strstr(error.text, "s3://bucket/a"));
        assert_int_equal(rig_count(&rig, "GET /bucket/a"), 1);
        end();
    }
}

static void an_object_that_was_written_again(void **state)
{
    struct storage_object *object = NULL;
    char got[8];
    (void)state;
    begin(0);
    assert_ok(storage_open(client, RIG_BUCKET "a", &object, &error), &error);
    assert_ok(storage_put(client, RIG_BUCKET "a", "something else, as long", 23, &error), &error);
    assert_error(
        storage_read(object, 0, got, 4, &error), CADRE_DATA_LOSS, &error, "another object now");
    assert_int_equal(rig_count(&rig, "GET /bucket/a"), 1);
    storage_close(object);
    end();
}

static void no_bucket(void **state)
{
    struct storage_object *object = NULL;
    (void)state;
    begin(0);
    assert_error(
        storage_open(client, "s3://missing/a", &object, &error), CADRE_NOT_FOUND, &error, "bucket");
    assert_error(
        storage_put(client, "s3://missing/a", "", 0, &error), CADRE_NOT_FOUND, &error, "bucket");
    assert_error(
        storage_remove(client, "s3://missing/a", &error), CADRE_NOT_FOUND, &error, "bucket");
    end();
}

static void an_answer_to_a_body_that_is_not_read(void **state)
{
    const size_t size = (size_t)16 << 20;
    char *bytes = calloc(1, size);
    (void)state;
    begin(0);
    rig_rule(&rig, "'match': 'PUT /bucket/b', 'times': 99, 'act': 'status', 'code': 403, "
                   "'s3': 'AccessDenied', 'early': 1");
    assert_error(storage_put(client, RIG_BUCKET "b", bytes, size, &error), CADRE_PERMISSION_DENIED,
        &error, "s3:PutObject");
    free(bytes);
    end();
}

/* --- what is learned --- */

static void the_region_of_a_bucket(void **state)
{
    (void)state;
    begin(0);
    rig_setting(&rig, "'region': 'eu-west-3'");
    assert_ok(read_a(), &error);
    assert_int_equal(rig_count(&rig, "HEAD /bucket/a"), 2);
    assert_int_equal(rig_count(&rig, "GET /bucket/a"), 1); /* remembered */
    end();
}

static void a_clock_that_is_wrong(void **state)
{
    (void)state;
    begin(0);
    rig_setting(&rig, "'clock_s': 7200");
    assert_ok(storage_put(client, RIG_BUCKET "b", "1", 1, &error), &error);
    assert_int_equal(rig_count(&rig, "PUT /bucket/b"), 2);
    assert_ok(storage_put(client, RIG_BUCKET "b", "2", 1, &error), &error);
    assert_int_equal(rig_count(&rig, "PUT /bucket/b"), 3);
    end();
}

static void wrong_credentials(void **state)
{
    (void)state;
    rig_reset(&rig);
    rig_set(&rig, "AWS_SECRET_ACCESS_KEY", "wrong-secret");
    client = rig_client(&rig, NULL);
    assert_error(storage_put(client, RIG_BUCKET "a", "1", 1, &error), CADRE_UNAUTHENTICATED, &error,
        "secret key");
    assert_null(strstr(error.text, "wrong-secret"));
    assert_true(rig_count(&rig, "PUT /bucket/a") <= 2);
    /* The answer to HEAD has no body that says so. */
    assert_error(read_a(), CADRE_UNAUTHENTICATED, &error, "secret key");
    end();
    rig_reset(&rig);
    rig_set(&rig, "AWS_ACCESS_KEY_ID", NULL);
    rig_set(&rig, "AWS_SECRET_ACCESS_KEY", NULL);
    client = rig_client(&rig, NULL);
    assert_error(storage_put(client, RIG_BUCKET "a", "1", 1, &error), CADRE_UNAUTHENTICATED, &error,
        RIG_BUCKET "a");
    assert_int_equal(rig_count(&rig, "PUT /bucket/a"), 0);
    end();
}

static void a_session_token(void **state)
{
    (void)state;
    rig_reset(&rig);
    rig_setting(&rig, "'token': 'the+token/='");
    rig_set(&rig, "AWS_SESSION_TOKEN", "the+token/=");
    client = rig_client(&rig, NULL);
    assert_ok(storage_put(client, RIG_BUCKET "a", "1", 1, &error), &error);
    end();
}

/* By HTTP, through no proxy, beside the connections to the store. */
static void credentials_of_a_container(void **state)
{
    char url[128];
    (void)state;
    rig_reset(&rig);
    rig_setting(&rig, "'token': 'of-the-container'");
    snprintf(url, sizeof url, "%s/-/credentials", rig.url);
    rig_set(&rig, "AWS_ACCESS_KEY_ID", NULL);
    rig_set(&rig, "AWS_SECRET_ACCESS_KEY", NULL);
    rig_set(&rig, "AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
    client = rig_client(&rig, &(struct storage_options){.connections = 1});
    assert_ok(storage_put(client, RIG_BUCKET "a", "1", 1, &error), &error);
    assert_string_equal(
        rig_order(&rig, "GET", "header?X-Amz-Security-Token", NULL), "of-the-container");
    end();
    /* Its agent is away: that may pass. */
    rig_rule(&rig, "'match': 'GET /creds', 'times': 2, 'act': 'status', 'code': 503");
    snprintf(url, sizeof url, "%s/creds", rig.url);
    client = rig_client(&rig, &(struct storage_options){.deadline_us = 700000});
    assert_error(
        storage_put(client, RIG_BUCKET "a", "1", 1, &error), CADRE_UNAVAILABLE, &error, "agent");
    end();
}

static void keys_of_all_kinds(void **state)
{
    static const char *const keys[] = {"a b", "a+b", "a%20b", "a%2Fb", "../x", "./y", "a//b", "é/ü",
        "~-_.!*'()", "&=?#:;,@$", "\"<>|\\^`{}[]", "日本"};
    (void)state;
    begin(0);
    for (size_t i = 0; i < CADRE_COUNT_OF(keys); i++) {
        char path[128];
        struct storage_object *object = NULL;
        char got[4] = "";
        snprintf(path, sizeof path, RIG_BUCKET "%s", keys[i]);
        char text[8];
        snprintf(text, sizeof text, "%03zu", i);
        assert_ok(storage_put(client, path, text, 3, &error), &error);
        assert_ok(storage_open(client, path, &object, &error), &error);
        assert_ok(storage_read(object, 0, got, 3, &error), &error);
        assert_string_equal(got, text);
        storage_close(object);
    }
    end();
}

/* --- lists --- */

static bool count_entries(void *user, const struct storage_entry *entry)
{
    (void)entry;
    ++*(unsigned *)user;
    return true;
}

static void a_list_that_is_cut(void **state)
{
    unsigned count = 0;
    (void)state;
    begin(0);
    assert_ok(storage_put(client, RIG_BUCKET "b", "", 0, &error), &error);
    rig_setting(&rig, "'page': 1");
    rig_rule(&rig, "'match': 'GET /bucket', 'skip': 1, 'act': 'cut'");
    assert_ok(
        storage_list(client, "s3://bucket", NULL, true, count_entries, &count, &error), &error);
    assert_int_equal(count, 2);
    rig_rule(
        &rig, "'match': 'GET /bucket', 'act': 'status', 'code': 200, 'html': '<html>x</html>'");
    assert_ok(
        storage_list(client, "s3://bucket", NULL, true, count_entries, &count, &error), &error);
    end();
}

static void a_list_without_an_end(void **state)
{
    unsigned count = 0;
    (void)state;
    begin(0);
    assert_ok(storage_put(client, RIG_BUCKET "b", "", 0, &error), &error);
    assert_ok(storage_put(client, RIG_BUCKET "c", "", 0, &error), &error);
    rig_setting(&rig, "'page': 1, 'same_page': 1");
    assert_error(storage_list(client, "s3://bucket/", NULL, true, count_entries, &count, &error),
        CADRE_DATA_LOSS, &error, "again");
    assert_true(count <= 2);
    end();
}

/* --- uploads --- */

static void answers_to_the_end_of_an_upload(void **state)
{
    static const char *const acts[] = {"'act': 'lost'", "'act': 'reset'",
        "'act': 'late_error', 's3': 'InternalError'", "'act': 'cut'"};
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(acts); i++) {
        struct storage_upload *upload = NULL;
        struct storage_object *object = NULL;
        char rule[128];
        begin(0);
        snprintf(rule, sizeof rule, "'match': 'POST /bucket/up?uploadId', %s", acts[i]);
        assert_ok(storage_upload_begin(client, RIG_BUCKET "up", &upload, &error), &error);
        assert_ok(storage_upload_part(upload, 1, "text", 4, &error), &error);
        rig_rule(&rig, rule);
        if (storage_upload_finish(upload, 1, &error) != CADRE_OK) {
            fail_msg("%s: %s", acts[i], error.text);
        }
        assert_ok(storage_open(client, RIG_BUCKET "up", &object, &error), &error);
        assert_int_equal(storage_info_of(object)->bytes, 4);
        storage_close(object);
        end();
    }
}

static void an_upload_that_cannot_end_is_aborted(void **state)
{
    struct storage_upload *upload = NULL;
    (void)state;
    begin(0);
    assert_ok(storage_upload_begin(client, RIG_BUCKET "up", &upload, &error), &error);
    assert_ok(storage_upload_part(upload, 1, "text", 4, &error), &error);
    assert_string_equal(rig_order(&rig, "GET", "uploads", NULL), "1");
    rig_rule(&rig, "'match': 'POST /bucket/up?uploadId', 'act': 'late_error', 's3': 'InvalidPart'");
    assert_error(storage_upload_finish(upload, 1, &error), CADRE_DATA_LOSS, &error, "part");
    assert_string_equal(rig_order(&rig, "GET", "uploads", NULL), "0");
    end();
}

/* Who may not abort uploads leaves them to who clears the bucket, and goes on. */
static void an_upload_that_cannot_be_aborted(void **state)
{
    struct storage_upload *upload = NULL;
    (void)state;
    begin(0);
    rig_rule(&rig, "'match': 'DELETE /bucket/up?uploadId', 'act': 'status', 'code': 403, "
                   "'s3': 'AccessDenied'");
    assert_ok(storage_upload_begin(client, RIG_BUCKET "up", &upload, &error), &error);
    storage_upload_abort(upload);
    assert_string_equal(rig_order(&rig, "GET", "uploads", NULL), "1");
    assert_ok(storage_upload_begin(client, RIG_BUCKET "up", &upload, &error), &error);
    storage_client_stop(client);
    storage_upload_abort(upload);
    end();
}

static void a_store_without_conditions(void **state)
{
    bool was_there = true;
    (void)state;
    begin(0);
    rig_setting(&rig, "'conditional': false");
    assert_ok(storage_put_if_absent(client, RIG_BUCKET "n", "1", 1, &was_there, &error), &error);
    assert_false(was_there);
    assert_ok(storage_put_if_absent(client, RIG_BUCKET "n", "2", 1, &was_there, &error), &error);
    assert_true(was_there);
    /* Written between the look and the write, where there are conditions. */
    rig_setting(&rig, "'conditional': true");
    rig_rule(&rig, "'match': 'HEAD /bucket/a', 'act': 'status', 'code': 404");
    assert_ok(storage_put_if_absent(client, RIG_BUCKET "a", "2", 1, &was_there, &error), &error);
    assert_true(was_there);
    assert_ok(read_a(), &error);
    /* Who may not list gets 403 for what is not there. */
    rig_rule(&rig, "'match': 'HEAD /bucket/m', 'act': 'status', 'code': 403");
    assert_ok(storage_put_if_absent(client, RIG_BUCKET "m", "2", 1, &was_there, &error), &error);
    assert_false(was_there);
    end();
}

/* --- reads that take long --- */

static void a_read_that_takes_long_is_asked_for_twice(void **state)
{
    struct storage_object *object = NULL;
    char got[4];
    (void)state;
    begin(0);
    assert_ok(storage_open(client, RIG_BUCKET "a", &object, &error), &error);
    for (unsigned i = 0; i < 100; i++) {
        assert_ok(storage_read(object, i % 30, got, 4, &error), &error);
    }
    unsigned before = rig_count(&rig, "GET /bucket/a");
    assert_in_range(before, 100, 105);
    rig_rule(&rig, "'match': 'GET /bucket/a', 'act': 'silent'");
    uint64_t begun_us = clock_monotonic_us();
    assert_ok(storage_read(object, 7, got, 4, &error), &error);
    assert_memory_equal(got, &TEXT[7], 4);
    assert_int_equal(rig_count(&rig, "GET /bucket/a"), before + 2);
    assert_true(clock_monotonic_us() - begun_us < speed_scaled_us(3000000));
    storage_close(object);
    end();
}

static void a_slow_store_is_not_asked_twice_for_everything(void **state)
{
    struct storage_object *object = NULL;
    char got[4];
    (void)state;
    begin(0);
    assert_ok(storage_open(client, RIG_BUCKET "a", &object, &error), &error);
    for (unsigned i = 0; i < 100; i++) {
        assert_ok(storage_read(object, i % 30, got, 4, &error), &error);
    }
    unsigned before = rig_count(&rig, "GET /bucket/a");
    rig_rule(&rig, "'match': 'GET /bucket/a', 'times': 1000, 'act': 'delay', 's': 0.05");
    for (unsigned i = 0; i < 40; i++) {
        assert_ok(storage_read(object, i % 30, got, 4, &error), &error);
    }
    /* 140 reads: 7 second ones at the most, in all. */
    assert_in_range(rig_count(&rig, "GET /bucket/a"), before + 40, 147);
    storage_close(object);
    end();
}

/* --- many threads, few connections --- */

#define READERS     6
#define LARGE_BYTES (((size_t)20 << 20) + 7)

struct reader {
    const char *bytes;
    cadre_status status;
    struct cadre_error error;
    bool same;
};

static void *read_large(void *argument)
{
    struct reader *reader = argument;
    struct storage_object *object = NULL;
    char *got = calloc(1, LARGE_BYTES);
    reader->status = storage_open(client, RIG_BUCKET "large", &object, &reader->error);
    if (reader->status == CADRE_OK) {
        reader->status = storage_read(object, 0, got, LARGE_BYTES, &reader->error);
    }
    reader->same = memcmp(got, reader->bytes, LARGE_BYTES) == 0;
    storage_close(object);
    free(got);
    return NULL;
}

static void many_read_what_is_large(void **state)
{
    struct reader readers[READERS];
    pthread_t threads[READERS];
    char *bytes = malloc(LARGE_BYTES);
    (void)state;
    rig_reset(&rig);
    client = rig_client(&rig, &(struct storage_options){.connections = 3});
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        bytes[i] = (char)(i * 2654435761u >> 23);
    }
    assert_ok(storage_put(client, RIG_BUCKET "large", bytes, LARGE_BYTES, &error), &error);
    rig_rule(&rig, "'match': 'GET /bucket/large', 'skip': 2, 'times': 2, 'act': 'cut'");
    rig_rule(&rig, "'match': 'GET /bucket/large', 'times': 2, 'act': 'reset'");
    rig_rule(&rig, "'match': 'GET /bucket/large', 'skip': 1, 'times': 2, 'act': 'status', "
                   "'code': 500");
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.bytes = bytes};
        assert_int_equal(thread_start(&threads[i], read_large, &readers[i]), 0);
    }
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        assert_ok(readers[i].status, &readers[i].error);
        assert_true(readers[i].same);
    }
    unsigned made = 0;
    unsigned most = 0;
    assert_int_equal(sscanf(rig_order(&rig, "GET", "connections", NULL), "%u %u", &made, &most), 2);
    assert_true(most <= 3);
    assert_in_range(rig_count(&rig, "GET /bucket/large"), 3 * READERS + 6, 3 * READERS + 9);
    free(bytes);
    end();
}

static int start(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    rig_start(&rig, NULL, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_passes_is_asked_for_again),
        cmocka_unit_test(writes_are_repeated_too),
        cmocka_unit_test(until_the_deadline),
        cmocka_unit_test(a_silent_store),
        cmocka_unit_test(a_store_that_is_not_there),
        cmocka_unit_test(errors_that_do_not_pass_are_not_repeated),
        cmocka_unit_test(an_object_that_was_written_again),
        cmocka_unit_test(no_bucket),
        cmocka_unit_test(an_answer_to_a_body_that_is_not_read),
        cmocka_unit_test(the_region_of_a_bucket),
        cmocka_unit_test(a_clock_that_is_wrong),
        cmocka_unit_test(wrong_credentials),
        cmocka_unit_test(a_session_token),
        cmocka_unit_test(credentials_of_a_container),
        cmocka_unit_test(keys_of_all_kinds),
        cmocka_unit_test(a_list_that_is_cut),
        cmocka_unit_test(a_list_without_an_end),
        cmocka_unit_test(answers_to_the_end_of_an_upload),
        cmocka_unit_test(an_upload_that_cannot_end_is_aborted),
        cmocka_unit_test(an_upload_that_cannot_be_aborted),
        cmocka_unit_test(a_store_without_conditions),
        cmocka_unit_test(a_read_that_takes_long_is_asked_for_twice),
        cmocka_unit_test(a_slow_store_is_not_asked_twice_for_everything),
        cmocka_unit_test(many_read_what_is_large),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
