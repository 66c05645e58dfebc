/* SPDX-License-Identifier: Apache-2.0
 * What paths say, and objects at URLs, which are read alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "store_rig.h"

#define TEXT "0123456789abcdefghijklmnopqrstuvwxyz"

static struct rig rig;
static struct storage_client *client;
static struct cadre_error error;

static void end(void)
{
    storage_client_close(client);
    client = NULL;
}

/* --- objects at URLs --- */

static void urls(void **state)
{
    struct storage_object *object = NULL;
    char got[8] = "";
    char path[128];
    (void)state;
    rig_reset(&rig);
    client = rig_client(&rig, NULL);
    assert_ok(storage_put(client, "s3://web/x", TEXT, strlen(TEXT), &error), &error);
    snprintf(path, sizeof path, "%s/web/x?signature=hush", rig.url);
    assert_ok(storage_open(client, path, &object, &error), &error);
    assert_int_equal(storage_info_of(object)->bytes, strlen(TEXT));
    assert_ok(storage_read(object, 5, got, 4, &error), &error);
    assert_string_equal(got, "5678");
    rig_rule(&rig, "'match': 'GET /web/x', 'act': 'status', 'code': 403");
    assert_error(
        storage_read(object, 5, got, 4, &error), CADRE_PERMISSION_DENIED, &error, "/web/x");
    assert_null(strstr(error.text, "hush"));
    storage_close(object);
    assert_string_equal(rig_order(&rig, "GET", "header?Authorization", NULL), "");
    /* A link that is signed for GET. */
    rig_rule(&rig, "'match': 'HEAD /web/x', 'act': 'status', 'code': 403");
    assert_ok(storage_open(client, path, &object, &error), &error);
    assert_int_equal(storage_info_of(object)->bytes, strlen(TEXT));
    storage_close(object);
    /* One that leads elsewhere. */
    char rule[256];
    snprintf(
        rule, sizeof rule, "'match': 'HEAD /web/y', 'act': 'redirect', 'to': '%s/web/x'", rig.url);
    rig_rule(&rig, rule);
    snprintf(path, sizeof path, "%s/web/y", rig.url);
    assert_ok(storage_open(client, path, &object, &error), &error);
    storage_close(object);
    assert_error(storage_put(client, path, "", 0, &error), CADRE_INVALID_ARGUMENT, &error, "read");
    end();
}

/* What a URL has behind "?" may be a signature, with which anyone can read the object. */
static void signatures_are_not_shown(void **state)
{
    struct storage_upload *upload = NULL;
    struct storage_object *object = NULL;
    bool was_there = false;
    char *bytes = NULL;
    size_t size = 0;
    char path[128];
    (void)state;
    rig_reset(&rig);
    client = rig_client(&rig, NULL);
    assert_ok(storage_put(client, "s3://web/x", TEXT, strlen(TEXT), &error), &error);
    snprintf(path, sizeof path, "%s/web/x?signature=hush", rig.url);
    assert_error(
        storage_get(client, path, 1, &bytes, &size, &error), CADRE_OUT_OF_RANGE, &error, "/web/x");
    assert_null(strstr(error.text, "hush"));
    assert_error(
        storage_put(client, path, "", 0, &error), CADRE_INVALID_ARGUMENT, &error, "/web/x");
    assert_null(strstr(error.text, "hush"));
    assert_error(storage_put_if_absent(client, path, "", 0, &was_there, &error),
        CADRE_INVALID_ARGUMENT, &error, "/web/x");
    assert_null(strstr(error.text, "hush"));
    assert_error(
        storage_upload_begin(client, path, &upload, &error), CADRE_INVALID_ARGUMENT, &error, "/x");
    assert_null(strstr(error.text, "hush"));
    assert_error(storage_uploads_clear(client, path, 0, &(uint32_t){0}, &error),
        CADRE_INVALID_ARGUMENT, &error, "/web/x");
    assert_null(strstr(error.text, "hush"));
    assert_error(storage_open(client, "https://host?signature=hush", &object, &error),
        CADRE_INVALID_ARGUMENT, &error, "https://host");
    assert_null(strstr(error.text, "hush"));
    end();
}

/* --- paths --- */

static void paths(void **state)
{
    static const char *const good[] = {"s3://bucket/a", "s3://my.bucket-1/a/b c", "https://h/x",
        "http://h:80/x?y", "/a/b", "a", "gs://b/k", "s3:/b/k"};
    static const char *const wrong[] = {"s3://", "s3://b/a", "s3://Bucket/a", "s3://bucket",
        "s3://bucket/", "s3://bucket/a/", "s3://-bucket/a", "s3://bu..cket/a", "s3://bu_cket/a",
        "s3://bucket/\xff", "s3://bucket/a\nb", "https://", "https://h", "https:///x",
        "https://h/a b"};
    char path[2048] = RIG_BUCKET;
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(good); i++) {
        assert_ok(storage_check(good[i], &error), &error);
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(wrong); i++) {
        assert_int_equal(storage_check(wrong[i], &error), CADRE_INVALID_ARGUMENT);
    }
    assert_ok(storage_check_written("s3://bucket/a", &error), &error);
    assert_error(storage_check_written("https://h/x?y=secret", &error), CADRE_INVALID_ARGUMENT,
        &error, "https://h/x: what is at a URL can be read only");
    memset(path + strlen(RIG_BUCKET), 'k', 1024);
    assert_ok(storage_check(path, &error), &error);
    path[strlen(RIG_BUCKET) + 1024] = 'k';
    assert_error(storage_check(path, &error), CADRE_INVALID_ARGUMENT, &error, "1025");
    assert_true(storage_is_object("s3://b/a"));
    assert_true(storage_is_object("https://b/a"));
    assert_false(storage_is_object("/b/a"));
    static const char *const joined[][3] = {{"s3://b/", "a", "s3://b/a"},
        {"s3://b", "a", "s3://b/a"}, {"/x//", "a", "/x/a"}, {"/", "a", "/a"}, {".", "a", "./a"}};
    for (size_t i = 0; i < CADRE_COUNT_OF(joined); i++) {
        char *got = storage_join(joined[i][0], joined[i][1]);
        assert_string_equal(got, joined[i][2]);
        free(got);
    }
}

static void objects_only(void **state)
{
    struct storage_object *object = NULL;
    (void)state;
    rig_reset(&rig);
    client = rig_client(&rig, &(struct storage_options){.objects_only = true});
    assert_error(storage_open(client, "/etc/passwd", &object, &error), CADRE_INVALID_ARGUMENT,
        &error, "s3://BUCKET/KEY");
    end();
}

static int start(void **state)
{
    (void)state;
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
        cmocka_unit_test(urls),
        cmocka_unit_test(signatures_are_not_shown),
        cmocka_unit_test(paths),
        cmocka_unit_test(objects_only),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
