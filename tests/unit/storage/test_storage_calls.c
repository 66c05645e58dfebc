/* SPDX-License-Identifier: Apache-2.0
 * Each call that can fail fails once: the caller gets an error or what it asked for, nothing is
 * left over, and the next try succeeds. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "store_rig.h"

#define LIMIT 400 /* of faults in a case: more of them mean that none ends it */

static struct rig rig;
static struct storage_client *client;
static char root[256];
static struct cadre_error error;

static const char *at(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static bool count_entries(void *user, const struct storage_entry *entry)
{
    (void)entry;
    ++*(unsigned *)user;
    return true;
}

static cadre_status read_back(void)
{
    struct storage_object *object = NULL;
    char got[8] = "";
    CADRE_TRY(storage_open(client, at("a"), &object, &error));
    cadre_status status = storage_read(object, 1, got, 2, &error);
    if (status == CADRE_OK) {
        assert_memory_equal(got, "bc", 2);
    }
    storage_close(object);
    return status;
}

static cadre_status upload_one(void)
{
    struct storage_upload *upload = NULL;
    CADRE_TRY(storage_upload_begin(client, at("up"), &upload, &error));
    cadre_status status = storage_upload_part(upload, 1, "text", 4, &error);
    if (status != CADRE_OK) {
        storage_upload_abort(upload);
        return status;
    }
    return storage_upload_finish(upload, 1, &error);
}

/* Everything once, with a client of its own. */
static cadre_status all_once(void)
{
    unsigned count = 0;
    uint32_t cleared = 0;
    bool was_there = false;
    CADRE_TRY(storage_put(client, at("a"), "abcd", 4, &error));
    CADRE_TRY(read_back());
    CADRE_TRY(storage_put_if_absent(client, at("b"), "b", 1, &was_there, &error));
    CADRE_TRY(upload_one());
    CADRE_TRY(storage_list(client, root, NULL, true, count_entries, &count, &error));
    assert_int_equal(count, 3);
    CADRE_TRY(storage_uploads_clear(client, at(""), INT64_MAX, &cleared, &error));
    return storage_remove(client, at("b"), &error);
}

/* How many faults it took until a run met none. */
static unsigned fail_each(const char *prefix)
{
    for (unsigned nth = 1; nth < LIMIT; nth++) {
        const struct storage_options options = {
            .variables = &rig.variables, .deadline_us = 20000000, .connections = 2};
        fault_arm(prefix, nth);
        client = NULL;
        memset(&error, 0, sizeof error);
        cadre_status status = storage_client_open(&options, &client, &error);
        if (status == CADRE_OK) {
            status = all_once();
        }
        bool met = fault_disarm();
        if (status != CADRE_OK && (error.code != status || error.text[0] == '\0')) {
            fail_msg("%s %u: status %d with \"%s\"", prefix, nth, (int)status, error.text);
        }
        if (strstr(error.text, "credentials") != NULL) { /* a failure is kept for seconds */
            storage_client_close(client);
            client = NULL;
        }
        if (client == NULL) {
            assert_ok(storage_client_open(&options, &client, &error), &error);
        }
        uint32_t cleared = 0;
        if (status != CADRE_OK) { /* nothing stands in the way of another try */
            (void)storage_remove(client, at("b"), &error);
            assert_ok(storage_uploads_clear(client, at(""), INT64_MAX, &cleared, &error), &error);
            (void)storage_put(client, at("up"), "", 0, &error);
            assert_ok(all_once(), &error);
        }
        storage_client_close(client);
        if (!met) {
            return nth - 1;
        }
    }
    fail_msg("%s: a run met a fault %d times", prefix, LIMIT);
    return 0;
}

static void of_files(void **state)
{
    (void)state;
    rig_reset(&rig);
    const char *folder = test_temp_dir();
    snprintf(root, sizeof root, "%s/x", folder);
    assert_true(fail_each("file.") >= 15);
    assert_true(fail_each("storage.") >= 5);
    /* Nothing is left of what failed. */
    DIR *dir = opendir(root);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strncmp(entry->d_name, ".storage-", 9) == 0) {
            fail_msg("%s is left", entry->d_name);
        }
    }
    closedir(dir);
}

static void of_objects(void **state)
{
    (void)state;
    rig_reset(&rig);
    snprintf(root, sizeof root, "s3://bucket/x");
    assert_true(fail_each("storage.") >= 20);
    assert_string_equal(rig_order(&rig, "GET", "uploads", NULL), "0");
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
        cmocka_unit_test(of_files),
        cmocka_unit_test(of_objects),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
