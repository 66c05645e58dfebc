/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/needs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "coordinator/daemon/contents.h"
#include "coordinator/daemon/needs_state.h"

struct refresh {
    struct daemon *daemon;
    struct needs *needs;
    bool short_of_memory;
    bool unread; /* a manifest is being read, or cannot be read now */
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
    free(needs->unread);
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
        holder.hashes[holder.count++] = needs_hash(spec->program.sha256);
    }
    for (size_t i = 0; holder.hashes != NULL && i < spec->file_count; i++) {
        holder.hashes[holder.count++] = needs_hash(spec->files[i].sha256);
    }
    add(refresh, holder);
}

/* Takes the mentions over. */
static void add_checkpoint(struct refresh *refresh, struct job_id job,
    const struct sha256 *manifest, struct artifact_mentions *mentions)
{
    struct holder holder = {.kind = HOLDER_CHECKPOINT,
        .job = job,
        .manifest = *manifest,
        .bytes = mentions->bytes,
        .hashes = allocate(mentions->count + 1, sizeof *holder.hashes)};
    if (holder.hashes != NULL) {
        holder.hashes[holder.count++] = *manifest;
        for (size_t i = 0; i < mentions->count; i++) {
            holder.hashes[holder.count++] = mentions->hashes[i];
        }
    }
    free(mentions->hashes);
    *mentions = (struct artifact_mentions){0};
    add(refresh, holder);
}

static void add_read(struct refresh *refresh, struct unread *read)
{
    struct sha256 manifest = needs_hash(read->checkpoint.manifest_sha256);
    cadre_status code = read->error.code;
    if (code != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "files", "a checkpoint cannot be read",
            LOG_U64("job", read->job.n), LOG_U64("step", read->checkpoint.position),
            LOG_STR("reason", read->error.text));
    }
    if (code == CADRE_UNAVAILABLE || code == CADRE_RESOURCE_EXHAUSTED) {
        refresh->unread = true; /* nobody knows which blocks it needs */
    } else if (find(refresh->needs, read->job, &manifest) == NULL) {
        add_checkpoint(refresh, read->job, &manifest, &read->mentions);
    }
    free(read->mentions.hashes);
}

static void read_one(const struct daemon *daemon, struct unread *unread)
{
    (void)artifacts_mentioned(daemon, &unread->checkpoint, daemon->options.job_quota_bytes > 0,
        &unread->mentions, &unread->error);
}

static void read_in_thread(void *user)
{
    const struct daemon *daemon = user;
    for (size_t i = 0; i < daemon->needs->unread_count; i++) {
        read_one(daemon, &daemon->needs->unread[i]);
    }
}

static void after_read(void *user)
{
    struct daemon *daemon = user;
    struct needs *needs = daemon->needs;
    struct refresh refresh = {.daemon = daemon, .needs = needs};
    for (size_t i = 0; i < needs->unread_count; i++) {
        add_read(&refresh, &needs->unread[i]);
    }
    free(needs->unread);
    needs->unread = NULL;
    needs->unread_count = 0;
    daemon->needs_changed = daemon->needs_changed || !(refresh.unread || refresh.short_of_memory);
}

bool needs_are_read(const struct needs *needs)
{
    return needs->work.runs;
}

/* Where its blocks are not known: at the start, when nobody waits, at once, and else in a thread
 * that begins when all were seen. */
static void see_unread(
    struct refresh *refresh, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct needs *needs = refresh->needs;
    struct unread unread = {.job = job, .checkpoint = *checkpoint};
    if (!needs->built) {
        read_one(refresh->daemon, &unread);
        add_read(refresh, &unread);
        return;
    }
    refresh->unread = true;
    if (needs->work.runs || needs->unread_count == READ_AT_ONCE) {
        return;
    }
    if (needs->unread == NULL) {
        needs->unread = allocate(READ_AT_ONCE, sizeof *needs->unread);
    }
    if (needs->unread != NULL) {
        needs->unread[needs->unread_count++] = unread;
    }
}

/* Any checkpoint with the same manifest: a job may go on from another's. */
static const struct holder *find_equal(const struct needs *needs, const struct sha256 *manifest)
{
    for (size_t i = 0; i < needs->count; i++) {
        const struct holder *holder = &needs->holders[i];
        if (holder->kind == HOLDER_CHECKPOINT && holder->count > 1 &&
            sha256_equal(&holder->manifest, manifest)) {
            return holder;
        }
    }
    return NULL;
}

