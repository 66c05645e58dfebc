/* SPDX-License-Identifier: Apache-2.0
 * Which contents stay and which go: what live jobs and kept checkpoints need is never removed, nor
 * what an upload in progress relies on; the rest goes, also when the coordinator was killed in the
 * middle. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/content_table.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/file_store.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/base/disk.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"

static struct engine engine;
static struct daemon stand;

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open(&stand, &engine);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    daemon_close(&stand);
    return 0;
}

static void refresh(void)
{
    struct cadre_error error = {0};
    assert_ok(refresh_references(&stand, &error), &error);
}

/* As often as it is done anyway: long ago. */
static void clean(void)
{
    stand.cleaned_us = clock_monotonic_us() - 3600 * CADRE_US_PER_S;
    file_store_collect_garbage(&stand);
}

static void restart(void)
{
    content_references_close(stand.content_references);
    stand.content_references = NULL;
    reopen_contents(&stand);
    refresh();
}

/* One that is due to be cleaned up anyhow. */
static void assert_gone_after_cleaning(const char *text)
{
    clean();
    assert_false(is_here(&stand, text));
}

/* As another coordinator touches the file of a content. */
static void touch_file(const char *text, uint64_t seconds_ago)
{
    struct sha256 hash = hash_of_text(text);
    char *path = path_of_blob(&stand, hash.bytes);
    time_t then = (time_t)(clock_wall_us() / CADRE_US_PER_S - seconds_ago);
    const struct timespec times[2] = {{.tv_sec = then}, {.tv_nsec = UTIME_OMIT}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static void what_a_job_needs_stays_as_long_as_it_is_known(void **state)
{
    (void)state;
    struct job_file files[] = {
        {.name = "shared", .size_bytes = 6}, {.name = "own", .size_bytes = 3}};
    struct sha256 hash = hash_of_text("common");
    memcpy(files[0].sha256, hash.bytes, sizeof hash.bytes);
    hash = hash_of_text("own");
    memcpy(files[1].sha256, hash.bytes, sizeof hash.bytes);
    put_old_content(&stand, "one");
    put_old_content(&stand, "two");
    put_old_content(&stand, "common");
    put_old_content(&stand, "own");
    put_old_content(&stand, "unused");
    add_job(&engine, 1, "one")->spec.files = files;
    engine.jobs[0].spec.file_count = 2;
    add_job(&engine, 2, "two")->spec.files = files;
    engine.jobs[1].spec.file_count = 1;
    refresh();
    assert_true(is_here(&stand, "unused")); /* a first count removes nothing */
    clean();
    assert_false(is_here(&stand, "unused"));
    assert_true(is_here(&stand, "one") && is_here(&stand, "two") && is_here(&stand, "common"));
    engine.jobs[0].state = JOB_SUCCEEDED; /* that ended is known still */
    refresh();
    clean();
    assert_true(is_here(&stand, "one") && is_here(&stand, "own"));
    forget_job(&engine, 1);
    refresh();
    assert_false(is_here(&stand, "one") || is_here(&stand, "own"));
    assert_true(is_here(&stand, "two") && is_here(&stand, "common"));
    clean();
    assert_true(is_here(&stand, "two") && is_here(&stand, "common"));
    forget_job(&engine, 2);
    refresh();
    assert_false(is_here(&stand, "two") || is_here(&stand, "common"));
}

/* All save in turn, so that what is kept is in another order than what was: to find each again does
 * not mean to look at the others. */
static void many_that_save_are_found_at_once(void **state)
{
    (void)state;
    const uint64_t referrers = FAKE_JOBS_MAX * 3;
    for (uint64_t id = 1; id <= FAKE_JOBS_MAX; id++) {
        add_job(&engine, id, "program");
    }
    put_old_content(&stand, "program");
    refresh();
    for (uint64_t round = 0; round < 4; round++) {
        for (uint64_t i = 0; i < FAKE_JOBS_MAX; i++) {
            char block[32];
            (void)snprintf(block, sizeof block, "%d of %d", (int)round, (int)i);
            struct core_checkpoint saved = put_checkpoint(
                &stand, 1 + round * FAKE_JOBS_MAX + i, (const char *const[]){block, NULL});
            struct task_part part = {.position = saved.position};
            memcpy(part.sha256, saved.manifest_sha256, sizeof part.sha256);
            content_references_add_part(&stand, (struct job_id){i + 1}, &part, NULL);
            content_references_add_part(&stand, (struct job_id){i + 1}, &part, NULL); /* repeated */
            publish(&engine.jobs[i], &saved);
            if (round >= 2) {
                drop_oldest(&engine.jobs[i]);
            }
        }
        uint64_t before = content_references_compared(stand.content_references);
        refresh();
        refresh();
        assert_in_range(
            content_references_compared(stand.content_references) - before, 1, 5 * referrers);
    }
    assert_false(is_here(&stand, "1 of 63"));
    assert_true(is_here(&stand, "2 of 63") && is_here(&stand, "3 of 0"));
    assert_in_range(content_references_compared(stand.content_references), 1, 22 * referrers);
}

static void blocks_stay_until_their_last_checkpoint_goes(void **state)
{
    (void)state;
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint first =
        put_checkpoint(&stand, 10, (const char *const[]){"a", "same", "same", NULL});
    struct core_checkpoint second =
        put_checkpoint(&stand, 20, (const char *const[]){"b", "same", NULL});
    publish(job, &first);
    refresh();
    publish(job, &second);
    refresh();
    clean();
    assert_true(is_here(&stand, "a") && is_here(&stand, "b") && is_here(&stand, "same"));
    drop_oldest(job);
    refresh();
    assert_false(is_here(&stand, "a") || manifest_is_here(&stand, &first));
    assert_true(is_here(&stand, "b") && is_here(&stand, "same"));
    assert_true(manifest_is_here(&stand, &second));
    clean();
    assert_true(is_here(&stand, "b") && is_here(&stand, "same") && is_here(&stand, "program"));
    drop_oldest(job);
    refresh();
    assert_false(is_here(&stand, "b") || is_here(&stand, "same"));
    assert_false(manifest_is_here(&stand, &second));
    assert_true(is_here(&stand, "program"));
}

/* One job goes on from the checkpoint of another that is gone. */
static void an_origin_is_needed_until_there_is_an_own_one(void **state)
{
    (void)state;
    struct core_checkpoint origin = put_checkpoint(&stand, 10, (const char *const[]){"a", NULL});
    struct core_checkpoint own = put_checkpoint(&stand, 20, (const char *const[]){"b", NULL});
    publish(add_job(&engine, 1, "program"), &origin);
    put_old_content(&stand, "program");
    struct fake_job *next = add_job(&engine, 2, "program");
    next->restores = true;
    next->origin = origin;
    refresh();
    forget_job(&engine, 1);
    next = &engine.jobs[0];
    refresh();
    clean();
    assert_true(is_here(&stand, "a") && manifest_is_here(&stand, &origin));
    assert_true(is_here(&stand, "program"));
    publish(next, &own);
    refresh();
    assert_false(is_here(&stand, "a") || manifest_is_here(&stand, &origin));
}

/* MissingBlobs listed a content as here, or an upload has just brought it. */
static void what_an_upload_counts_on_stays(void **state)
{
    (void)state;
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint first =
        put_checkpoint(&stand, 10, (const char *const[]){"listed", "not listed", NULL});
    publish(job, &first);
    refresh();
    ask_for(&stand, "listed", 5);
    put_content(&stand, "brought");
    drop_oldest(job);
    refresh();
    assert_true(is_here(&stand, "listed"));
    assert_false(is_here(&stand, "not listed"));
    clean();
    assert_true(is_here(&stand, "listed") && is_here(&stand, "brought"));
    /* An hour later it has come to nothing. */
    ask_for(&stand, "listed", 3700);
    put_old_content(&stand, "brought");
    assert_gone_after_cleaning("listed");
    assert_gone_after_cleaning("brought");
}

/* Of several coordinators on one folder, by the clock: another one may lead already. */
static void who_may_not_lead_any_more_removes_nothing(void **state)
{
    (void)state;
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    put_old_content(&stand, "unused");
    struct core_checkpoint first = put_checkpoint(&stand, 10, (const char *const[]){"a", NULL});
    struct core_checkpoint second = put_checkpoint(&stand, 20, (const char *const[]){"b", NULL});
    publish(job, &first);
    publish(job, &second);
    refresh();
    uint64_t bytes = contents_bytes(stand.contents);
    leading_set(&stand.leading, clock_boot_us());
    drop_oldest(job);
    refresh();
    clean();
    assert_true(is_here(&stand, "unused") && is_here(&stand, "a"));
    assert_true(manifest_is_here(&stand, &first));
    assert_int_equal(contents_bytes(stand.contents), bytes);
    leading_set(&stand.leading, clock_boot_us() + 3600 * CADRE_US_PER_S); /* it leads after all */
    assert_gone_after_cleaning("unused");
    assert_false(is_here(&stand, "a"));
    assert_true(is_here(&stand, "b") && is_here(&stand, "program"));
}

/* MissingBlobs at another coordinator listed it as here, of which this one knows nothing. */
static void what_another_coordinator_counts_on_stays(void **state)
{
    (void)state;
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint first =
        put_checkpoint(&stand, 10, (const char *const[]){"a", "b", NULL});
    struct core_checkpoint second = put_checkpoint(&stand, 20, (const char *const[]){"c", NULL});
    put_old_content(&stand, "unused");
    publish(job, &first);
    publish(job, &second);
    refresh();
    leading_set(&stand.leading, clock_boot_us() + 3600 * CADRE_US_PER_S);
    touch_file("a", 0);
    touch_file("unused", 0);
    drop_oldest(job);
    refresh();
    clean();
    assert_true(is_here(&stand, "a") && is_here(&stand, "unused"));
    assert_false(is_here(&stand, "b"));
    touch_file("a", 3700);
    touch_file("unused", 3700);
    clean();
    assert_false(is_here(&stand, "a") || is_here(&stand, "unused"));
}

/* A part was given to the engine: between then and its record nothing else holds its contents. */
static void a_part_holds_its_contents_until_it_is_decided(void **state)
{
    (void)state;
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint first = put_checkpoint(&stand, 10, (const char *const[]){"a", NULL});
    struct core_checkpoint second = put_checkpoint(&stand, 20, (const char *const[]){"b", NULL});
    struct core_checkpoint third = put_checkpoint(&stand, 30, (const char *const[]){"c", NULL});
    struct task_part part = part_of(&first);
    refresh();
    content_references_add_part(&stand, (struct job_id){1}, &part, NULL);
    content_references_add_part(&stand, (struct job_id){1}, &part, NULL); /* repeated */
    part = part_of(&second);
    content_references_add_part(&stand, (struct job_id){1}, &part, NULL);
    part = part_of(&third);
    content_references_add_part(&stand, (struct job_id){1}, &part, NULL);
    refresh();
    clean();
    assert_true(is_here(&stand, "a") && is_here(&stand, "b") && is_here(&stand, "c"));
    publish(job, &second); /* the first one never will be */
    refresh();
    assert_false(is_here(&stand, "a") || manifest_is_here(&stand, &first));
    assert_true(is_here(&stand, "b") && is_here(&stand, "c"));
    job->state = JOB_FAILED; /* nor the third one */
    refresh();
    assert_true(is_here(&stand, "b"));
    assert_false(is_here(&stand, "c") || manifest_is_here(&stand, &third));
}

static void contents_of_a_shared_folder_are_none_of_ours(void **state)
{
    (void)state;
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint shared = {.position = 10, .shared = true, .path = "c-10.json"};
    struct task_part part = part_of(&shared);
    refresh();
    content_references_add_part(&stand, (struct job_id){1}, &part, NULL);
    publish(job, &shared);
    refresh();
    drop_oldest(job);
    refresh();
    assert_true(is_here(&stand, "program"));
}

static unsigned count_contents(void)
{
    unsigned count = 0;
    DIR *folder = opendir(stand.blob_dir);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    closedir(folder);
    return count;
}

/* Killed while contents came in, and after a checkpoint was dropped from the ledger but before its
 * contents were removed. */
static void a_start_finds_what_a_kill_left(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint dropped =
        put_checkpoint(&stand, 10, (const char *const[]){"a", "same", NULL});
    struct core_checkpoint kept =
        put_checkpoint(&stand, 20, (const char *const[]){"b", "same", NULL});
    publish(job, &kept);
    put_content(&stand, "brought");
    test_write(test_path(path, stand.blob_dir, "upload-17"), "a half");
    restart();
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(is_here(&stand, "a")); /* an upload may go on with it after the restart */
    clean();
    assert_false(is_here(&stand, "a") || manifest_is_here(&stand, &dropped));
    assert_true(is_here(&stand, "b") && is_here(&stand, "same") && is_here(&stand, "program"));
    assert_true(is_here(&stand, "brought") && manifest_is_here(&stand, &kept));
    assert_int_equal(count_contents(), 5);
    restart();
    restart();
    clean();
    assert_int_equal(count_contents(), 5);
}

/* Its blocks are not known, and no other checkpoint has them. All else goes on. */
static void a_manifest_that_is_damaged_spares_the_others(void **state)
{
    (void)state;
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint lost = put_checkpoint(&stand, 10, (const char *const[]){"a", NULL});
    struct core_checkpoint good = put_checkpoint(&stand, 20, (const char *const[]){"b", NULL});
    publish(job, &lost);
    publish(job, &good);
    char *path = path_of_blob(&stand, lost.manifest_sha256);
    test_write(path, "no manifest");
    free(path);
    restart();
    clean();
    assert_true(is_here(&stand, "b") && manifest_is_here(&stand, &good));
    drop_oldest(job);
    refresh();
    assert_true(is_here(&stand, "b") && manifest_is_here(&stand, &good));
    assert_false(manifest_is_here(&stand, &lost));
}

/* ---- manifests ---- */

/* What the look at a part read of its manifest is not read again: its blocks are held from then on.
 */
static void what_a_part_mentions_is_held_at_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    refresh();
    struct core_checkpoint first = put_checkpoint(&stand, 10, (const char *const[]){"a", NULL});
    struct task_part part = part_of(&first);
    struct artifact_references references;
    assert_ok(artifacts_read_references(&stand, &first, true, &references, &error), &error);
    assert_int_equal(references.bytes, first.manifest_bytes + 1);
    content_references_add_part(&stand, (struct job_id){1}, &part, &references);
    assert_ok(content_references_refresh(&stand, &error), &error);
    assert_false(content_references_are_loading(stand.content_references));
    clean();
    assert_true(is_here(&stand, "a") && manifest_is_here(&stand, &first));
    publish(job, &first);
    assert_ok(content_references_refresh(&stand, &error), &error);
    stand.options.job_quota_bytes = 1;
    assert_int_equal(
        content_references_checkpoint_bytes(&stand, (struct job_id){1}), first.manifest_bytes + 1);
    struct sha256 block = hash_of_text("a");
    struct sha256 other = hash_of_text("b");
    assert_true(content_references_checkpoint_has(
        stand.content_references, (struct job_id){1}, &first, &block));
    assert_false(content_references_checkpoint_has(
        stand.content_references, (struct job_id){1}, &first, &other));
    /* Another job goes on from it: no manifest is read for that either. */
    struct fake_job *next = add_job(&engine, 2, "program");
    next->restores = true;
    next->origin = first;
    assert_ok(content_references_refresh(&stand, &error), &error);
    assert_false(content_references_are_loading(stand.content_references));
    drop_oldest(job);
    refresh();
    assert_true(is_here(&stand, "a") && manifest_is_here(&stand, &first));
}

/* Nothing is removed while a thread reads which blocks a checkpoint needs. */
static void nothing_goes_while_a_manifest_is_read(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint first =
        put_checkpoint(&stand, 10, (const char *const[]){"a", "same", NULL});
    struct core_checkpoint second =
        put_checkpoint(&stand, 20, (const char *const[]){"b", "same", NULL});
    publish(job, &first);
    refresh();
    publish(job, &second);
    drop_oldest(job);
    stand.references_dropped = false;
    assert_error(
        content_references_refresh(&stand, &error), CADRE_UNAVAILABLE, &error, "is not read");
    assert_true(content_references_are_loading(stand.content_references));
    assert_true(is_here(&stand, "a") && is_here(&stand, "same"));
    assert_false(content_references_are_loading(stand.content_references));
    assert_true(stand.references_dropped);
    refresh();
    assert_false(is_here(&stand, "a") || manifest_is_here(&stand, &first));
    assert_true(is_here(&stand, "b") && is_here(&stand, "same"));
}

/* ---- the table ---- */

/* As a list would: those behind a place that becomes free are found still. */
static void the_table_finds_what_it_holds(void **state)
{
    (void)state;
    enum { HASHES = 600 };
    static bool held[HASHES];
    struct content_table table = {0};
    struct sha256 hashes[HASHES];
    size_t count = 0;
    for (unsigned i = 0; i < HASHES; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%u", i);
        hashes[i] = hash_of_text(text);
        hashes[i].bytes[0] = (uint8_t)(i % 7); /* many want the same places */
        hashes[i].bytes[1] = 0;
    }
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = (step * 7919U + step / 13U) % HASHES;
        struct content *content = content_table_find(&table, &hashes[i]);
        assert_int_equal(content != NULL, held[i]);
        if (content == NULL) {
            content = content_table_add(&table, &hashes[i]);
            assert_non_null(content);
            content->number = i;
            held[i] = true;
            count++;
        } else if (step % 3 != 0) {
            assert_int_equal(content->number, i);
            content_table_remove(&table, content);
            held[i] = false;
            count--;
        }
        assert_int_equal(table.used, count);
    }
    content_table_free(&table);
}

