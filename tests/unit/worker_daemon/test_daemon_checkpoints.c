/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint goes to the coordinator, block by block, and comes back to another host; links break
 * in between, programs lie, coordinators refuse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "tests/unit/worker_daemon/played_coordinator.h"
#include "worker/daemon/daemon.h"

#define BIG        ((size_t)1500 * 1000) /* a block of several messages */
#define SMALL      ((size_t)100)
#define FILE_BYTES (BIG + 2 * SMALL)

struct stand {
    struct coordinator coordinator;
    struct daemon daemon;
    struct task_files task;
    struct task_files second; /* of the same job, listed when a test wants it */
    struct agent_start start;
    char folder[TEST_PATH_BYTES]; /* of the task */
    char path[TEST_PATH_BYTES];
    struct task_part part;
    uint8_t file[FILE_BYTES];
    char manifest[4096];
    /* what became of it */
    bool done;
    unsigned published;
    unsigned placed;
    unsigned resumed;
    cadre_status code;
    char text[LIMIT_TEXT_BYTES];
};

static struct stand *stand;

/* ---- the agent and the rest of the daemon ---- */

void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    assert_null(agent);
    assert_int_equal(task.job.n, 7);
    stand->published++;
    stand->code = code;
    snprintf(stand->text, sizeof stand->text, "%s", text);
    stand->done = true;
}

void tasks_fail(struct task_files *task, const char *text)
{
    assert_true(task == &stand->task || task == &stand->second);
    stand->code = CADRE_UNKNOWN;
    snprintf(stand->text, sizeof stand->text, "%s", text);
    stand->done = true;
}

void place_start(struct task_files *task)
{
    assert_true(task == &stand->task || task == &stand->second);
    stand->placed++;
    stand->done = true;
}

void outputs_resume(struct task_files *task)
{
    assert_ptr_equal(task, &stand->task);
    stand->resumed++;
}

/* ---- the stand ---- */

static const char *in(const char *name)
{
    return test_path(stand->path, stand->folder, name);
}

static void hex(const void *bytes, size_t size, char ret_hex[SHA256_HEX_BYTES])
{
    struct sha256 hash;
    assert_int_equal(sha256_of(bytes, size, &hash, NULL), CADRE_OK);
    sha256_hex(&hash, ret_hex);
}

static void put_file(const char *name, const void *bytes, size_t size)
{
    struct cadre_error error = {0};
    assert_ok(file_write_atomic(in(name), bytes, size, 0644, &error), &error);
}

/* A checkpoint of three blocks, the last two of them equal, as a chief leaves it. */
static void write_checkpoint(uint64_t position)
{
    char whole[SHA256_HEX_BYTES];
    char big[SHA256_HEX_BYTES];
    char small[SHA256_HEX_BYTES];
    hex(stand->file, FILE_BYTES, whole);
    hex(stand->file, BIG, big);
    hex(stand->file + BIG, SMALL, small);
    int length = snprintf(stand->manifest, sizeof stand->manifest,
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":%llu,"
        "\"file\":{\"name\":\"c.safetensors\",\"bytes\":%zu,\"sha256\":\"%s\"},\"blocks\":["
        "{\"offset\":0,\"bytes\":%zu,\"sha256\":\"%s\"},"
        "{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"},"
        "{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"}]}",
        (unsigned long long)position, FILE_BYTES, whole, BIG, big, BIG, SMALL, small, BIG + SMALL,
        SMALL, small);
    struct sha256 hash;
    assert_int_equal(sha256_of(stand->manifest, (size_t)length, &hash, NULL), CADRE_OK);
    put_file("out/deep/c.safetensors", stand->file, FILE_BYTES);
    put_file("out/deep/c.json", stand->manifest, (size_t)length);
    stand->part = (struct task_part){
        .position = position, .path = "deep/c.json", .size_bytes = (uint64_t)length};
    memcpy(stand->part.sha256, hash.bytes, sizeof hash.bytes);
}

static void make_folder(const char *name)
{
    struct cadre_error error = {0};
    assert_ok(folder_make(in(name), 0755, &error), &error);
}

