/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/served/read_versions.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/pure/assert.h"

/* One for each thread that reads; of many shards fewer are kept. */
#define VIEWS_KEPT    128
#define VIEWS_LEAST   4
#define VERSIONS_KEPT (UINT64_C(64) << 10)

struct view {
    uint64_t closure;   /* 0: none */
    pthread_t thread;   /* the last one that has read */
    uint64_t used;      /* a count of all uses: the smallest is reused first */
    uint64_t *versions; /* [shards]; NULL: not used yet */
};

struct read_versions {
    pthread_mutex_t lock;
    uint64_t shards;
    uint64_t uses;
    uint32_t kept; /* of `list` */
    struct view list[VIEWS_KEPT];
};

struct read_versions *read_versions_new(uint64_t shards)
{
    CADRE_ASSERT(shards > 0);
    struct read_versions *views = calloc(1, sizeof *views);
    if (views != NULL) {
        uint64_t kept = VERSIONS_KEPT / shards;
        pthread_mutex_init(&views->lock, NULL);
        views->shards = shards;
        views->kept = kept < VIEWS_LEAST  ? VIEWS_LEAST
                      : kept > VIEWS_KEPT ? VIEWS_KEPT
                                          : (uint32_t)kept;
    }
    return views;
}

void read_versions_free(struct read_versions *views)
{
    if (views == NULL) {
        return;
    }
    for (uint32_t i = 0; i < views->kept; i++) {
        free(views->list[i].versions);
    }
    pthread_mutex_destroy(&views->lock);
    free(views);
}

static bool is_of_thread(const struct view *view)
{
    return view->versions != NULL && pthread_equal(view->thread, pthread_self()) != 0;
}

/* The caller holds the lock. The view of the closure, by whichever thread; outside of closures the
 * thread's. NULL: nothing was read. */
static struct view *view_of(struct read_versions *views, uint64_t closure)
{
    for (uint32_t i = 0; i < views->kept; i++) {
        struct view *view = &views->list[i];
        if (view->versions != NULL && view->closure == closure &&
            (closure != 0 || is_of_thread(view))) {
            view->used = ++views->uses;
            return view;
        }
    }
    return NULL;
}

/* The caller holds the lock. The view to reuse: the thread's last one, whose closure has ended; a
 * free one; the least recently used one. */
static struct view *view_for(struct read_versions *views)
{
    struct view *oldest = &views->list[0];
    for (uint32_t i = 0; i < views->kept; i++) {
        struct view *view = &views->list[i];
        if (is_of_thread(view)) {
            return view;
        }
        oldest = view->used < oldest->used ? view : oldest;
    }
    return oldest;
}

/* The caller holds the lock. NULL: no memory. */
static struct view *new_view(struct read_versions *views, uint64_t closure)
{
    struct view *view = view_for(views);
    if (view->versions == NULL) {
        view->versions = malloc((size_t)views->shards * sizeof view->versions[0]);
    }
    for (uint64_t i = 0; view->versions != NULL && i < views->shards; i++) {
        view->versions[i] = READ_VERSION_NONE;
    }
    view->closure = closure;
    view->thread = pthread_self();
    view->used = ++views->uses;
    return view->versions != NULL ? view : NULL;
}

void read_versions_record(struct read_versions *views, uint64_t closure, const uint64_t *versions)
{
    pthread_mutex_lock(&views->lock);
    struct view *view = view_of(views, closure);
    view = view != NULL ? view : new_view(views, closure);
    for (uint64_t i = 0; view != NULL && i < views->shards; i++) {
        view->versions[i] = versions[i] != READ_VERSION_NONE ? versions[i] : view->versions[i];
    }
    pthread_mutex_unlock(&views->lock);
}

bool read_versions_find(struct read_versions *views, uint64_t closure, uint64_t *ret_versions)
{
    pthread_mutex_lock(&views->lock);
    const struct view *view = view_of(views, closure);
    for (uint64_t i = 0; view != NULL && i < views->shards; i++) {
        ret_versions[i] = view->versions[i];
    }
    pthread_mutex_unlock(&views->lock);
    return view != NULL;
}
