/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/parameters/parameter_views.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

/* Reads of all threads: what is asked for is nearly always the thread's last one. Of very many
 * shards fewer are kept. */
#define VIEWS_KEPT    32
#define VERSIONS_KEPT (UINT64_C(64) << 10)

struct view {
    bool there;
    pthread_t thread;
    uint64_t least;
};

struct parameter_views {
    pthread_mutex_t lock;
    uint64_t shards;
    uint32_t kept; /* 1 to VIEWS_KEPT */
    uint32_t next;
    struct view list[VIEWS_KEPT];
    uint64_t versions[]; /* [kept][shards] */
};

struct parameter_views *parameter_views_new(uint64_t shards)
{
    CADRE_ASSERT(shards > 0);
    uint64_t kept = VERSIONS_KEPT / shards;
    kept = kept == 0 ? 1 : kept > VIEWS_KEPT ? VIEWS_KEPT : kept;
    /* One shard's version is the number itself. */
    uint64_t versions = shards > 1 ? shards * kept : 0;
    struct parameter_views *views =
        calloc(1, sizeof *views + (size_t)versions * sizeof views->versions[0]);
    if (views != NULL) {
        pthread_mutex_init(&views->lock, NULL);
        views->shards = shards;
        views->kept = (uint32_t)kept;
    }
    return views;
}

void parameter_views_free(struct parameter_views *views)
{
    if (views != NULL) {
        pthread_mutex_destroy(&views->lock);
        free(views);
    }
}

static uint64_t *versions_of(struct parameter_views *views, uint32_t at)
{
    CADRE_ASSERT(at < views->kept);
    CADRE_ASSERT(views->shards > 1);
    return &views->versions[(size_t)at * (size_t)views->shards];
}

uint64_t parameter_views_keep(struct parameter_views *views, const uint64_t *versions)
{
    uint64_t least = VIEW_NONE;
    for (uint64_t i = 0; i < views->shards; i++) {
        least = versions[i] < least ? versions[i] : least;
    }
    least = least == VIEW_NONE ? 0 : least; /* nothing was read */
    if (views->shards > 1) {
        pthread_mutex_lock(&views->lock);
        uint32_t at = views->next;
        views->next = (at + 1) % views->kept;
        views->list[at] = (struct view){.there = true, .thread = pthread_self(), .least = least};
        memcpy(versions_of(views, at), versions, (size_t)views->shards * sizeof versions[0]);
        pthread_mutex_unlock(&views->lock);
    }
    return least;
}

void parameter_views_find(struct parameter_views *views, uint64_t least, uint64_t *ret_versions)
{
    uint32_t found = VIEWS_KEPT;
    bool own = false;
    pthread_mutex_lock(&views->lock);
    for (uint32_t back = 1; views->shards > 1 && !own && back <= views->kept; back++) {
        uint32_t at = (views->next + views->kept - back) % views->kept;
        const struct view *view = &views->list[at];
        if (view->there && view->least == least) {
            own = pthread_equal(view->thread, pthread_self()) != 0;
            found = own || found == VIEWS_KEPT ? at : found;
        }
    }
    for (uint64_t i = 0; i < views->shards; i++) {
        ret_versions[i] = found == VIEWS_KEPT ? least : versions_of(views, found)[i];
    }
    pthread_mutex_unlock(&views->lock);
}
