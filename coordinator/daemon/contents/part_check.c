/* SPDX-License-Identifier: Apache-2.0
 * Checks a reported checkpoint part in a thread before the engine receives it; agents.c calls
 * it. */
#include "coordinator/daemon/contents/part_check.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "coordinator/daemon/contents/content_looks.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/contents/worker_permissions.h"

struct part_check {
    struct part_check *next;
    struct daemon *daemon;
    struct file_work work;
    struct contents_wait wait;
    bool waits; /* until it is known which contents are here */
    struct link_id link;
    struct task_ref task;
    struct task_part part; /* its path is in: */
    char *path;
    void *message; /* as it was received */
    size_t length;
    uint64_t came; /* contents_added_count() when the check began */
    struct artifact_references references;
    struct checkpoint_content content;
    struct content_look *looks; /* with an object store: what the index alone does not say */
    size_t look_count;
    struct cadre_error error;
};

static void check_free(struct part_check *check)
{
    free(check->references.hashes);
    checkpoint_content_free(&check->content);
    free(check->looks);
    free(check->path);
    free(check->message);
    free(check);
}

static void check_in_thread(void *user)
{
    struct part_check *check = user;
    (void)artifacts_check_part(
        check->daemon, &check->part, &check->references, &check->content, &check->error);
}

/* A content that the thread found may have been removed since. */
static cadre_status check_index(const struct part_check *check, struct cadre_error *error)
{
    const struct checkpoint_content *content = &check->content;
    struct sha256 hash;
    memcpy(hash.bytes, check->part.sha256, sizeof hash.bytes);
    uint64_t bytes = 0;
    bool here = contents_find(check->daemon->contents, &hash, NULL);
    for (size_t i = 0; i < content->block_count && here; i++) {
        memcpy(hash.bytes, content->blocks[i].sha256, sizeof hash.bytes);
        here = contents_find(check->daemon->contents, &hash, &bytes) &&
               bytes == content->blocks[i].bytes;
    }
    return here ? CADRE_OK
                : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                      "a content of the checkpoint of step %llu is not here any more, or not with "
                      "the bytes of its block",
                      (unsigned long long)check->part.position);
}

