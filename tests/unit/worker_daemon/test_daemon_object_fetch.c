/* SPDX-License-Identifier: Apache-2.0
 * Files of a task that are objects, and files that it leaves for an object store: the daemon's
 * side, with a store in place of common/storage. */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "common/storage/ahead.h"
#include "tests/lib/speed.h"
#include "tests/unit/worker_daemon/fake_coordinator.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/objects/object_index.h"
#include "worker/host/daemon/task_files.h"

#define TASKS 3
#define URL   "s3://bucket/object"

/* ---- in place of common/storage ---- */

struct storage_object {
    struct storage_info info;
};

struct storage_ahead {
    const struct storage_object *object;
};

static struct {
    pthread_mutex_t mutex; /* threads of the daemon use it */
    pthread_cond_t changed;
    char content[64];
    struct storage_info info;
    cadre_status fails; /* what is asked next, and all after it */
    bool holds;         /* reads wait until this is false */
    bool stopped;
    unsigned clients;
    atomic_uint looks;
    atomic_uint reads;
    atomic_uint held;
} store = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static cadre_status store_fails(struct cadre_error *error)
{
    cadre_status status = store.stopped ? CADRE_CANCELLED : store.fails;
    return status == CADRE_OK ? CADRE_OK : cadre_error_set(error, status, URL ": no");
}

cadre_status storage_client_open(const struct storage_options *options,
    struct storage_client **ret_client, struct cadre_error *error)
{
    (void)error;
    assert_true(options->objects_only);
    store.clients++;
    *ret_client = (struct storage_client *)(void *)&store;
    return CADRE_OK;
}

void storage_client_stop(struct storage_client *client)
{
    (void)client;
    pthread_mutex_lock(&store.mutex);
    store.stopped = true;
    pthread_cond_broadcast(&store.changed);
    pthread_mutex_unlock(&store.mutex);
}

void storage_client_close(struct storage_client *client)
{
    store.clients -= client != NULL ? 1 : 0;
}

cadre_status storage_open(struct storage_client *client, const char *path,
    struct storage_object **ret_object, struct cadre_error *error)
{
    (void)client;
    assert_string_equal(path, URL);
    pthread_mutex_lock(&store.mutex);
    store.looks++;
    cadre_status status = store_fails(error);
    struct storage_info info = store.info;
    pthread_mutex_unlock(&store.mutex);
    if (status == CADRE_OK) {
        *ret_object = malloc(sizeof **ret_object);
        assert_non_null(*ret_object);
        (*ret_object)->info = info;
    }
    return status;
}

const struct storage_info *storage_info_of(const struct storage_object *object)
{
    return &object->info;
}

void storage_close(struct storage_object *object)
{
    free(object);
}

cadre_status storage_ahead_open(const struct storage_object *object,
    struct storage_ahead **ret_ahead, struct cadre_error *error)
{
    (void)error;
    *ret_ahead = malloc(sizeof **ret_ahead);
    assert_non_null(*ret_ahead);
    (*ret_ahead)->object = object;
    return CADRE_OK;
}

cadre_status storage_ahead_read(
    struct storage_ahead *ahead, uint64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    (void)ahead;
    pthread_mutex_lock(&store.mutex);
    store.reads++;
    store.held += store.holds ? 1 : 0;
    pthread_cond_broadcast(&store.changed);
    while (store.holds && !store.stopped) {
        pthread_cond_wait(&store.changed, &store.mutex);
    }
    cadre_status status = store_fails(error);
    memcpy(to, store.content + offset, bytes);
    pthread_mutex_unlock(&store.mutex);
    return status;
}

void storage_ahead_close(struct storage_ahead *ahead)
{
    free(ahead);
}

/* ---- the daemon ---- */

static struct coordinator coordinator;
static struct daemon fixture;
static struct agent_start start;
static struct job_file files[2];
static struct task_files tasks[TASKS];
static struct {
    unsigned count;
    enum object_end end[TASKS];
    struct cadre_error error[TASKS];
    bool all; /* that a test waits for */
} ends;

void cache_added(struct daemon *daemon, uint64_t bytes, bool was_here)
{
    assert_ptr_equal(daemon, &fixture);
    (void)was_here;
    daemon->cache_bytes += bytes;
}

char *cache_path(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES])
{
    return sha256_path(daemon->blob_dir, sha256);
}

void cache_used(const char *path)
{
    (void)path;
}

void fetch_report_begin(
    struct task_files *task, enum fetch_kind kind, const struct checkpoint_counts *counts)
{
    (void)task;
    assert_int_equal(kind, FETCH_FILES);
    assert_int_equal(counts->whole_bytes, store.info.bytes);
}

void fetch_report_end(struct task_files *task)
{
    (void)task;
}

static void put_object(const char *content, const char *version)
{
    snprintf(store.content, sizeof store.content, "%s", content);
    store.info.bytes = strlen(content);
    snprintf(store.info.version, sizeof store.info.version, "%s", version);
}

