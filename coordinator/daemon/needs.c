/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/needs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/pure/map.h"
#include "coordinator/daemon/artifacts.h"
#include "coordinator/daemon/file_store.h"
#include "coordinator/daemon/hash_counts.h"

enum holder_kind { HOLDER_JOB, HOLDER_CHECKPOINT };

struct holder {
    enum holder_kind kind;
    struct job_id job;
    struct sha256 manifest; /* of a checkpoint */
    struct sha256 *hashes;  /* each is counted once for this holder; the manifest is the first */
    size_t count;
    bool seen; /* in the refresh that is under way */
};

/* A part of a job that the engine was given. */
struct given_part {
    struct job_id job;
    struct core_checkpoint checkpoint;
};

struct needs {
    struct given_part *parts;
    size_t part_count;
    size_t part_capacity;
    struct map parts_by_key;
    struct holder *holders;
    size_t count;
    size_t capacity;
    struct map by_key;
    struct hash_counts counts;
    uint64_t compared;
};

struct refresh {
    struct daemon *daemon;
    struct needs *needs;
    bool short_of_memory;
    bool unread; /* a manifest cannot be read now */
};

static void *allocate(size_t count, size_t size)
{
    return fault_point("needs.allocate") ? NULL : calloc(count, size);
}

bool needs_has(const struct needs *needs, const struct sha256 *hash)
{
    return hash_counts_of(&needs->counts, hash) > 0;
}

void needs_close(struct needs *needs)
{
    if (needs == NULL) {
        return;
    }
    for (size_t i = 0; i < needs->count; i++) {
        free(needs->holders[i].hashes);
    }
    free(needs->holders);
    free(needs->by_key.entries);
    free(needs->parts);
    free(needs->parts_by_key.entries);
    hash_counts_free(&needs->counts);
    free(needs);
}

/* Of the whole job, and of one of its checkpoints: some may be equal. */
static uint64_t key_of(struct job_id job, const struct sha256 *manifest)
{
    uint64_t key = 0;
    if (manifest != NULL) {
        memcpy(&key, manifest->bytes, sizeof key);
    }
    return key ^ prng_mix(job.n);
}

static uint64_t key_of_holder(const struct holder *holder)
{
    return key_of(holder->job, holder->kind == HOLDER_CHECKPOINT ? &holder->manifest : NULL);
}