static int set_up(void **state)
{
    (void)state;
    static unsigned count;
    static const char *base;
    struct cadre_error error = {0};
    base = base != NULL ? base : test_temp_dir();
    stand = calloc(1, sizeof *stand);
    assert_non_null(stand);
    snprintf(stand->folder, sizeof stand->folder, "%s/%u", base, count++);
    make_folder("out/deep");
    assert_ok(rpc_loop_open(&stand->daemon.loop, &error), &error);
    coordinator_open(&stand->coordinator, stand->daemon.loop);
    assert_ok(rpc_channel_open(stand->daemon.loop, stand->coordinator.address, NULL,
                  &stand->daemon.channel, &error),
        &error);
    stand->daemon.arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    stand->daemon.linked = true;
    stand->task = (struct task_files){.daemon = &stand->daemon,
        .ref = {.job = {7}, .slot = 1, .incarnation = 2},
        .folder = stand->folder,
        .start = &stand->start};
    for (size_t i = 0; i < BIG; i++) {
        stand->file[i] = (uint8_t)((uint32_t)i * UINT32_C(2654435761) >> 21);
    }
    write_checkpoint(120);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    publish_cancel(&stand->task);
    restore_cancel(&stand->task);
    rpc_channel_close(stand->daemon.channel);
    while (stand->daemon.works > 0) {
        bool never = false;
        (void)rpc_loop_run_until(
            stand->daemon.loop, &never, clock_monotonic_us() + 10 * CADRE_US_PER_MS);
    }
    coordinator_close(&stand->coordinator);
    rpc_loop_close(stand->daemon.loop);
    wire_arena_free(stand->daemon.arena);
    wire_buffer_free(&stand->daemon.packed);
    free(stand->task.restore_path);
    free(stand);
    return 0;
}

static void until_done(void)
{
    assert_int_equal(rpc_loop_run_until(stand->daemon.loop, &stand->done,
                         clock_monotonic_us() + 10 * CADRE_US_PER_S),
        CADRE_OK);
    stand->done = false;
}

/* Until nothing more happens by itself. */
static void until_quiet(void)
{
    bool never = false;
    (void)rpc_loop_run_until(
        stand->daemon.loop, &never, clock_monotonic_us() + 100 * CADRE_US_PER_MS);
    assert_false(stand->done);
}

static void publish(void)
{
    publish_start(&stand->task, &stand->part);
    until_done();
}

static void assert_published(unsigned puts)
{
    if (stand->code != CADRE_OK) {
        fail_msg("%s", stand->text);
    }
    assert_int_equal(stand->coordinator.puts, puts);
    assert_non_null(coordinator_find(&stand->coordinator, stand->part.sha256));
    assert_null(stand->task.publish);
}

static void assert_not_published(cadre_status code, const char *part)
{
    assert_int_equal(stand->code, code);
    if (strstr(stand->text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, stand->text);
    }
    assert_null(stand->task.publish);
}

/* ---- publishing ---- */

static void only_what_is_missing_is_sent(void **state)
{
    (void)state;
    publish();
    assert_published(3); /* equal blocks are one content; and the manifest */
    write_checkpoint(160);
    publish();
    assert_published(4); /* the tensors are the same */
    stand->file[0] ^= 1;
    write_checkpoint(200);
    publish();
    assert_published(6);
    assert_int_equal(stand->published, 3);
    assert_int_equal(stand->resumed, 0);
}

static void the_manifest_comes_last(void **state)
{
    (void)state;
    stand->coordinator.refusal = CADRE_RESOURCE_EXHAUSTED;
    stand->coordinator.good_calls = 3; /* the question and both blocks */
    publish();
    assert_not_published(CADRE_RESOURCE_EXHAUSTED, "says no");
    assert_int_equal(stand->coordinator.puts, 2);
    assert_null(coordinator_find(&stand->coordinator, stand->part.sha256));
}

/* Of many small blocks, no two of them equal. */
static void write_many_blocks(unsigned count)
{
    char whole[SHA256_HEX_BYTES];
    size_t at;
    hex(stand->file, count * SMALL, whole);
    at = (size_t)snprintf(stand->manifest, sizeof stand->manifest,
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":120,"
        "\"file\":{\"name\":\"c.safetensors\",\"bytes\":%zu,\"sha256\":\"%s\"},\"blocks\":[",
        count * SMALL, whole);
    for (unsigned i = 0; i < count; i++) {
        char block[SHA256_HEX_BYTES];
        hex(stand->file + i * SMALL, SMALL, block);
        at += (size_t)snprintf(stand->manifest + at, sizeof stand->manifest - at,
            "%s{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"}", i > 0 ? "," : "", i * SMALL,
            SMALL, block);
    }
    at += (size_t)snprintf(stand->manifest + at, sizeof stand->manifest - at, "]}");
    struct sha256 hash;
    assert_int_equal(sha256_of(stand->manifest, at, &hash, NULL), CADRE_OK);
    put_file("out/deep/c.safetensors", stand->file, count * SMALL);
    put_file("out/deep/c.json", stand->manifest, at);
    stand->part.size_bytes = at;
    memcpy(stand->part.sha256, hash.bytes, sizeof hash.bytes);
}

