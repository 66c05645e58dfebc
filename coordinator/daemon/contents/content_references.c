/* SPDX-License-Identifier: Apache-2.0
 * Keeps the reference counts of contents equal to the jobs and checkpoints of the engine; main.c
 * refreshes them between turns. */
#include "coordinator/daemon/contents/content_references.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/thread.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/content_references_state.h"

/* An object store that did not give a manifest is asked again. */
#define READ_AGAIN_US CADRE_US_PER_S
#define READERS       8

struct refresh {
    struct daemon *daemon;
    struct content_references *content_references;
    bool short_of_memory;
    bool unread_manifest; /* a manifest is being read, or cannot be read now */
};

static void *content_references_allocate(size_t count, size_t size)
{
    return fault_point("references.allocate") ? NULL : calloc(count, size);
}

bool content_references_has(
    const struct content_references *content_references, const struct sha256 *hash)
{
    return content_refcounts_of(&content_references->counts, hash) > 0;
}

void content_references_close(struct content_references *content_references)
{
    if (content_references == NULL) {
        return;
    }
    for (size_t i = 0; i < content_references->count; i++) {
        free(content_references->referrers[i].hashes);
    }
    free(content_references->referrers);
    free(content_references->by_key.entries);
    free(content_references->checkpoint_parts);
    free(content_references->unread_manifest);
    free(content_references->checkpoint_parts_by_key.entries);
    content_refcounts_free(&content_references->counts);
    free(content_references);
}

/* The key of a job, or of one of its checkpoints; keys may collide. */
static uint64_t key_of(struct job_id job, const struct sha256 *manifest)
{
    uint64_t key = 0;
    if (manifest != NULL) {
        memcpy(&key, manifest->bytes, sizeof key);
    }
    return key ^ prng_mix(job.n);
}

static uint64_t key_of_referrer(const struct referrer *referrer)
{
    return key_of(
        referrer->job, referrer->kind == REFERRER_CHECKPOINT ? &referrer->manifest : NULL);
}