/* Room for one more; false: no memory. */
static bool reserve(struct map *map)
{
    uint32_t places = map->entries != NULL ? map->mask + 1 : 0;
    if (map->count + 1 < places / 2) {
        return true;
    }
    struct map grown;
    uint32_t more = map_places(2 * map->count + 16);
    struct map_entry *entries = allocate(more, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    map_init(&grown, entries, more);
    for (uint32_t i = 0; i < places; i++) {
        if (map->entries[i].used) {
            map_add(&grown, map->entries[i].key, map->entries[i].value);
        }
    }
    free(map->entries);
    *map = grown;
    return true;
}

static void empty(struct map *map)
{
    if (map->entries != NULL) {
        map_init(map, map->entries, map->mask + 1);
    }
}

/* `manifest`: of a checkpoint; NULL: the whole job. */
static struct holder *find(struct needs *needs, struct job_id job, const struct sha256 *manifest)
{
    const struct map *map = &needs->by_key;
    uint64_t key = key_of(job, manifest);
    enum holder_kind kind = manifest != NULL ? HOLDER_CHECKPOINT : HOLDER_JOB;
    uint32_t at = map->entries != NULL ? map_first(map, key) : MAP_NONE;
    for (; at != MAP_NONE; at = map_next(map, key, at)) {
        struct holder *holder = &needs->holders[map->entries[at].value];
        needs->compared++;
        if (holder->kind == kind && holder->job.n == job.n &&
            (manifest == NULL || sha256_equal(&holder->manifest, manifest))) {
            return holder;
        }
    }
    return NULL;
}

uint64_t needs_compared(const struct needs *needs)
{
    return needs->compared;
}

/* Takes `hashes` over. */
static void add(struct refresh *refresh, struct holder holder)
{
    struct needs *needs = refresh->needs;
    if (needs->count == needs->capacity) {
        size_t capacity = needs->capacity > 0 ? needs->capacity * 2 : 64;
        struct holder *grown = fault_point("needs.allocate")
                                   ? NULL
                                   : realloc(needs->holders, capacity * sizeof *grown);
        needs->holders = grown != NULL ? grown : needs->holders;
        needs->capacity = grown != NULL ? capacity : needs->capacity;
    }
    size_t counted = 0;
    while (holder.hashes != NULL && needs->count < needs->capacity && counted < holder.count &&
           !fault_point("needs.allocate") &&
           hash_counts_add(&needs->counts, &holder.hashes[counted])) {
        counted++;
    }
    if (holder.hashes == NULL || counted < holder.count || needs->count == needs->capacity ||
        !reserve(&needs->by_key)) {
        refresh->short_of_memory = true;
        while (counted > 0) {
            hash_counts_drop(&needs->counts, &holder.hashes[--counted]);
        }
        free(holder.hashes);
        return;
    }
    holder.seen = true;
    map_add(&needs->by_key, key_of_holder(&holder), (uint32_t)needs->count);
    needs->holders[needs->count++] = holder;
}

static struct sha256 hash_of(const uint8_t bytes[LIMIT_SHA256_BYTES])
{
    struct sha256 hash;
    memcpy(hash.bytes, bytes, SHA256_BYTES);
    return hash;
}

static void see_job(struct refresh *refresh, struct job_id job)
{
    struct holder *known = find(refresh->needs, job, NULL);
    if (known != NULL) {
        known->seen = true;
        return;
    }
    const struct job_spec *spec = engine_job_spec(refresh->daemon->engine, job);
    struct holder holder = {.kind = HOLDER_JOB,
        .job = job,
        .hashes = allocate(spec->file_count + 1, sizeof *holder.hashes)};
    if (holder.hashes != NULL) {
        holder.hashes[holder.count++] = hash_of(spec->program.sha256);
    }
    for (size_t i = 0; holder.hashes != NULL && i < spec->file_count; i++) {
        holder.hashes[holder.count++] = hash_of(spec->files[i].sha256);
    }
    add(refresh, holder);
}

static void see_checkpoint(void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct refresh *refresh = user;
    if (checkpoint->shared) {
        return; /* it needs nothing here */
    }
    struct sha256 manifest = hash_of(checkpoint->manifest_sha256);
    struct holder *known = find(refresh->needs, job, &manifest);
    if (known != NULL) {
        known->seen = true;
        return;
    }
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT struct sha256 *mentioned = NULL;
    size_t mentioned_count = 0;
    if (artifacts_mentioned(
            refresh->daemon, job, checkpoint, &mentioned, &mentioned_count, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "files", "a checkpoint cannot be read", LOG_U64("job", job.n),
            LOG_U64("step", checkpoint->position), LOG_STR("reason", error.text));
        if (error.code == CADRE_UNAVAILABLE || error.code == CADRE_RESOURCE_EXHAUSTED) {
            refresh->unread = true; /* nobody knows which blocks it needs */
            return;
        }
    }
    struct holder holder = {.kind = HOLDER_CHECKPOINT,
        .job = job,
        .manifest = manifest,
        .hashes = allocate(mentioned_count + 1, sizeof *holder.hashes)};
    if (holder.hashes != NULL) {
        holder.hashes[holder.count++] = manifest;
    }
    for (size_t i = 0; holder.hashes != NULL && i < mentioned_count; i++) {
        holder.hashes[holder.count++] = mentioned[i];
    }
    add(refresh, holder);
}

/* Without memory it is not found when it is said again, and is there twice. */
static void index_part(struct needs *needs, size_t index)
{
    const struct given_part *part = &needs->parts[index];
    struct sha256 manifest = hash_of(part->checkpoint.manifest_sha256);
    if (reserve(&needs->parts_by_key)) {
        map_add(&needs->parts_by_key, key_of(part->job, &manifest), (uint32_t)index);
    }
}

static bool is_known(struct needs *needs, struct job_id job, const struct task_part *part)
{
    const struct map *map = &needs->parts_by_key;
    const struct sha256 manifest = hash_of(part->sha256);
    uint64_t key = key_of(job, &manifest);
    uint32_t at = map->entries != NULL ? map_first(map, key) : MAP_NONE;
    for (; at != MAP_NONE; at = map_next(map, key, at)) {
        const struct given_part *known = &needs->parts[map->entries[at].value];
        needs->compared++;
        if (known->job.n == job.n && known->checkpoint.position == part->position &&
            memcmp(known->checkpoint.manifest_sha256, part->sha256, SHA256_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

void needs_note_part(struct daemon *daemon, struct job_id job, const struct task_part *part)
{
    struct needs *needs = daemon->needs;
    if (is_known(needs, job, part)) {
        return; /* said again */
    }
    if (needs->part_count == needs->part_capacity) {
        size_t capacity = needs->part_capacity > 0 ? needs->part_capacity * 2 : 16;
        struct given_part *grown = realloc(needs->parts, capacity * sizeof *grown);
        if (grown == NULL) {
            return; /* its contents were just brought: they stay for a while anyway */
        }
        needs->parts = grown;
        needs->part_capacity = capacity;
    }
    struct given_part *made = &needs->parts[needs->part_count++];
    *made = (struct given_part){.job = job,
        .checkpoint = {.position = part->position,
            .shared = part->shared,
            .manifest_bytes = part->size_bytes}};
    memcpy(made->checkpoint.manifest_sha256, part->sha256, LIMIT_SHA256_BYTES);
    index_part(needs, needs->part_count - 1);
}

static bool may_be_published(struct daemon *daemon, const struct given_part *part)
{
    struct job_info info;
    struct core_checkpoint newest;
    return engine_job_basics(daemon->engine, part->job, &info) && !job_state_is_final(info.state) &&
           (!engine_checkpoint(daemon->engine, part->job, &newest) ||
               newest.position < part->checkpoint.position);
}

/* One that cannot be published any more, and was not, held its contents until now. */
static void see_parts(struct refresh *refresh)
{
    struct needs *needs = refresh->needs;
    size_t kept = 0;
    empty(&needs->parts_by_key);
    for (size_t i = 0; i < needs->part_count; i++) {
        const struct given_part part = needs->parts[i];
        struct sha256 manifest = hash_of(part.checkpoint.manifest_sha256);
        const struct holder *holder = find(needs, part.job, &manifest);
        bool is_kept = holder != NULL && holder->seen;
        bool waits = may_be_published(refresh->daemon, &part);
        if (!is_kept) {
            see_checkpoint(refresh, part.job, &part.checkpoint);
        }
        struct holder *seen = find(needs, part.job, &manifest);
        if (seen != NULL) {
            seen->seen = is_kept || waits;
        }
        if (waits) {
            needs->parts[kept] = part;
            index_part(needs, kept++);
        }
    }
    needs->part_count = kept;
}

static void drop_unseen(struct refresh *refresh)
{
    struct needs *needs = refresh->needs;
    size_t kept = 0;
    empty(&needs->by_key);
    for (size_t i = 0; i < needs->count; i++) {
        struct holder holder = needs->holders[i];
        if (holder.seen) {
            map_add(&needs->by_key, key_of_holder(&holder), (uint32_t)kept);
            needs->holders[kept++] = holder;
            continue;
        }
        for (size_t k = 0; k < holder.count; k++) {
            if (hash_counts_drop(&needs->counts, &holder.hashes[k]) > 0) {
                continue;
            }
            /* A manifest is of its own checkpoint only: no upload counts on it. */
            bool own = holder.kind == HOLDER_CHECKPOINT && k == 0;
            file_store_remove(refresh->daemon, &holder.hashes[k], !own);
        }
        free(holder.hashes);
    }
    needs->count = kept;
}

cadre_status needs_refresh(struct daemon *daemon, struct cadre_error *error)
{
    if (daemon->needs == NULL) {
        daemon->needs = calloc(1, sizeof *daemon->needs);
    }
    struct refresh refresh = {.daemon = daemon, .needs = daemon->needs};
    if (refresh.needs == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to count which files are needed");
    }
    for (size_t i = 0; i < refresh.needs->count; i++) {
        refresh.needs->holders[i].seen = false;
    }
    struct engine_job_brief info;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        see_job(&refresh, info.id);
    }
    CADRE_TRY(engine_each_checkpoint(daemon->engine, see_checkpoint, &refresh, error));
    see_parts(&refresh);
    if (refresh.short_of_memory) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to count which files are needed");
    }
    if (refresh.unread) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "a manifest cannot be read: nothing is removed until it can");
    }
    drop_unseen(&refresh);
    return CADRE_OK;
}

/* ---- whose a content is ---- */

/* Contents that are asked for, and which of them were found. */
struct asked {
    struct hash_counts asked;
    struct hash_counts found;
    bool short_of_memory;
};

static void look_for(struct asked *asked, const struct sha256 *hash)
{
    if (hash_counts_of(&asked->asked, hash) > 0 && hash_counts_of(&asked->found, hash) == 0 &&
        !hash_counts_add(&asked->found, hash)) {
        asked->short_of_memory = true;
    }
}

static void look_in_files(struct asked *asked, const struct job_spec *spec)
{
    const struct sha256 program = hash_of(spec->program.sha256);
    look_for(asked, &program);
    for (size_t i = 0; i < spec->file_count; i++) {
        const struct sha256 file = hash_of(spec->files[i].sha256);
        look_for(asked, &file);
    }
}

static void look_in_checkpoints(
    struct asked *asked, const struct needs *needs, const struct job_id *jobs, size_t job_count)
{
    for (size_t i = 0; needs != NULL && i < needs->count; i++) {
        const struct holder *holder = &needs->holders[i];
        size_t job = 0;
        while (job < job_count && jobs[job].n != holder->job.n) {
            job++;
        }
        for (size_t k = 0; job < job_count && k < holder->count; k++) {
            look_for(asked, &holder->hashes[k]);
        }
    }
}

/* In what the jobs need that have a task there. */
static void look(struct asked *asked, struct daemon *daemon, const char *worker)
{
    struct job_id jobs[LIMIT_SLOTS_PER_WORKER];
    size_t count = 0;
    struct engine_job_brief info;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        if (!job_state_is_final(info.state) && count < LIMIT_SLOTS_PER_WORKER &&
            engine_worker_has_job(daemon->engine, worker, info.id)) {
            look_in_files(asked, engine_job_spec(daemon->engine, info.id));
            jobs[count++] = info.id;
        }
    }
    look_in_checkpoints(asked, daemon->needs, jobs, count);
}

cadre_status needs_of_worker(struct daemon *daemon, const char *worker, const struct sha256 *hashes,
    size_t count, bool *ret_needed, struct cadre_error *error)
{
    struct asked asked = {0};
    struct cadre_error ignored;
    for (size_t i = 0; i < count && !asked.short_of_memory; i++) {
        asked.short_of_memory = !hash_counts_add(&asked.asked, &hashes[i]);
    }
    look(&asked, daemon, worker);
    bool all = true;
    for (size_t i = 0; i < count && all; i++) {
        all = hash_counts_of(&asked.found, &hashes[i]) > 0;
    }
    if (!all && daemon->needs_grown) { /* its checkpoint may not be counted yet */
        daemon->needs_grown = false;
        if (needs_refresh(daemon, &ignored) == CADRE_OK) {
            look(&asked, daemon, worker);
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret_needed[i] = hash_counts_of(&asked.found, &hashes[i]) > 0;
    }
    hash_counts_free(&asked.asked);
    hash_counts_free(&asked.found);
    return asked.short_of_memory ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                       "the coordinator has no memory to look for contents")
                                 : CADRE_OK;
}
