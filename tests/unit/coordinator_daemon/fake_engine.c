/* SPDX-License-Identifier: Apache-2.0
 * The functions of the engine that the daemon calls, over the state of fake_engine.h. */
#include "tests/unit/coordinator_daemon/fake_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/contents/worker_permissions.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/objects/object_cache.h"

/* ---- the disk ---- */

bool fake_disk_full;

cadre_status disk_check(struct daemon *daemon, uint64_t bytes, struct cadre_error *error)
{
    (void)daemon;
    (void)bytes;
    return fake_disk_full ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "the disk is full")
                          : CADRE_OK;
}

/* No worker here has a certificate. */
cadre_status worker_permissions_check_task(
    struct daemon *daemon, struct rpc_call *call, struct task_ref task, struct cadre_error *error)
{
    (void)daemon;
    (void)call;
    (void)task;
    (void)error;
    return CADRE_OK;
}

cadre_status worker_permissions_check_content(struct daemon *daemon, struct rpc_call *call,
    const struct sha256 *hash, struct cadre_error *error)
{
    (void)hash;
    return worker_permissions_check_task(daemon, call, (struct task_ref){0}, error);
}

cadre_status worker_permissions_check_tasks(
    struct daemon *daemon, struct rpc_call *call, struct cadre_error *error)
{
    return worker_permissions_check_task(daemon, call, (struct task_ref){0}, error);
}

bool disk_is_full(int errnum)
{
    return errnum == ENOSPC;
}

/* ---- the engine's functions ---- */

static struct fake_job *find(struct engine *engine, struct job_id id)
{
    for (uint32_t i = 0; i < engine->job_count; i++) {
        if (engine->jobs[i].id == id.n) {
            return &engine->jobs[i];
        }
    }
    return NULL;
}

const struct job_spec *engine_job_spec(struct engine *engine, struct job_id job)
{
    const struct fake_job *found = find(engine, job);
    return found != NULL ? &found->spec : NULL;
}

static struct job_info info_of(const struct fake_job *job)
{
    return (struct job_info){
        .id = {job->id}, .name = "", .state = job->state, .message = "", .ended_us = job->ended_us};
}

bool engine_job_info(struct engine *engine, struct job_id job, struct job_info *ret_info)
{
    const struct fake_job *found = find(engine, job);
    if (found != NULL) {
        *ret_info = info_of(found);
    }
    return found != NULL;
}

bool engine_job_basics(struct engine *engine, struct job_id job, struct job_info *ret_info)
{
    return engine_job_info(engine, job, ret_info);
}

bool engine_job_at(struct engine *engine, uint32_t i, struct job_info *ret_info)
{
    if (i >= engine->job_count) {
        return false;
    }
    *ret_info = info_of(&engine->jobs[engine->job_count - 1 - i]);
    return true;
}

struct term engine_term(const struct engine *engine)
{
    return (struct term){.start = 1, .nonce = engine->nonce};
}

void engine_log_bytes(struct engine *engine, struct task_ref task, uint64_t bytes)
{
    (void)task;
    engine->log_bytes = bytes;
}

uint32_t engine_job_count(const struct engine *engine)
{
    return (uint32_t)engine->job_count;
}

bool engine_worker_has_job(struct engine *engine, const char *worker, struct job_id job)
{
    return find(engine, job) != NULL && strcmp(worker, "of all jobs") == 0;
}

bool engine_job_brief_at(struct engine *engine, uint32_t i, struct engine_job_brief *ret_brief)
{
    struct job_info info;
    if (!engine_job_at(engine, i, &info)) {
        return false;
    }
    *ret_brief = (struct engine_job_brief){.id = info.id,
        .state = info.state,
        .submitted_us = info.submitted_us,
        .started_us = info.started_us,
        .ended_us = info.ended_us};
    return true;
}

bool engine_checkpoint_at(
    struct engine *engine, struct job_id job, uint32_t i, struct core_checkpoint *ret_checkpoint)
{
    const struct fake_job *found = find(engine, job);
    if (found == NULL || i >= found->checkpoint_count) {
        return false;
    }
    *ret_checkpoint = found->checkpoints[i];
    return true;
}