/* Room for one more; false: no memory. */
static bool content_references_reserve(struct map *map)
{
    uint32_t buckets = map->entries != NULL ? map->mask + 1 : 0;
    if (map->count + 1 < buckets / 2) {
        return true;
    }
    struct map grown;
    uint32_t more = map_capacity(2 * map->count + 16);
    struct map_entry *entries = content_references_allocate(more, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    map_init(&grown, entries, more);
    for (uint32_t i = 0; i < buckets; i++) {
        if (map->entries[i].used) {
            map_add(&grown, map->entries[i].key, map->entries[i].value);
        }
    }
    free(map->entries);
    *map = grown;
    return true;
}

static void content_references_empty(struct map *map)
{
    if (map->entries != NULL) {
        map_init(map, map->entries, map->mask + 1);
    }
}

/* `manifest`: of a checkpoint; NULL: the job itself. */
static struct referrer *content_references_find(
    struct content_references *content_references, struct job_id job, const struct sha256 *manifest)
{
    const struct map *map = &content_references->by_key;
    uint64_t key = key_of(job, manifest);
    enum referrer_kind kind = manifest != NULL ? REFERRER_CHECKPOINT : REFERRER_JOB;
    uint32_t at = map->entries != NULL ? map_first(map, key) : MAP_NONE;
    for (; at != MAP_NONE; at = map_next(map, key, at)) {
        struct referrer *referrer = &content_references->referrers[map->entries[at].value];
        content_references->compared++;
        if (referrer->kind == kind && referrer->job.n == job.n &&
            (manifest == NULL || sha256_equal(&referrer->manifest, manifest))) {
            return referrer;
        }
    }
    return NULL;
}

uint64_t content_references_compared(const struct content_references *content_references)
{
    return content_references->compared;
}

/* Takes over the hashes of `referrer`. */
static void content_references_add(struct refresh *refresh, struct referrer referrer)
{
    struct content_references *content_references = refresh->content_references;
    if (content_references->count == content_references->capacity) {
        size_t capacity = content_references->capacity > 0 ? content_references->capacity * 2 : 64;
        struct referrer *grown =
            fault_point("references.allocate")
                ? NULL
                : realloc(content_references->referrers, capacity * sizeof *grown);
        content_references->referrers = grown != NULL ? grown : content_references->referrers;
        content_references->capacity = grown != NULL ? capacity : content_references->capacity;
    }
    size_t counted = 0;
    while (referrer.hashes != NULL && content_references->count < content_references->capacity &&
           counted < referrer.count && !fault_point("references.allocate") &&
           content_refcounts_add(&content_references->counts, &referrer.hashes[counted])) {
        counted++;
    }
    if (referrer.hashes == NULL || counted < referrer.count ||
        content_references->count == content_references->capacity ||
        !content_references_reserve(&content_references->by_key)) {
        refresh->short_of_memory = true;
        while (counted > 0) {
            content_refcounts_drop(&content_references->counts, &referrer.hashes[--counted]);
        }
        free(referrer.hashes);
        return;
    }
    referrer.seen = true;
    map_add(&content_references->by_key, key_of_referrer(&referrer),
        (uint32_t)content_references->count);
    content_references->referrers[content_references->count++] = referrer;
}

static void add_job_hashes(struct refresh *refresh, struct job_id job)
{
    struct referrer *known = content_references_find(refresh->content_references, job, NULL);
    if (known != NULL) {
        known->seen = true;
        return;
    }
    const struct job_spec *spec = engine_job_spec(refresh->daemon->engine, job);
    struct referrer referrer = {.kind = REFERRER_JOB,
        .job = job,
        .hashes = content_references_allocate(spec->file_count + 1, sizeof *referrer.hashes)};
    if (referrer.hashes != NULL) {
        referrer.hashes[referrer.count++] = content_references_hash(spec->program.sha256);
    }
    for (size_t i = 0; referrer.hashes != NULL && i < spec->file_count; i++) {
        if (!job_file_is_object(&spec->files[i])) {
            referrer.hashes[referrer.count++] = content_references_hash(spec->files[i].sha256);
        }
    }
    content_references_add(refresh, referrer);
}

/* Takes over the references. */
static void add_checkpoint(struct refresh *refresh, struct job_id job,
    const struct sha256 *manifest, struct artifact_references *references)
{
    struct referrer referrer = {.kind = REFERRER_CHECKPOINT,
        .job = job,
        .manifest = *manifest,
        .bytes = references->bytes,
        .hashes = content_references_allocate(references->count + 1, sizeof *referrer.hashes)};
    if (referrer.hashes != NULL) {
        referrer.hashes[referrer.count++] = *manifest;
        for (size_t i = 0; i < references->count; i++) {
            referrer.hashes[referrer.count++] = references->hashes[i];
        }
    }
    free(references->hashes);
    *references = (struct artifact_references){0};
    content_references_add(refresh, referrer);
}

static void add_read(struct refresh *refresh, struct unread_manifest *read)
{
    struct sha256 manifest = content_references_hash(read->checkpoint.manifest_sha256);
    cadre_status code = read->error.code;
    if (code != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "files", "a checkpoint cannot be read",
            LOG_U64("job", read->job.n), LOG_U64("step", read->checkpoint.position),
            LOG_STR("reason", read->error.text));
    }
    if (code == CADRE_UNAVAILABLE || code == CADRE_RESOURCE_EXHAUSTED) {
        refresh->unread_manifest = true; /* its blocks are not known */
    } else if (content_references_find(refresh->content_references, read->job, &manifest) == NULL) {
        add_checkpoint(refresh, read->job, &manifest, &read->references);
    }
    free(read->references.hashes);
}

static void read_one(const struct daemon *daemon, struct unread_manifest *unread_manifest)
{
    (void)artifacts_read_references(daemon, &unread_manifest->checkpoint,
        daemon->options.job_quota_bytes > 0, &unread_manifest->references, &unread_manifest->error);
}

/* What of the unread ones a thread reads: from `first` on each `step`-th. */
struct reading {
    const struct daemon *daemon;
    size_t first;
    size_t step;
    pthread_t thread;
    bool has_thread;
};