/* A worker with a certificate may name only contents that it has or that jobs there reference. */
static cadre_status check_permissions(const struct part_check *check, struct cadre_error *error)
{
    const struct agent_link *link = links_find(check->daemon, check->link);
    const struct tls_identity *identity = rpc_call_identity(link->call);
    const struct checkpoint_content *content = &check->content;
    if (identity->role != TLS_ROLE_WORKER) {
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT struct sha256 *hashes = calloc(content->block_count + 1, sizeof *hashes);
    if (hashes == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory to look for contents");
    }
    for (size_t i = 0; i < content->block_count; i++) {
        memcpy(hashes[i].bytes, content->blocks[i].sha256, SHA256_BYTES);
    }
    memcpy(hashes[content->block_count].bytes, check->part.sha256, SHA256_BYTES);
    return worker_contents_check(
        check->daemon, identity->name, hashes, content->block_count + 1, error);
}

/* When the job has as many checkpoints as it keeps, the room of the oldest is free for the new
 * one. */
static cadre_status check_quota(
    struct daemon *daemon, struct job_id job, uint64_t bytes, struct cadre_error *error)
{
    const struct job_spec *spec = engine_job_spec(daemon->engine, job);
    uint32_t kept = spec != NULL && spec->checkpoints_kept > 0 ? spec->checkpoints_kept
                                                               : LIMIT_CHECKPOINTS_KEPT_DEFAULT;
    struct core_checkpoint last;
    uint64_t there = content_references_checkpoint_bytes(daemon, job);
    bool replaces = kept > 0 && engine_checkpoint_at(daemon->engine, job, kept - 1, &last);
    uint64_t stay = replaces && there > bytes ? there - bytes : replaces ? 0 : there;
    return quota_reserve_job(daemon, job, bytes, stay, "a checkpoint", error);
}

static cadre_status check_part(struct part_check *check, struct cadre_error *error)
{
    struct daemon *daemon = check->daemon;
    CADRE_TRY(check->error.code);
    contents_note_synced(daemon->contents, check->came);
    CADRE_TRY(check_index(check, error));
    CADRE_TRY(check_permissions(check, error));
    return check_quota(daemon, check->task.job, check->references.bytes, error);
}

static bool is_wanted(const struct part_check *check)
{
    struct daemon *daemon = check->daemon;
    return links_find(daemon, check->link) != NULL &&
           engine_task_on_link(daemon->engine, check->task, check->link);
}

static void report_to_engine(struct part_check *check)
{
    struct daemon *daemon = check->daemon;
    struct agent_up up;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_agent_up(check->message, check->length, daemon->arena, &up, &check->error);
    if (status == CADRE_OK) {
        content_references_add_part(daemon, check->task.job, &check->part, &check->references);
        engine_agent_up(daemon->engine, clock_monotonic_us(), check->link, &up);
    }
}

static void start_next(struct daemon *daemon);

static void end_check(struct part_check *check)
{
    struct daemon *daemon = check->daemon;
    daemon->part_checks = check->next;
    if (!is_wanted(check)) {
        /* of a task that is in no job any more */
    } else if (check_part(check, &check->error) == CADRE_OK) {
        report_to_engine(check);
    } else {
        log_event(LOG_LEVEL_WARNING, "agents", "a checkpoint is not published",
            LOG_U64("job", check->task.job.n), LOG_U64("slot", check->task.slot),
            LOG_U64("step", check->part.position), LOG_STR("reason", check->error.text));
    }
    check_free(check);
    start_next(daemon);
}

/* ---- contents that a list showed, or did not show, in an object store ---- */

static void look_in_thread(void *user)
{
    struct part_check *check = user;
    (void)content_looks(check->daemon->objects, check->looks, check->look_count, &check->error);
}

static void after_look(void *user)
{
    struct part_check *check = user;
    for (size_t i = 0; i < check->look_count && check->error.code == CADRE_OK; i++) {
        contents_note_look(check->daemon->contents, &check->looks[i]);
    }
    end_check(check);
}

static void add_look(struct part_check *check, const uint8_t sha256[SHA256_BYTES])
{
    const struct contents *contents = check->daemon->contents;
    struct sha256 hash;
    memcpy(hash.bytes, sha256, SHA256_BYTES);
    if (!contents_is_certain(contents, &hash)) {
        check->looks[check->look_count++] = contents_begin_look(contents, &hash);
    }
}

/* False: the index is certain of all that the part names. */
static bool begin_look(struct part_check *check)
{
    struct daemon *daemon = check->daemon;
    const struct checkpoint_content *content = &check->content;
    if (daemon->objects == NULL || check->error.code != CADRE_OK) {
        return false;
    }
    check->looks = calloc(content->block_count + 1, sizeof *check->looks);
    if (check->looks == NULL) {
        cadre_error_set(&check->error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory to look for contents");
        return false;
    }
    add_look(check, check->part.sha256);
    for (size_t i = 0; i < content->block_count; i++) {
        add_look(check, content->blocks[i].sha256);
    }
    if (check->look_count > 0) {
        file_work_start(&check->work, &daemon->file_pool, look_in_thread, after_look, check);
    }
    return check->look_count > 0;
}

static void after_check(void *user)
{
    struct part_check *check = user;
    if (!is_wanted(check) || !begin_look(check)) {
        end_check(check);
    }
}

static void after_wait(void *user)
{
    struct part_check *check = user;
    check->waits = false;
    start_next(check->daemon);
}

static void start_next(struct daemon *daemon)
{
    struct part_check *check = daemon->part_checks;
    if (check != NULL && !check->waits && contents_is_loading(daemon->contents)) {
        check->waits = true;
        check->wait = (struct contents_wait){.go = after_wait, .user = check};
        contents_wait(daemon->contents, &check->wait);
    } else if (check != NULL && !check->waits && !check->work.running) {
        check->came = contents_added_count(daemon->contents);
        file_work_start(&check->work, &daemon->file_pool, check_in_thread, after_check, check);
    }
}

/* A check that waits is replaced by its task's newer one. */
static void part_check_append(struct daemon *daemon, struct part_check *check)
{
    struct part_check **at = &daemon->part_checks;
    while (*at != NULL) {
        struct part_check *other = *at;
        if (!other->work.running && !other->waits && other->link.n == check->link.n &&
            task_ref_equal(other->task, check->task)) {
            *at = other->next;
            check_free(other);
        } else {
            at = &other->next;
        }
    }
    *at = check;
}

void part_check_start(struct daemon *daemon, struct link_id link,
    const struct agent_relay_up *relay_up, const void *message, size_t length)
{
    struct part_check *check = calloc(1, sizeof *check);
    if (check != NULL) {
        *check = (struct part_check){.daemon = daemon,
            .link = link,
            .task = relay_up->task,
            .part = relay_up->up.part,
            .path = strdup(relay_up->up.part.path),
            .message = malloc(length),
            .length = length};
        check->part.path = check->path;
    }
    if (check == NULL || check->path == NULL || check->message == NULL) {
        if (check != NULL) {
            check_free(check);
        }
        log_event(LOG_LEVEL_WARNING, "agents", "a checkpoint is not published",
            LOG_U64("job", relay_up->task.job.n), LOG_U64("slot", relay_up->task.slot),
            LOG_U64("step", relay_up->up.part.position), LOG_STR("reason", "no memory"));
        return;
    }
    memcpy(check->message, message, length);
    part_check_append(daemon, check);
    start_next(daemon);
}