bool engine_checkpoint(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint)
{
    const struct fake_job *found = find(engine, job);
    return found != NULL && found->checkpoint_count > 0 &&
           engine_checkpoint_at(engine, job, found->checkpoint_count - 1, ret_checkpoint);
}

cadre_status engine_each_checkpoint(struct engine *engine,
    void (*visit)(void *user, struct job_id job, const struct core_checkpoint *checkpoint),
    void *user, struct cadre_error *error)
{
    if (engine->broken) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "the engine is broken");
    }
    for (uint32_t i = 0; i < engine->job_count; i++) {
        const struct fake_job *job = &engine->jobs[i];
        for (uint32_t k = 0; k < job->checkpoint_count; k++) {
            visit(user, (struct job_id){job->id}, &job->checkpoints[k]);
        }
        if (job->restores && job->checkpoint_count == 0) {
            visit(user, (struct job_id){job->id}, &job->origin);
        }
    }
    return CADRE_OK;
}

bool engine_job_may_go(const struct engine *engine, struct job_id job)
{
    const struct fake_job *found = find((struct engine *)(uintptr_t)engine, job);
    return found != NULL && job_state_is_final(found->state) && !found->going;
}

static void forget_with_files(struct engine *engine, struct job_id job)
{
    forget_job(engine, job.n);
    paths_remove_job(engine->daemon, job);
    quota_forget_job(engine->daemon->quota, job);
    engine->daemon->references_dropped = true;
}

cadre_status engine_forget_job(struct engine *engine, struct job_id job, struct cadre_error *error)
{
    (void)error;
    assert_true(engine_job_may_go(engine, job));
    if (engine->forgets_later) {
        find(engine, job)->going = true;
    } else {
        forget_with_files(engine, job);
    }
    return CADRE_OK;
}

void forget_going(struct engine *engine)
{
    for (uint32_t i = engine->job_count; i > 0; i--) {
        if (engine->jobs[i - 1].going) {
            forget_with_files(engine, (struct job_id){engine->jobs[i - 1].id});
        }
    }
}

/* ---- the daemon ---- */

void daemon_fail(struct daemon *daemon, const struct cadre_error *error)
{
    (void)daemon;
    fail_msg("the daemon fails: %s", error->text);
}

void daemon_send_packed(
    struct daemon *daemon, struct rpc_call *call, cadre_status status, struct cadre_error *error)
{
    if (status == CADRE_OK) {
        status = rpc_call_send(call, daemon->packed.bytes, daemon->packed.size, error);
    }
    if (status != CADRE_OK && status != CADRE_CANCELLED) {
        rpc_call_fail(call, error);
    }
}

void daemon_open(struct daemon *daemon, struct engine *engine)
{
    struct cadre_error error = {0};
    const char *folder = test_temp_dir();
    *daemon = (struct daemon){
        .engine = engine, .options = {.log_limit_bytes = 1000, .output_limit_bytes = 1000000}};
    engine->daemon = daemon;
    assert_true(asprintf(&daemon->blob_dir, "%s/blobs", folder) > 0);
    assert_true(asprintf(&daemon->job_dir, "%s/jobs", folder) > 0);
    assert_ok(folder_make(daemon->blob_dir, 0700, &error), &error);
    assert_ok(folder_make(daemon->job_dir, 0700, &error), &error);
    daemon->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    assert_non_null(daemon->arena);
    assert_ok(rpc_loop_open(&daemon->loop, &error), &error);
    daemon->file_pool.loop = daemon->loop;
    daemon->write_pool.loop = daemon->loop;
    assert_ok(contents_open(daemon->blob_dir, &daemon->file_pool, &daemon->leading,
                  &daemon->contents, &error),
        &error);
}

void daemon_open_objects(struct daemon *daemon, struct engine *engine)
{
    struct cadre_error error = {0};
    char root[TEST_PATH_BYTES];
    const struct objects_options options = {.root = root, .deadline_us = CADRE_US_PER_S};
    daemon_open(daemon, engine);
    test_path(root, test_temp_dir(), "store");
    contents_close(daemon->contents);
    daemon->contents = NULL;
    assert_ok(objects_open(&options, &daemon->objects, &error), &error);
    assert_ok(object_cache_open(
                  daemon->objects, daemon->blob_dir, 1 << 20, &daemon->object_cache, &error),
        &error);
    assert_ok(file_work_pool_start(&daemon->file_pool, 2, &error), &error);
    assert_ok(file_work_pool_start(&daemon->write_pool, 2, &error), &error);
    reopen_contents(daemon);
}

