/* SPDX-License-Identifier: Apache-2.0
 * Event files from beneath: which values are in them when tasks follow and lead, when the disk or
 * the memory fails, and when there are too many. integration/test_events.py reads what is in them.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/lib/test.h"
#include "worker/library/input/files/record_frame.h"
#include "worker/library/runtime/event_file/event_file.h"
#include "worker/library/runtime/event_file/event_log.h"
#include "worker/library/runtime/event_file/event_tags.h"

#define MANY 4096

static struct event_target target_in(const char *folder)
{
    struct event_target target = {.job = 3, .slot = 1};
    snprintf(target.folder, sizeof target.folder, "%s/a/b", folder);
    return target;
}

/* The frames of the only file in the folder, or of the newest; 0: there is none. All of them are
 * whole. */
static size_t frames_in(const struct event_target *target)
{
    static cadre_string records[MANY];
    char newest[256] = "";
    char path[TEST_PATH_BYTES];
    char *bytes;
    size_t size;
    struct cadre_error error = {0};
    DIR *folder = opendir(target->folder);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, newest) > 0) {
            snprintf(newest, sizeof newest, "%s", entry->d_name);
        }
    }
    if (folder == NULL || newest[0] == '\0') {
        if (folder != NULL) {
            closedir(folder);
        }
        return 0;
    }
    closedir(folder);
    assert_ok(
        file_read(test_path(path, target->folder, newest), (size_t)1 << 30, &bytes, &size, &error),
        &error);
    const struct record_rules rules = {.record_bytes = 1 << 20};
    struct record_walk walk =
        record_walk_frames((const uint8_t *)bytes, size, MANY, &rules, records);
    assert_int_equal(walk.fault, RECORD_SOUND);
    assert_int_equal(walk.used, size);
    free(bytes);
    return walk.count;
}

static cadre_status add(
    struct event_log *log, const char *tag, uint64_t step, bool own, struct cadre_error *error)
{
    return event_log_add(log,
        &(struct summary_event){
            .kind = SUMMARY_SCALAR, .tag = tag, .step = step, .scalar = (double)step},
        own, error);
}

static void a_file_begins_with_the_first_value_of_the_program(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct event_target target = target_in(test_temp_dir());
    struct event_log *log;
    assert_ok(event_log_open(&target, &log, &error), &error);
    event_log_lead(log, 1, 0);
    assert_ok(add(log, "cadre/tasks", 0, false, &error), &error);
    assert_false(event_log_has_file(log));
    event_log_flush(log);
    assert_int_equal(frames_in(&target), 0);
    assert_ok(add(log, "loss", 1, true, &error), &error);
    assert_ok(add(log, "cadre/tasks", 1, false, &error), &error);
    assert_true(event_log_has_file(log));
    event_log_flush(log);
    assert_int_equal(frames_in(&target), 4); /* the version, the start, and these */
    event_log_close(log);
    assert_int_equal(frames_in(&target), 4);
}

static void a_follower_keeps_what_it_may_have_to_write(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct event_target target = target_in(test_temp_dir());
    struct event_log *log;
    assert_ok(event_log_open(&target, &log, &error), &error);
    for (uint64_t step = 1; step <= 100; step++) {
        assert_ok(add(log, "loss", step, true, &error), &error);
    }
    assert_false(event_log_has_file(log));
    event_log_lead(log, 2, 100);
    event_log_flush(log);
    assert_in_range(frames_in(&target), 3, 102); /* on a busy machine a second has passed */
    event_log_follow(log);
    assert_false(event_log_has_file(log));
    assert_ok(add(log, "loss", 101, true, &error), &error);
    event_log_lead(log, 3, 101);
    event_log_lead(log, 4, 101); /* it is the chief already */
    assert_ok(add(log, "loss", 102, true, &error), &error);
    event_log_close(log);
    assert_int_equal(frames_in(&target), 4); /* of the newest file */
}

/* Of a program that reports nothing in this task the library's values are not written again: they
 * would void those that the chief before it has written. */
static void a_follower_without_values_voids_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct event_target target = target_in(test_temp_dir());
    struct event_log *log;
    assert_ok(event_log_open(&target, &log, &error), &error);
    assert_ok(add(log, "cadre/step_seconds", 9, false, &error), &error);
    event_log_lead(log, 2, 9);
    assert_ok(add(log, "loss", 10, true, &error), &error);
    event_log_close(log);
    assert_int_equal(frames_in(&target), 3);
}

static void names_follow_the_ledger_then_the_clock(void **state)
{
    (void)state;
    char path[EVENT_PATH_BYTES];
    struct event_target target = {.folder = "/x", .job = 12, .slot = 7};
    event_target_path(&target, 34, 0, path);
    assert_non_null(strstr(path, "/x/events.out.tfevents.0000000012.000034."));
    assert_string_equal(strrchr(path, '.'), ".7");
    event_target_path(&target, 34, 9000000000, path); /* the clock was wrong */
    assert_non_null(strstr(path, "/x/events.out.tfevents.9000000001."));
    target.job = 0;
    event_target_path(&target, 1, 0, path);
    assert_int_equal(strncmp(path, "/x/events.out.tfevents.", 23), 0);
    assert_true(strtoull(path + 23, NULL, 10) > 1000000000);
}

static void begin_another(const struct event_target *target)
{
    struct cadre_error error = {0};
    struct event_file *file;
    assert_ok(event_file_open(target, 5, &file, &error), &error);
    event_file_append(file, "frames", 6);
    event_file_close(file);
}