static void several_blocks_travel_at_once(void **state)
{
    (void)state;
    write_many_blocks(20);
    publish();
    assert_published(21);
    assert_true(stand->coordinator.coming_most > 1);
    assert_true(stand->coordinator.coming_most <= 4);
}

/* One that is refused takes the others with it. */
static void a_refusal_ends_them_all(void **state)
{
    (void)state;
    for (unsigned good = 1; good < 12; good++) {
        write_many_blocks(10);
        stand->coordinator.refusal = CADRE_RESOURCE_EXHAUSTED;
        stand->coordinator.good_calls = good;
        publish();
        assert_not_published(CADRE_RESOURCE_EXHAUSTED, "says no");
        assert_null(coordinator_find(&stand->coordinator, stand->part.sha256));
        until_quiet();
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
    assert_int_equal(stand->published, 11);
}

/* The link breaks in the middle of them, and the next one may come before their ends are told. */
static void a_link_breaks_under_several(void **state)
{
    (void)state;
    for (unsigned good = 1; good < 12; good++) {
        write_many_blocks(10);
        stand->coordinator.refusal = CADRE_UNAVAILABLE;
        stand->coordinator.good_calls = good;
        stand->coordinator.puts = 0;
        publish_start(&stand->task, &stand->part);
        if (good % 2 == 0) {
            until_quiet();
        } else {
            while (stand->coordinator.good_calls > 0) {
                bool never = false;
                (void)rpc_loop_run_until(stand->daemon.loop, &never, clock_monotonic_us() + 100);
            }
        }
        stand->coordinator.refusal = CADRE_OK;
        publish_resume(&stand->task);
        until_done();
        assert_published(11);
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
}

static void it_waits_for_the_link(void **state)
{
    (void)state;
    stand->daemon.linked = false;
    publish_start(&stand->task, &stand->part);
    until_quiet();
    assert_int_equal(stand->coordinator.asks, 0);
    stand->daemon.linked = true;
    publish_resume(&stand->task);
    until_done();
    assert_published(3);
}

/* Wherever the link breaks, the next one brings the rest, and no more. */
static void a_broken_link_costs_nothing(void **state)
{
    (void)state;
    for (unsigned good = 0; good < 4; good++) {
        stand->coordinator.refusal = CADRE_UNAVAILABLE;
        stand->coordinator.good_calls = good;
        stand->coordinator.puts = 0;
        publish_start(&stand->task, &stand->part);
        until_quiet();
        assert_non_null(stand->task.publish);
        stand->coordinator.refusal = CADRE_OK;
        publish_resume(&stand->task);
        publish_resume(&stand->task); /* it is under way already */
        until_done();
        assert_published(3);
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
}

static void a_newer_one_takes_its_place(void **state)
{
    (void)state;
    stand->daemon.linked = false;
    publish_start(&stand->task, &stand->part);
    until_quiet();
    write_checkpoint(160);
    stand->daemon.linked = true;
    publish();
    until_quiet();
    assert_published(3);
    assert_int_equal(stand->published, 1);
}

/* Cancelled at whatever point, it ends without a word. */
static void it_can_be_cancelled(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 30; turns++) {
        publish_start(&stand->task, &stand->part);
        for (unsigned i = 0; i < turns && stand->task.publish != NULL; i++) {
            bool never = false;
            (void)rpc_loop_run_until(stand->daemon.loop, &never, clock_monotonic_us() + 200);
        }
        publish_cancel(&stand->task);
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
    stand->done = false;
    stand->published = 0;
    until_quiet();
    assert_int_equal(stand->published, 0);
}

static void a_collection_goes_on_after_it(void **state)
{
    (void)state;
    stand->task.collecting = true;
    publish();
    assert_int_equal(stand->resumed, 1);
}

static void what_was_changed_is_not_published(void **state)
{
    (void)state;
    put_file("out/deep/c.json", "other", 5);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "changed since");
    write_checkpoint(120);
    put_file("out/deep/c.safetensors", stand->file, FILE_BYTES - 1);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "its manifest says");
    write_checkpoint(120);
    stand->file[5] ^= 1;
    put_file("out/deep/c.safetensors", stand->file, FILE_BYTES);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "hash");
}