static int set_up(void **state)
{
    (void)state;
    static unsigned count;
    static const char *base;
    static char blobs[TEST_PATH_BYTES];
    static char folder[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    base = base != NULL ? base : test_temp_dir();
    fixture = (struct daemon){.blob_dir = blobs, .linked = true};
    snprintf(blobs, sizeof blobs, "%s/%u", base, count++);
    snprintf(folder, sizeof folder, "%s/%u", base, count++);
    assert_ok(folder_make(blobs, 0700, &error), &error);
    fixture.arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    assert_ok(rpc_loop_open(&fixture.loop, &error), &error);
    fixture.store_pool.loop = fixture.loop;
    coordinator_open(&coordinator, fixture.loop);
    assert_ok(rpc_channel_open(fixture.loop, coordinator.address, NULL, &fixture.channel, &error),
        &error);
    files[0] = (struct job_file){.name = "content", .url = "", .version = ""};
    files[1] = (struct job_file){.name = "file", .url = URL, .version = ""};
    start.spec =
        (struct job_spec){.files = files, .file_count = 2, .outputs_folder = "s3://bucket/runs"};
    memset(&ends, 0, sizeof ends);
    for (unsigned i = 0; i < TASKS; i++) {
        tasks[i] = (struct task_files){.daemon = &fixture,
            .ref = {{7}, i, 1},
            .spec = &start.spec,
            .folder = folder,
            .next = i + 1 < TASKS ? &tasks[i + 1] : NULL};
    }
    fixture.tasks = tasks;
    put_object("the bytes", "\"1\"");
    store.fails = CADRE_OK;
    store.holds = store.stopped = false;
    store.looks = store.reads = store.held = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TASKS; i++) {
        object_fetch_cancel(&tasks[i]);
        free(tasks[i].objects);
    }
    file_work_pool_wait(&fixture.store_pool);
    rpc_channel_close(fixture.channel);
    coordinator_close(&coordinator);
    rpc_loop_close(fixture.loop);
    wire_buffer_free(&fixture.packed);
    wire_arena_free(fixture.arena);
    assert_int_equal(store.clients, 0);
    return 0;
}