/* ---- everything fails once ---- */

static struct core_checkpoint kept[2];

static void assert_needed_are_here(void)
{
    assert_true(is_here(&stand, "program") && is_here(&stand, "b") && is_here(&stand, "same"));
    assert_true(is_here(&stand, "c"));
    assert_true(manifest_is_here(&stand, &kept[0]) && manifest_is_here(&stand, &kept[1]));
}

/* A checkpoint is dropped, another is published and a third is on its way, while call after call
 * fails: of memory, or of the disk. */
static void no_failure_removes_what_is_needed(void **state)
{
    (void)state;
    static const char *const areas[] = {"references.", "file."};
    for (size_t area = 0; area < CADRE_COUNT_OF(areas); area++) {
        for (uint64_t nth = 1;; nth++) {
            struct cadre_error error = {0};
            engine = (struct engine){0};
            content_references_close(stand.content_references);
            stand.content_references = NULL;
            struct fake_job *job = add_job(&engine, 1, "program");
            put_old_content(&stand, "program");
            struct core_checkpoint first =
                put_checkpoint(&stand, 10, (const char *const[]){"a", "same", NULL});
            kept[0] = put_checkpoint(&stand, 20, (const char *const[]){"b", "same", NULL});
            kept[1] = put_checkpoint(&stand, 30, (const char *const[]){"c", "same", NULL});
            publish(job, &first);
            fault_arm(areas[area], nth);
            (void)refresh_references(&stand, &error);
            publish(job, &kept[0]);
            drop_oldest(job);
            struct task_part part = part_of(&kept[1]);
            if (stand.content_references != NULL) {
                content_references_add_part(&stand, (struct job_id){1}, &part, NULL);
            }
            cadre_status status = refresh_references(&stand, &error);
            bool met = fault_disarm();
            assert_needed_are_here();
            if (status != CADRE_OK) {
                assert_true(error.text[0] != '\0');
                assert_true(is_here(&stand, "a")); /* on an error nothing is removed */
            }
            refresh(); /* what is left is made up for */
            clean();
            assert_needed_are_here();
            assert_false(is_here(&stand, "a"));
            if (!met) {
                assert_true(nth > 3);
                break;
            }
        }
    }
}