void settle(struct daemon *daemon)
{
    while (daemon->file_pool.count + daemon->write_pool.count > 0) {
        file_work_pool_wait(&daemon->file_pool);
        file_work_pool_wait(&daemon->write_pool);
    }
}

void reopen_contents(struct daemon *daemon)
{
    struct cadre_error error = {0};
    settle(daemon);
    if (daemon->objects != NULL) {
        contents_close(daemon->contents);
        assert_ok(contents_open_objects(daemon->objects, daemon->object_cache, &daemon->write_pool,
                      &daemon->leading, &daemon->contents, &error),
            &error);
        return;
    }
    contents_close(daemon->contents);
    assert_ok(contents_open(daemon->blob_dir, &daemon->file_pool, &daemon->leading,
                  &daemon->contents, &error),
        &error);
}

cadre_status refresh_references(struct daemon *daemon, struct cadre_error *error)
{
    cadre_status status = content_references_refresh(daemon, error);
    while (
        status == CADRE_UNAVAILABLE && content_references_are_loading(daemon->content_references)) {
        settle(daemon);
        status = content_references_refresh(daemon, error);
    }
    settle(daemon);
    return status;
}

void daemon_close(struct daemon *daemon)
{
    settle(daemon);
    file_work_pool_close(&daemon->file_pool);
    file_work_pool_close(&daemon->write_pool);
    rpc_loop_close(daemon->loop);
    content_references_close(daemon->content_references);
    worker_contents_close(daemon->worker_contents);
    contents_close(daemon->contents);
    object_cache_close(daemon->object_cache);
    objects_close(daemon->objects);
    quota_close(daemon->quota);
    wire_arena_free(daemon->arena);
    wire_buffer_free(&daemon->packed);
    free(daemon->blob_dir);
    free(daemon->job_dir);
    free(daemon->outputs_synced);
}

/* ---- the engine's state ---- */

struct fake_job *add_job(struct engine *engine, uint64_t id, const char *program)
{
    assert_true(engine->job_count < FAKE_JOBS_MAX);
    struct fake_job *job = &engine->jobs[engine->job_count++];
    *job = (struct fake_job){.id = id,
        .state = JOB_RUNNING,
        .spec = {.name = "job",
            .program = {.name = "program", .size_bytes = strlen(program)},
            .workers = 1,
            .checkpoint_folder = "",
            .outputs_folder = ""}};
    struct sha256 hash = hash_of_text(program);
    memcpy(job->spec.program.sha256, hash.bytes, sizeof hash.bytes);
    return job;
}

void forget_job(struct engine *engine, uint64_t id)
{
    struct fake_job *job = find(engine, (struct job_id){id});
    assert_non_null(job);
    size_t after = (size_t)(&engine->jobs[engine->job_count] - job - 1);
    memmove(job, job + 1, after * sizeof *job);
    engine->job_count--;
}

void publish(struct fake_job *job, const struct core_checkpoint *checkpoint)
{
    assert_true(job->checkpoint_count < FAKE_CHECKPOINTS_MAX);
    job->checkpoints[job->checkpoint_count++] = *checkpoint;
}

void drop_oldest(struct fake_job *job)
{
    job->checkpoint_count--;
    memmove(&job->checkpoints[0], &job->checkpoints[1],
        job->checkpoint_count * sizeof job->checkpoints[0]);
}

/* ---- contents ---- */

static struct sha256 hash_of_bytes(const void *bytes, size_t size)
{
    struct sha256 hash;
    assert_int_equal(sha256_of(bytes, size, &hash, NULL), CADRE_OK);
    return hash;
}

struct sha256 hash_of_text(const char *text)
{
    return hash_of_bytes(text, strlen(text));
}

static bool hash_is_here(struct daemon *daemon, const uint8_t *hash)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash);
    settle(daemon);
    return access(path, F_OK) == 0;
}

