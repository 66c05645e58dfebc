/* SPDX-License-Identifier: Apache-2.0
 * A content at the coordinator whose bytes do not have its hash, or whose file is missing: it is
 * removed, so that the next client or worker uploads it again, and checkpoints that reference it do
 * not count. */
#include "coordinator/daemon/contents/file_store.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/content_references.h"

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

static void check_job(void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct search *search = user;
    if (checkpoint->shared || !content_references_checkpoint_has(search->daemon->content_references,
                                  job, checkpoint, &search->hash)) {
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

void damage_handle(struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES], const char *why)
{
    struct search search = {.daemon = daemon};
    struct cadre_error error = {0};
    char hex[SHA256_HEX_BYTES];
    memcpy(search.hash.bytes, sha256, SHA256_BYTES);
    sha256_hex(&search.hash, hex);
    (void)content_references_refresh(daemon, &error); /* for checkpoints since the last refresh; a
                                                         damage that is missed is found again */
    cadre_status status = engine_each_checkpoint(daemon->engine, check_job, &search, &error);
    if (status != CADRE_OK || search.short_of_memory) {
        log_event(LOG_LEVEL_WARNING, "files", "the damaged checkpoints could not be found",
            LOG_STR("content", hex), LOG_STR("reason", error.text));
    }
    contents_remove_damaged(daemon->contents, &search.hash);
    daemon->references_dropped = true;
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