static void nothing_but_the_tasks_own_is_read(void **state)
{
    (void)state;
    char other[TEST_PATH_BYTES];
    test_path(other, stand->folder, "out/deep/c.json");
    assert_int_equal(symlink(other, in("out/link.json")), 0);
    stand->part.path = "link.json";
    publish();
    assert_int_not_equal(stand->code, CADRE_OK);
    stand->part.path = "../out/deep/c.json";
    publish();
    assert_not_published(CADRE_INVALID_ARGUMENT, "..");
    stand->part.path = other;
    publish();
    assert_int_equal(stand->code, CADRE_INVALID_ARGUMENT);
    stand->part.path = "deep";
    publish();
    assert_int_not_equal(stand->code, CADRE_OK);
    assert_int_equal(stand->coordinator.asks, 0);
}

/* ---- restoring ---- */

static void publish_for_restore(void)
{
    publish();
    assert_published(3);
    stand->start.restores = true;
    stand->start.checkpoint = (struct checkpoint_ref){.position = stand->part.position,
        .path = stand->part.path,
        .manifest_bytes = stand->part.size_bytes};
    memcpy(stand->start.checkpoint.manifest_sha256, stand->part.sha256, LIMIT_SHA256_BYTES);
}

static void assert_content(const char *name, const void *wanted, size_t wanted_size)
{
    char *bytes = NULL;
    size_t size = 0;
    struct cadre_error error = {0};
    assert_ok(file_read(in(name), 1U << 26, &bytes, &size, &error), &error);
    assert_int_equal(size, wanted_size);
    assert_memory_equal(bytes, wanted, size);
    free(bytes);
}

static void assert_restored(void)
{
    if (stand->placed != 1) {
        fail_msg("%s", stand->text);
    }
    assert_string_equal(stand->task.restore_path, in("restore/checkpoint.json"));
    assert_content("restore/c.safetensors", stand->file, FILE_BYTES);
    assert_content("restore/checkpoint.json", stand->manifest, stand->part.size_bytes);
    assert_null(stand->task.restore);
}

static void a_task_without_a_checkpoint_goes_on_at_once(void **state)
{
    (void)state;
    restore_start(&stand->task);
    assert_int_equal(stand->placed, 1);
    assert_null(stand->task.restore_path);
}

static void assert_mode(const char *name, mode_t mode)
{
    struct stat status;
    assert_int_equal(stat(in(name), &status), 0);
    assert_int_equal(status.st_mode & 0777, mode);
}

static void it_is_put_together(void **state)
{
    (void)state;
    publish_for_restore();
    mode_t before = umask(077);
    restore_start(&stand->task);
    until_done();
    umask(before);
    assert_restored();
    assert_int_equal(stand->coordinator.gets, 4);
    assert_mode("restore", 0700);
    assert_mode("restore/c.safetensors", 0644); /* for the task's user, whose folder it is */
    assert_mode("restore/checkpoint.json", 0644);
}

static void it_waits_for_links(void **state)
{
    (void)state;
    publish_for_restore();
    stand->coordinator.refusal = CADRE_UNAVAILABLE;
    stand->coordinator.good_calls = 0;
    restore_start(&stand->task);
    for (unsigned good = 0; good < 3; good++) {
        until_quiet();
        stand->coordinator.good_calls = 1;
        restore_resume(&stand->task);
    }
    until_quiet();
    stand->coordinator.refusal = CADRE_OK;
    restore_resume(&stand->task);
    restore_resume(&stand->task);
    until_done();
    assert_restored();
}

static void assert_fails(const char *part)
{
    restore_start(&stand->task);
    until_done();
    assert_int_equal(stand->placed, 0);
    if (strstr(stand->text, part) == NULL || strstr(stand->text, "step 120") == NULL) {
        fail_msg("no \"%s\" in: %s", part, stand->text);
    }
    assert_null(stand->task.restore);
}

/* Both start at once; the first one's folder is the second's brother's. */
static void start_both(char second_folder[TEST_PATH_BYTES])
{
    publish_for_restore();
    stand->second = stand->task;
    stand->second.folder = (char *)(uintptr_t)test_path(second_folder, stand->folder, "second");
    make_folder("second");
    stand->task.next = &stand->second;
    stand->daemon.tasks = &stand->task;
    restore_start(&stand->task);
    restore_start(&stand->second);
}