bool is_here(struct daemon *daemon, const char *text)
{
    struct sha256 hash = hash_of_text(text);
    return hash_is_here(daemon, hash.bytes);
}

bool manifest_is_here(struct daemon *daemon, const struct core_checkpoint *checkpoint)
{
    return hash_is_here(daemon, checkpoint->manifest_sha256);
}

/* Times in seconds before now; an access of 0 is at the epoch: never. */
static void put(struct daemon *daemon, const char *text, size_t size, uint64_t ago)
{
    struct cadre_error error = {0};
    struct sha256 hash = hash_of_bytes(text, size);
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash.bytes);
    settle(daemon); /* a removal ends before this content is put */
    assert_ok(file_write_atomic(path, text, size, 0600, &error), &error);
    time_t then = (time_t)(clock_wall_us() / CADRE_US_PER_S - ago);
    const struct timespec times[2] = {{0}, {.tv_sec = then}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    reopen_contents(daemon);
}

void put_content(struct daemon *daemon, const char *text)
{
    put(daemon, text, strlen(text), 0);
}

void put_old_content(struct daemon *daemon, const char *text)
{
    put(daemon, text, strlen(text), 7200);
}

void ask_for(struct daemon *daemon, const char *text, uint64_t seconds_ago)
{
    struct sha256 hash = hash_of_text(text);
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash.bytes);
    time_t then = (time_t)(clock_wall_us() / CADRE_US_PER_S - seconds_ago);
    const struct timespec times[2] = {{.tv_sec = then}, {.tv_nsec = UTIME_OMIT}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    reopen_contents(daemon);
}

size_t manifest_text(uint64_t position, const char *const blocks[], char ret_text[2048])
{
    char file[4096] = "";
    char list[1500] = "";
    char hex[SHA256_HEX_BYTES];
    size_t offset = 0;
    size_t at = 0;
    for (size_t i = 0; blocks[i] != NULL; i++) {
        struct sha256 hash = hash_of_text(blocks[i]);
        sha256_hex(&hash, hex);
        at += (size_t)snprintf(list + at, sizeof list - at,
            "%s{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"}", i > 0 ? "," : "", offset,
            strlen(blocks[i]), hex);
        offset += (size_t)snprintf(file + offset, sizeof file - offset, "%s", blocks[i]);
    }
    struct sha256 whole = hash_of_text(file);
    sha256_hex(&whole, hex);
    return (size_t)snprintf(ret_text, 2048,
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":%" PRIu64
        ",\"file\":{\"name\":\"c-%" PRIu64
        ".safetensors\",\"bytes\":%zu,\"sha256\":\"%s\"},\"blocks\":[%s]}",
        position, position, offset, hex, list);
}

struct core_checkpoint put_checkpoint(
    struct daemon *daemon, uint64_t position, const char *const blocks[])
{
    char text[2048];
    struct core_checkpoint checkpoint = {.position = position};
    for (size_t i = 0; blocks[i] != NULL; i++) {
        put_old_content(daemon, blocks[i]);
    }
    checkpoint.manifest_bytes = manifest_text(position, blocks, text);
    put(daemon, text, checkpoint.manifest_bytes, 7200);
    struct sha256 hash = hash_of_bytes(text, checkpoint.manifest_bytes);
    memcpy(checkpoint.manifest_sha256, hash.bytes, sizeof hash.bytes);
    snprintf(checkpoint.path, sizeof checkpoint.path, "checkpoints/c-%" PRIu64 ".json", position);
    return checkpoint;
}

struct task_part part_of(const struct core_checkpoint *checkpoint)
{
    struct task_part part = {.position = checkpoint->position,
        .path = checkpoint->path,
        .size_bytes = checkpoint->manifest_bytes,
        .shared = checkpoint->shared};
    memcpy(part.sha256, checkpoint->manifest_sha256, sizeof part.sha256);
    return part;
}

void engine_checkpoint_damaged(
    struct engine *engine, uint64_t now_us, struct job_id job, uint64_t position, const char *why)
{
    (void)now_us;
    assert_true(why[0] != '\0');
    engine->damaged_job = job;
    engine->damaged_position = position;
}

bool engine_begins_at(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint)
{
    (void)engine;
    (void)job;
    (void)ret_checkpoint;
    return false;
}