static void see_checkpoint(void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct refresh *refresh = user;
    if (checkpoint->shared) {
        return; /* it needs nothing here */
    }
    struct sha256 manifest = needs_hash(checkpoint->manifest_sha256);
    struct holder *known = find(refresh->needs, job, &manifest);
    if (known != NULL) {
        known->seen = true;
        return;
    }
    const struct holder *equal =
        refresh->needs->built ? find_equal(refresh->needs, &manifest) : NULL;
    if (equal == NULL) {
        see_unread(refresh, job, checkpoint);
        return;
    }
    struct artifact_mentions mentions = {.count = equal->count - 1,
        .bytes = equal->bytes,
        .hashes = allocate(equal->count, sizeof *mentions.hashes)};
    if (mentions.hashes == NULL) {
        refresh->short_of_memory = true;
        return;
    }
    memcpy(mentions.hashes, equal->hashes + 1, mentions.count * sizeof *mentions.hashes);
    add_checkpoint(refresh, job, &manifest, &mentions);
}

/* Without memory it is not found when it is said again, and is there twice. */
static void index_part(struct needs *needs, size_t index)
{
    const struct given_part *part = &needs->parts[index];
    struct sha256 manifest = needs_hash(part->checkpoint.manifest_sha256);
    if (reserve(&needs->parts_by_key)) {
        map_add(&needs->parts_by_key, key_of(part->job, &manifest), (uint32_t)index);
    }
}

static bool is_known(struct needs *needs, struct job_id job, const struct task_part *part)
{
    const struct map *map = &needs->parts_by_key;
    const struct sha256 manifest = needs_hash(part->sha256);
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

void needs_note_part(struct daemon *daemon, struct job_id job, const struct task_part *part,
    struct artifact_mentions *mentions)
{
    struct needs *needs = daemon->needs;
    struct sha256 manifest = needs_hash(part->sha256);
    if (mentions != NULL && find(needs, job, &manifest) == NULL) {
        struct refresh refresh = {.daemon = daemon, .needs = needs};
        add_checkpoint(&refresh, job, &manifest, mentions);
    }
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
        struct sha256 manifest = needs_hash(part.checkpoint.manifest_sha256);
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
            contents_remove(refresh->daemon->contents, &holder.hashes[k], !own);
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
    cadre_status status = engine_each_checkpoint(daemon->engine, see_checkpoint, &refresh, error);
    if (status == CADRE_OK) {
        see_parts(&refresh);
    }
    refresh.needs->built = true;
    if (refresh.needs->unread_count > 0 && !refresh.needs->work.runs) {
        file_work_start(&refresh.needs->work, &daemon->works, read_in_thread, after_read, daemon);
    }
    CADRE_TRY(status);
    if (refresh.short_of_memory) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to count which files are needed");
    }
    if (refresh.unread) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "a manifest is not read: nothing is removed until it is");
    }
    drop_unseen(&refresh);
    return CADRE_OK;
}

/* ---- what one checkpoint needs ---- */

bool needs_checkpoint_needs(struct needs *needs, struct job_id job,
    const struct core_checkpoint *checkpoint, const struct sha256 *hash)
{
    struct sha256 manifest = needs_hash(checkpoint->manifest_sha256);
    const struct holder *holder = find(needs, job, &manifest);
    bool needed = sha256_equal(&manifest, hash);
    for (size_t i = 0; holder != NULL && i < holder->count && !needed; i++) {
        needed = sha256_equal(&holder->hashes[i], hash);
    }
    return needed;
}

uint64_t needs_checkpoint_bytes(struct daemon *daemon, struct job_id job)
{
    struct core_checkpoint checkpoint;
    uint64_t bytes = 0;
    if (daemon->options.job_quota_bytes == 0) {
        return 0; /* nobody compares it */
    }
    for (uint32_t i = 0; engine_checkpoint_at(daemon->engine, job, i, &checkpoint); i++) {
        struct sha256 manifest = needs_hash(checkpoint.manifest_sha256);
        const struct holder *holder = find(daemon->needs, job, &manifest);
        bytes += holder != NULL ? holder->bytes : 0;
    }
    return bytes;
}