static void tasks_of_a_host_fetch_it_once(void **state)
{
    (void)state;
    char folder[TEST_PATH_BYTES];
    start_both(folder);
    while (stand->placed < 2) {
        until_done();
    }
    assert_int_equal(stand->coordinator.gets, 4);
    assert_content("second/restore/c.safetensors", stand->file, FILE_BYTES);
    assert_content("second/restore/checkpoint.json", stand->manifest, stand->part.size_bytes);
    assert_string_equal(stand->second.restore_path, in("second/restore/checkpoint.json"));
    free(stand->second.restore_path);
    stand->daemon.tasks = NULL;
}

static void who_waited_fetches_when_the_other_goes(void **state)
{
    (void)state;
    char folder[TEST_PATH_BYTES];
    start_both(folder);
    assert_true(stand->second.restore != NULL);
    stand->daemon.tasks = &stand->second; /* the first one is forgotten */
    restore_cancel(&stand->task);
    until_done();
    assert_int_equal(stand->placed, 1);
    assert_content("second/restore/c.safetensors", stand->file, FILE_BYTES);
    free(stand->second.restore_path);
    stand->daemon.tasks = NULL;
}

static void what_does_not_match_its_hash_is_refused(void **state)
{
    (void)state;
    publish_for_restore();
    stand->coordinator.corrupts = true;
    assert_fails("otherwise than its hash says");
}

static void what_is_not_there_is_told(void **state)
{
    (void)state;
    struct sha256 hash;
    publish_for_restore();
    assert_int_equal(sha256_of(stand->file, BIG, &hash, NULL), CADRE_OK);
    coordinator_lose(&stand->coordinator, hash.bytes);
    assert_fails("no such content");
}

static void a_longer_content_is_refused(void **state)
{
    (void)state;
    publish_for_restore();
    stand->start.checkpoint.manifest_bytes--;
    assert_fails("more than");
}

static void a_shared_one_stays_where_it_is(void **state)
{
    (void)state;
    publish_for_restore();
    stand->start.checkpoint.shared = true;
    stand->start.spec.checkpoint_folder = "/shared";
    restore_start(&stand->task);
    assert_int_equal(stand->placed, 1);
    assert_string_equal(stand->task.restore_path, "/shared/deep/c.json");
    free(stand->task.restore_path);
    stand->start.checkpoint.path = "/elsewhere/c.json"; /* of another job, with another folder */
    restore_start(&stand->task);
    assert_string_equal(stand->task.restore_path, "/elsewhere/c.json");
    assert_int_equal(stand->coordinator.gets, 0);
}

static void restoring_can_be_cancelled(void **state)
{
    (void)state;
    publish_for_restore();
    for (unsigned turns = 0; turns < 20; turns++) {
        struct cadre_error error = {0};
        assert_ok(tree_remove(in("restore"), &error), &error);
        restore_start(&stand->task);
        for (unsigned i = 0; i < turns && stand->task.restore != NULL; i++) {
            bool never = false;
            (void)rpc_loop_run_until(stand->daemon.loop, &never, clock_monotonic_us() + 200);
        }
        restore_cancel(&stand->task);
        free(stand->task.restore_path);
        stand->task.restore_path = NULL;
    }
    stand->done = false;
    until_quiet();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(only_what_is_missing_is_sent),
        TEST(the_manifest_comes_last), TEST(it_waits_for_the_link),
        TEST(a_broken_link_costs_nothing), TEST(a_newer_one_takes_its_place),
        TEST(several_blocks_travel_at_once), TEST(a_refusal_ends_them_all),
        TEST(a_link_breaks_under_several), TEST(it_can_be_cancelled),
        TEST(a_collection_goes_on_after_it), TEST(what_was_changed_is_not_published),
        TEST(nothing_but_the_tasks_own_is_read), TEST(a_task_without_a_checkpoint_goes_on_at_once),
        TEST(it_is_put_together), TEST(it_waits_for_links), TEST(tasks_of_a_host_fetch_it_once),
        TEST(who_waited_fetches_when_the_other_goes), TEST(what_does_not_match_its_hash_is_refused),
        TEST(what_is_not_there_is_told), TEST(a_longer_content_is_refused),
        TEST(a_shared_one_stays_where_it_is), TEST(restoring_can_be_cancelled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