static void a_broken_engine_is_not_believed(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct fake_job *job = add_job(&engine, 1, "program");
    put_old_content(&stand, "program");
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand, 10, (const char *const[]){"a", NULL});
    publish(job, &checkpoint);
    refresh();
    engine.broken = true;
    assert_error(refresh_references(&stand, &error), CADRE_DATA_LOSS, &error, "broken");
    assert_true(is_here(&stand, "a") && is_here(&stand, "program"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(what_a_job_needs_stays_as_long_as_it_is_known),
        TEST(many_that_save_are_found_at_once), TEST(blocks_stay_until_their_last_checkpoint_goes),
        TEST(an_origin_is_needed_until_there_is_an_own_one), TEST(what_an_upload_counts_on_stays),
        TEST(who_may_not_lead_any_more_removes_nothing),
        TEST(what_another_coordinator_counts_on_stays),
        TEST(a_part_holds_its_contents_until_it_is_decided),
        TEST(contents_of_a_shared_folder_are_none_of_ours), TEST(a_start_finds_what_a_kill_left),
        TEST(a_manifest_that_is_damaged_spares_the_others),
        TEST(what_a_part_mentions_is_held_at_once), TEST(nothing_goes_while_a_manifest_is_read),
        TEST(the_table_finds_what_it_holds), TEST(no_failure_removes_what_is_needed),
        TEST(a_broken_engine_is_not_believed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