/* Files of one second, and of one job: each is behind those that are there. */
static void each_file_is_behind_those_before(void **state)
{
    (void)state;
    const struct event_target target = target_in(test_temp_dir());
    uint64_t before = 0;
    begin_another(&target);
    assert_int_equal(event_target_newest(&target), target.job);
    for (int i = 0; i < 3; i++) {
        begin_another(&target);
        assert_true(event_target_newest(&target) > before);
        before = event_target_newest(&target);
    }
}

static void a_large_file_gets_fewer_values(void **state)
{
    (void)state;
    struct event_tags tags = {0};
    struct event_tag *tag;
    struct cadre_error error = {0};
    assert_ok(event_tags_find(&tags, "loss", &tag, &error), &error);
    uint64_t now_us = 5 * CADRE_US_PER_S;
    assert_true(event_tag_due(tag, 0, now_us));
    assert_true(event_tag_due(tag, EVENT_LARGE_BYTES - 1, now_us));
    assert_false(event_tag_due(tag, EVENT_LARGE_BYTES, now_us + CADRE_US_PER_S / 10 - 1));
    assert_true(event_tag_due(tag, EVENT_LARGE_BYTES, now_us + CADRE_US_PER_S / 10));
    assert_false(event_tag_due(tag, EVENT_VERY_LARGE_BYTES, now_us + CADRE_US_PER_S));
    assert_true(event_tag_due(tag, EVENT_VERY_LARGE_BYTES, now_us + 2 * CADRE_US_PER_S));
    event_tags_clear(&tags);
}

static void tags_have_a_limit(void **state)
{
    (void)state;
    struct event_tags tags = {0};
    struct event_tag *tag;
    struct cadre_error error = {0};
    char name[32];
    for (int i = 0; i < EVENT_TAGS_MAX; i++) {
        snprintf(name, sizeof name, "tag %d", i);
        assert_ok(event_tags_find(&tags, name, &tag, &error), &error);
        assert_string_equal(tag->name, name);
    }
    assert_error(event_tags_find(&tags, "more", &tag, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "'more' would be tag number 1025 of the event files; at most 1024");
    assert_ok(event_tags_find(&tags, "tag 1000", &tag, &error), &error);
    assert_string_equal(tag->name, "tag 1000");
    event_tags_clear(&tags);
}

/* One way through all of it; errors are of memory, and what is in the file is whole. */
static void write_some(const struct event_target *target)
{
    struct cadre_error error = {0};
    struct event_log *log;
    cadre_status status = event_log_open(target, &log, &error);
    if (status != CADRE_OK) {
        assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
        return;
    }
    (void)add(log, "loss", 1, true, &error);
    event_log_lead(log, 2, 1);
    for (uint64_t step = 2; step <= 4; step++) {
        status = add(log, "loss", step, true, &error);
        assert_true(status == CADRE_OK || status == CADRE_RESOURCE_EXHAUSTED);
        event_log_flush(log);
    }
    event_log_close(log);
}

static void each_call_fails_once(void **state)
{
    (void)state;
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        const struct event_target target = target_in(test_temp_dir());
        fault_arm("event.", nth);
        write_some(&target);
        met = fault_disarm();
        size_t frames = frames_in(&target);
        assert_true(met ? frames <= 6 : frames == 6);
        assert_in_range(nth, 1, 30); /* folders of this test */
    }
}

/* What a disk refuses is written later, in order. */
static void a_disk_that_fails_once_costs_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct event_target target = target_in(test_temp_dir());
    struct event_log *log;
    assert_ok(event_log_open(&target, &log, &error), &error);
    event_log_lead(log, 1, 0);
    fault_arm("event.write", 1);
    assert_ok(add(log, "loss", 1, true, &error), &error);
    event_log_flush(log);
    assert_true(fault_disarm());
    assert_ok(add(log, "loss", 2, true, &error), &error);
    event_log_flush(log);
    assert_int_equal(frames_in(&target), 4);
    event_log_close(log);
}

/* Where nothing can be written the memory has a limit. */
static void what_is_kept_has_a_limit(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *folder = test_temp_dir();
    const struct event_target target = target_in(folder);
    struct event_file *file;
    static const char frames[1 << 20];
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, folder, "a"), "this is no folder");
    assert_ok(event_file_open(&target, 1, &file, &error), &error);
    for (int i = 0; i < 32; i++) {
        event_file_append(file, frames, sizeof frames);
    }
    assert_int_equal(event_file_size(file), EVENT_FILE_KEPT_BYTES);
    event_file_flush(file);
    event_file_append(file, frames, sizeof frames);
    assert_int_equal(event_file_size(file), EVENT_FILE_KEPT_BYTES);
    event_file_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_begins_with_the_first_value_of_the_program),
        cmocka_unit_test(a_follower_keeps_what_it_may_have_to_write),
        cmocka_unit_test(a_follower_without_values_voids_nothing),
        cmocka_unit_test(names_follow_the_ledger_then_the_clock),
        cmocka_unit_test(each_file_is_behind_those_before),
        cmocka_unit_test(a_large_file_gets_fewer_values),
        cmocka_unit_test(tags_have_a_limit),
        cmocka_unit_test(each_call_fails_once),
        cmocka_unit_test(a_disk_that_fails_once_costs_nothing),
        cmocka_unit_test(what_is_kept_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