static void until(const bool *condition)
{
    assert_int_equal(rpc_loop_run_until(fixture.loop, condition,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
}

static unsigned ends_wanted;

static void done(struct task_files *task)
{
    (void)task;
    fail();
}

static void on_fetched(struct task_files *task, void (*then)(struct task_files *task),
    enum object_end end, const struct cadre_error *error)
{
    size_t at = (size_t)(task - tasks);
    assert_ptr_equal(then, done);
    assert_null(task->object);
    ends.end[at] = end;
    ends.error[at] = *error;
    ends.all = ++ends.count == ends_wanted;
}

static void fetch_begin(unsigned count)
{
    ends_wanted = count;
    ends.count = 0;
    ends.all = false;
    for (unsigned i = 0; i < count; i++) {
        object_fetch_start(&tasks[i], 2, done, on_fetched);
    }
}

static void assert_fetched(unsigned count, const char *content)
{
    until(&ends.all);
    struct sha256 hash;
    assert_int_equal(sha256_of(content, strlen(content), &hash, NULL), CADRE_OK);
    for (unsigned i = 0; i < count; i++) {
        if (ends.end[i] != OBJECT_FETCHED) {
            fail_msg("%s", ends.error[i].text);
        }
        assert_memory_equal(tasks[i].objects[1].sha256, hash.bytes, sizeof hash.bytes);
        assert_int_equal(tasks[i].objects[1].size_bytes, strlen(content));
        assert_string_equal(tasks[i].objects[1].name, "file");
        assert_string_equal(tasks[i].objects[0].name, "content");
    }
    CADRE_FREE_AT_EXIT char *path = cache_path(&fixture, hash.bytes);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    struct cadre_error error = {0};
    assert_ok(file_read(path, 100, &text, &size, &error), &error);
    assert_string_equal(text, content);
}

static void assert_failed(enum object_end end, cadre_status status, const char *part)
{
    until(&ends.all);
    assert_int_equal(ends.end[0], end);
    assert_int_equal(ends.error[0].code, status);
    if (strstr(ends.error[0].text, part) == NULL) {
        fail_msg("%s", ends.error[0].text);
    }
}

/* Names of the files beside contents and what the index has of them. */
static unsigned count_left(void)
{
    unsigned count = 0;
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(fixture.blob_dir);
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        count += strncmp(entry->d_name, FETCH_PREFIX, sizeof FETCH_PREFIX - 1) == 0 ? 1 : 0;
    }
    return count;
}

static void one_that_is_here_is_not_read_again(void **state)
{
    (void)state;
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    assert_int_equal(store.reads, 1);
    assert_int_equal(fixture.cache_bytes, 9);
    fetch_begin(2);
    assert_fetched(2, "the bytes");
    assert_int_equal(store.reads, 1);
    assert_int_equal(store.looks, 3); /* each looks whether it may read it */
    assert_int_equal(fixture.counts.cache_hits, 2);
    put_object("others", "\"2\"");
    coordinator.settled_count = 0; /* another job's */
    fetch_begin(1);
    assert_fetched(1, "others");
    assert_int_equal(store.reads, 2);
}

/* The others wait, and find it. */
static void of_several_tasks_one_reads(void **state)
{
    (void)state;
    store.holds = true;
    fetch_begin(TASKS);
    pthread_mutex_lock(&store.mutex);
    while (store.looks < TASKS || store.held == 0) {
        pthread_mutex_unlock(&store.mutex);
        bool never = false;
        (void)rpc_loop_run_until(fixture.loop, &never, clock_monotonic_us() + CADRE_US_PER_MS);
        pthread_mutex_lock(&store.mutex);
    }
    assert_int_equal(store.reads, 1);
    store.holds = false;
    pthread_cond_broadcast(&store.changed);
    pthread_mutex_unlock(&store.mutex);
    assert_fetched(TASKS, "the bytes");
    assert_int_equal(store.reads, 1);
}

/* Without a version that tells bytes apart it is read each time, and settled by them. */
static void without_a_strong_version_it_is_read_each_time(void **state)
{
    (void)state;
    put_object("the bytes", "W/\"1\"");
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    assert_int_equal(store.reads, 2);
    put_object("THE BYTES", "W/\"1\"");
    fetch_begin(1);
    assert_failed(OBJECT_FAILED, CADRE_DATA_LOSS, URL " is not what it was when this job's tasks");
}

static void what_changed_is_not_used(void **state)
{
    (void)state;
    files[1].version = "\"1\"";
    files[1].size_bytes = 9;
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    put_object("the bytes", "\"2\"");
    fetch_begin(1);
    assert_failed(OBJECT_FAILED, CADRE_DATA_LOSS,
        "file file: " URL " has changed since the job was submitted (9 bytes with ETag \"1\" then, "
        "now 9 with \"2\")");
    assert_int_equal(store.reads, 1);
    files[1].version = "";
    put_object("other", "\"3\"");
    fetch_begin(1);
    assert_failed(OBJECT_FAILED, CADRE_DATA_LOSS,
        URL " is not what it was when this job's tasks fetched it first (9 bytes with SHA-256 ");
}

static void a_failure_names_the_file(void **state)
{
    (void)state;
    static const cadre_status failures[] = {
        CADRE_NOT_FOUND, CADRE_PERMISSION_DENIED, CADRE_UNAUTHENTICATED, CADRE_UNAVAILABLE};
    for (size_t i = 0; i < CADRE_COUNT_OF(failures); i++) {
        store.fails = failures[i];
        fetch_begin(1);
        assert_failed(OBJECT_FAILED, failures[i], "file file: " URL ": no");
    }
    assert_int_equal(count_left(), 0);
    store.fails = CADRE_OK;
    coordinator.refusal = CADRE_FAILED_PRECONDITION;
    fetch_begin(1);
    assert_failed(OBJECT_FAILED, CADRE_FAILED_PRECONDITION, "does not settle its bytes");
    coordinator.refusal = CADRE_UNAVAILABLE; /* as without a link */
    fetch_begin(1);
    until(&ends.all);
    assert_int_equal(ends.end[0], OBJECT_UNLINKED);
}

static void one_that_is_cancelled_leaves_nothing(void **state)
{
    (void)state;
    store.holds = true;
    fetch_begin(1);
    bool never = false;
    while (store.held == 0) {
        (void)rpc_loop_run_until(fixture.loop, &never, clock_monotonic_us() + CADRE_US_PER_MS);
    }
    assert_int_equal(count_left(), 1);
    object_fetch_cancel(&tasks[0]);
    assert_null(tasks[0].object);
    file_work_pool_wait(&fixture.store_pool);
    assert_int_equal(count_left(), 0);
    assert_int_equal(ends.count, 0);
}

/* A content that was removed is read again; at the start of the daemon its entry goes, too. */
static void the_index_follows_the_cache(void **state)
{
    (void)state;
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    CADRE_FREE_AT_EXIT char *path = cache_path(&fixture, tasks[0].objects[1].sha256);
    assert_int_equal(unlink(path), 0);
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    assert_int_equal(store.reads, 2);
    object_index_clear(fixture.blob_dir);
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    assert_int_equal(store.reads, 2);
    assert_int_equal(unlink(path), 0);
    object_index_clear(fixture.blob_dir);
    test_write(path, "the bytes"); /* there is no entry that names it */
    fetch_begin(1);
    assert_fetched(1, "the bytes");
    assert_int_equal(store.reads, 3);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(one_that_is_here_is_not_read_again),
        TEST(of_several_tasks_one_reads), TEST(without_a_strong_version_it_is_read_each_time),
        TEST(what_changed_is_not_used), TEST(a_failure_names_the_file),
        TEST(one_that_is_cancelled_leaves_nothing), TEST(the_index_follows_the_cache)};
    return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
