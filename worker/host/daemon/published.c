/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/publish.h"

#include <stdlib.h>
#include <string.h>

/* the coordinator keeps no more of a job; older ones are not in the folder any more */
#define REMEMBERED_MAX LIMIT_CHECKPOINTS_KEPT

static bool time_is(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* A write to a file, or a rename over it, changes one of these. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           time_is(&a->st_mtim, &b->st_mtim) && time_is(&a->st_ctim, &b->st_ctim);
}

static void drop_oldest(struct published **list)
{
    struct published **at = list;
    for (unsigned i = 0; *at != NULL && i < REMEMBERED_MAX; i++) {
        at = &(*at)->next;
    }
    published_free(*at);
    *at = NULL;
}

void published_add(struct published **list, const uint8_t manifest_sha256[LIMIT_SHA256_BYTES],
    const struct stat files[PUBLISHED_FILES])
{
    struct published *made = malloc(sizeof *made);
    if (made == NULL) {
        return;
    }
    made->next = *list;
    memcpy(made->manifest_sha256, manifest_sha256, LIMIT_SHA256_BYTES);
    memcpy(made->files, files, sizeof made->files);
    *list = made;
    drop_oldest(list);
}

const uint8_t *published_find(const struct published *list, const struct stat *file)
{
    for (; list != NULL; list = list->next) {
        if (is_same(&list->files[0], file) || is_same(&list->files[1], file)) {
            return list->manifest_sha256;
        }
    }
    return NULL;
}

void published_free(struct published *list)
{
    while (list != NULL) {
        struct published *next = list->next;
        free(list);
        list = next;
    }
}
