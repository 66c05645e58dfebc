/* SPDX-License-Identifier: Apache-2.0
 * A content at the coordinator that is not what its hash says, or not there any more: it is
 * removed, so that whoever has it uploads it again, and checkpoints that need it do not count. */
#include "coordinator/daemon/damage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "coordinator/daemon/artifacts.h"

struct damaged {
    struct job_id job;
    uint64_t position;
};

struct search {
    const struct daemon *daemon;
    struct sha256 hash;
    struct damaged *items;
    size_t count;
    bool short_of_memory;
};

static bool needs_it(
    const struct search *search, struct job_id job, const struct core_checkpoint *checkpoint)
{
    CADRE_FREE_AT_EXIT struct sha256 *hashes = NULL;
    struct cadre_error error = {0};
    size_t count = 0;
    if (memcmp(checkpoint->manifest_sha256, search->hash.bytes, SHA256_BYTES) == 0) {
        return true;
    }
    if (artifacts_mentioned(search->daemon, job, checkpoint, &hashes, &count, &error) != CADRE_OK) {
        return false; /* its manifest is asked for first: then that is found */
    }
    for (size_t i = 0; i < count; i++) {
        if (sha256_equal(&hashes[i], &search->hash)) {
            return true;
        }
    }
    return false;
}

static void look_at(void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct search *search = user;
    if (checkpoint->shared || !needs_it(search, job, checkpoint)) {
        return;
    }
    struct damaged *grown = realloc(search->items, (search->count + 1) * sizeof *search->items);
    if (grown == NULL) {
        search->short_of_memory = true;
        return;
    }
    search->items = grown;
    search->items[search->count++] = (struct damaged){.job = job, .position = checkpoint->position};
}

static void log_damaged(struct daemon *daemon, const struct damaged *item, const char *why)
{
    struct core_checkpoint now;
    if (engine_begins_at(daemon->engine, item->job, &now) && now.position < item->position) {
        log_event(LOG_LEVEL_ERROR, "jobs", "a checkpoint is damaged: the one before it counts",
            LOG_U64("job", item->job.n), LOG_U64("step", item->position),
            LOG_U64("before", now.position), LOG_STR("reason", why));
    } else {
        log_event(LOG_LEVEL_ERROR, "jobs", "a checkpoint is damaged", LOG_U64("job", item->job.n),
            LOG_U64("step", item->position), LOG_STR("reason", why));
    }
}

void damage_found(struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES], const char *why)
{
    struct search search = {.daemon = daemon};
    struct cadre_error error = {0};
    char hex[SHA256_HEX_BYTES];
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, sha256);
    memcpy(search.hash.bytes, sha256, SHA256_BYTES);
    sha256_hex(&search.hash, hex);
    cadre_status status = engine_each_checkpoint(daemon->engine, look_at, &search, &error);
    if (status != CADRE_OK || search.short_of_memory) {
        log_event(LOG_LEVEL_WARNING, "files", "it is not known which checkpoints are damaged",
            LOG_STR("content", hex), LOG_STR("reason", error.text));
    }
    if (path != NULL && unlink(path) == 0) {
        daemon->needs_changed = true;
    }
    log_event(LOG_LEVEL_ERROR, "files", "a content is damaged and was removed",
        LOG_STR("content", hex), LOG_STR("reason", why), LOG_U64("checkpoints", search.count));
    for (size_t i = 0; i < search.count; i++) {
        const struct damaged *item = &search.items[i];
        engine_checkpoint_damaged(
            daemon->engine, clock_monotonic_us(), item->job, item->position, why);
        log_damaged(daemon, item, why);
    }
    free(search.items);
}