static void *read_some(void *argument)
{
    const struct reading *reading = argument;
    const struct content_references *references = reading->daemon->content_references;
    for (size_t i = reading->first; i < references->unread_count; i += reading->step) {
        read_one(reading->daemon, &references->unread_manifest[i]);
    }
    return NULL;
}

/* From an object store several at the same time, because each takes two round trips. */
static void read_in_thread(void *user)
{
    const struct daemon *daemon = user;
    size_t count = daemon->objects != NULL ? READERS : 1;
    struct reading readings[READERS];
    for (size_t i = 0; i < count; i++) {
        readings[i] = (struct reading){.daemon = daemon, .first = i, .step = count};
        readings[i].has_thread =
            i + 1 < count && thread_start(&readings[i].thread, read_some, &readings[i]) == 0;
        if (!readings[i].has_thread) {
            (void)read_some(&readings[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (readings[i].has_thread) {
            pthread_join(readings[i].thread, NULL);
        }
    }
}

static void after_read(void *user)
{
    struct daemon *daemon = user;
    struct content_references *content_references = daemon->content_references;
    struct refresh refresh = {.daemon = daemon, .content_references = content_references};
    for (size_t i = 0; i < content_references->unread_count; i++) {
        add_read(&refresh, &content_references->unread_manifest[i]);
    }
    free(content_references->unread_manifest);
    content_references->unread_manifest = NULL;
    content_references->unread_count = 0;
    bool all = !(refresh.unread_manifest || refresh.short_of_memory);
    daemon->references_dropped = daemon->references_dropped || all || daemon->objects != NULL;
    if (!all && daemon->objects != NULL) { /* which may be away */
        daemon->references_next_us = clock_monotonic_us() + READ_AGAIN_US;
    }
}

bool content_references_are_incomplete(const struct content_references *content_references)
{
    return content_references != NULL && content_references->is_incomplete;
}

bool content_references_are_loading(const struct content_references *content_references)
{
    return content_references->work.running;
}

/* Reads a manifest whose blocks are not known: at the start at once, because no call waits, else in
 * a thread that begins when all checkpoints were seen. */
static void queue_unread(
    struct refresh *refresh, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct content_references *content_references = refresh->content_references;
    struct unread_manifest unread_manifest = {.job = job, .checkpoint = *checkpoint};
    if (!content_references->built && refresh->daemon->objects == NULL) {
        read_one(refresh->daemon, &unread_manifest);
        add_read(refresh, &unread_manifest);
        return;
    }
    refresh->unread_manifest = true;
    if (content_references->work.running ||
        content_references->unread_count == MANIFESTS_READ_MAX) {
        return;
    }
    if (content_references->unread_manifest == NULL) {
        content_references->unread_manifest = content_references_allocate(
            MANIFESTS_READ_MAX, sizeof *content_references->unread_manifest);
    }
    if (content_references->unread_manifest != NULL) {
        content_references->unread_manifest[content_references->unread_count++] = unread_manifest;
    }
}

/* Any checkpoint with the same manifest: a job may go on from another's. */
static const struct referrer *find_equal(
    const struct content_references *content_references, const struct sha256 *manifest)
{
    for (size_t i = 0; i < content_references->count; i++) {
        const struct referrer *referrer = &content_references->referrers[i];
        if (referrer->kind == REFERRER_CHECKPOINT && referrer->count > 1 &&
            sha256_equal(&referrer->manifest, manifest)) {
            return referrer;
        }
    }
    return NULL;
}

static void add_checkpoint_hashes(
    void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct refresh *refresh = user;
    if (checkpoint->shared) {
        return; /* it has no contents here */
    }
    struct sha256 manifest = content_references_hash(checkpoint->manifest_sha256);
    struct referrer *known = content_references_find(refresh->content_references, job, &manifest);
    if (known != NULL) {
        known->seen = true;
        return;
    }
    const struct referrer *equal = refresh->content_references->built
                                       ? find_equal(refresh->content_references, &manifest)
                                       : NULL;
    if (equal == NULL) {
        queue_unread(refresh, job, checkpoint);
        return;
    }
    struct artifact_references references = {.count = equal->count - 1,
        .bytes = equal->bytes,
        .hashes = content_references_allocate(equal->count, sizeof *references.hashes)};
    if (references.hashes == NULL) {
        refresh->short_of_memory = true;
        return;
    }
    memcpy(references.hashes, equal->hashes + 1, references.count * sizeof *references.hashes);
    add_checkpoint(refresh, job, &manifest, &references);
}

/* Without memory a repeated message does not find it, and it is there twice. */
static void index_part(struct content_references *content_references, size_t index)
{
    const struct pending_part *part = &content_references->checkpoint_parts[index];
    struct sha256 manifest = content_references_hash(part->checkpoint.manifest_sha256);
    if (content_references_reserve(&content_references->checkpoint_parts_by_key)) {
        map_add(&content_references->checkpoint_parts_by_key, key_of(part->job, &manifest),
            (uint32_t)index);
    }
}

static bool is_known(
    struct content_references *content_references, struct job_id job, const struct task_part *part)
{
    const struct map *map = &content_references->checkpoint_parts_by_key;
    const struct sha256 manifest = content_references_hash(part->sha256);
    uint64_t key = key_of(job, &manifest);
    uint32_t at = map->entries != NULL ? map_first(map, key) : MAP_NONE;
    for (; at != MAP_NONE; at = map_next(map, key, at)) {
        const struct pending_part *known =
            &content_references->checkpoint_parts[map->entries[at].value];
        content_references->compared++;
        if (known->job.n == job.n && known->checkpoint.position == part->position &&
            memcmp(known->checkpoint.manifest_sha256, part->sha256, SHA256_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

void content_references_add_part(struct daemon *daemon, struct job_id job,
    const struct task_part *part, struct artifact_references *references)
{
    struct content_references *content_references = daemon->content_references;
    struct sha256 manifest = content_references_hash(part->sha256);
    if (references != NULL && content_references_find(content_references, job, &manifest) == NULL) {
        struct refresh refresh = {.daemon = daemon, .content_references = content_references};
        add_checkpoint(&refresh, job, &manifest, references);
    }
    if (is_known(content_references, job, part)) {
        return; /* a repeated message */
    }
    if (content_references->part_count == content_references->part_capacity) {
        size_t capacity =
            content_references->part_capacity > 0 ? content_references->part_capacity * 2 : 16;
        struct pending_part *grown =
            realloc(content_references->checkpoint_parts, capacity * sizeof *grown);
        if (grown == NULL) {
            return; /* its contents were just uploaded: they stay for an hour anyway */
        }
        content_references->checkpoint_parts = grown;
        content_references->part_capacity = capacity;
    }
    struct pending_part *made =
        &content_references->checkpoint_parts[content_references->part_count++];
    *made = (struct pending_part){.job = job,
        .checkpoint = {.position = part->position,
            .shared = part->shared,
            .manifest_bytes = part->size_bytes}};
    memcpy(made->checkpoint.manifest_sha256, part->sha256, LIMIT_SHA256_BYTES);
    index_part(content_references, content_references->part_count - 1);
}

static bool may_be_published(struct daemon *daemon, const struct pending_part *part)
{
    struct job_info info;
    struct core_checkpoint newest;
    return engine_job_basics(daemon->engine, part->job, &info) && !job_state_is_final(info.state) &&
           (!engine_checkpoint(daemon->engine, part->job, &newest) ||
               newest.position < part->checkpoint.position);
}

/* Adds the parts that may still be published, and drops the others. */
static void add_checkpoint_parts(struct refresh *refresh)
{
    struct content_references *content_references = refresh->content_references;
    size_t kept = 0;
    content_references_empty(&content_references->checkpoint_parts_by_key);
    for (size_t i = 0; i < content_references->part_count; i++) {
        const struct pending_part part = content_references->checkpoint_parts[i];
        struct sha256 manifest = content_references_hash(part.checkpoint.manifest_sha256);
        const struct referrer *referrer =
            content_references_find(content_references, part.job, &manifest);
        bool is_kept = referrer != NULL && referrer->seen;
        bool waits = may_be_published(refresh->daemon, &part);
        if (!is_kept) {
            add_checkpoint_hashes(refresh, part.job, &part.checkpoint);
        }
        struct referrer *seen = content_references_find(content_references, part.job, &manifest);
        if (seen != NULL) {
            seen->seen = is_kept || waits;
        }
        if (waits) {
            content_references->checkpoint_parts[kept] = part;
            index_part(content_references, kept++);
        }
    }
    content_references->part_count = kept;
}

static void drop_unseen(struct refresh *refresh)
{
    struct content_references *content_references = refresh->content_references;
    size_t kept = 0;
    content_references_empty(&content_references->by_key);
    for (size_t i = 0; i < content_references->count; i++) {
        struct referrer referrer = content_references->referrers[i];
        if (referrer.seen) {
            map_add(&content_references->by_key, key_of_referrer(&referrer), (uint32_t)kept);
            content_references->referrers[kept++] = referrer;
            continue;
        }
        for (size_t k = 0; k < referrer.count; k++) {
            if (content_refcounts_drop(&content_references->counts, &referrer.hashes[k]) > 0) {
                continue;
            }
            /* A manifest is of its own checkpoint only: no upload relies on it. */
            bool own = referrer.kind == REFERRER_CHECKPOINT && k == 0;
            contents_remove(refresh->daemon->contents, &referrer.hashes[k], !own);
        }
        free(referrer.hashes);
    }
    content_references->count = kept;
}

cadre_status content_references_refresh(struct daemon *daemon, struct cadre_error *error)
{
    if (daemon->content_references == NULL) {
        daemon->content_references = calloc(1, sizeof *daemon->content_references);
    }
    struct refresh refresh = {.daemon = daemon, .content_references = daemon->content_references};
    if (refresh.content_references == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to count which files are needed");
    }
    for (size_t i = 0; i < refresh.content_references->count; i++) {
        refresh.content_references->referrers[i].seen = false;
    }
    struct engine_job_brief info;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        add_job_hashes(&refresh, info.id);
    }
    cadre_status status =
        engine_each_checkpoint(daemon->engine, add_checkpoint_hashes, &refresh, error);
    if (status == CADRE_OK) {
        add_checkpoint_parts(&refresh);
    }
    refresh.content_references->built = true;
    if (refresh.content_references->unread_count > 0 && !refresh.content_references->work.running) {
        file_work_start(&refresh.content_references->work, &daemon->file_pool, read_in_thread,
            after_read, daemon);
    }
    CADRE_TRY(status);
    refresh.content_references->is_incomplete = refresh.unread_manifest;
    if (refresh.short_of_memory) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to count which files are needed");
    }
    if (refresh.unread_manifest) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "a manifest is not read: nothing is removed until it is");
    }
    drop_unseen(&refresh);
    return CADRE_OK;
}

/* ---- the references of one checkpoint ---- */

bool content_references_checkpoint_has(struct content_references *content_references,
    struct job_id job, const struct core_checkpoint *checkpoint, const struct sha256 *hash)
{
    struct sha256 manifest = content_references_hash(checkpoint->manifest_sha256);
    const struct referrer *referrer = content_references_find(content_references, job, &manifest);
    bool is_referenced = sha256_equal(&manifest, hash);
    for (size_t i = 0; referrer != NULL && i < referrer->count && !is_referenced; i++) {
        is_referenced = sha256_equal(&referrer->hashes[i], hash);
    }
    return is_referenced;
}

uint64_t content_references_checkpoint_bytes(struct daemon *daemon, struct job_id job)
{
    struct core_checkpoint checkpoint;
    uint64_t bytes = 0;
    if (daemon->options.job_quota_bytes == 0) {
        return 0; /* without --job-quota it is not used */
    }
    for (uint32_t i = 0; engine_checkpoint_at(daemon->engine, job, i, &checkpoint); i++) {
        struct sha256 manifest = content_references_hash(checkpoint.manifest_sha256);
        const struct referrer *referrer =
            content_references_find(daemon->content_references, job, &manifest);
        bytes += referrer != NULL ? referrer->bytes : 0;
    }
    return bytes;
}
