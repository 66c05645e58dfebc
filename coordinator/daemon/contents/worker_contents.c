/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/worker_permissions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/content_references_state.h"
#include "coordinator/daemon/contents/content_references.h"

/* After so long the newer ones become the older ones, and the older ones are dropped. */
#define ROTATE_US  (3600 * CADRE_US_PER_S)
#define ROTATE_MAX ((size_t)2 * LIMIT_BLOBS_LISTED)

/* The contents that one worker had. */
struct worker_contents {
    struct worker_contents *next;
    char name[LIMIT_NAME_BYTES];
    struct content_refcounts newer;
    struct content_refcounts older;
    uint64_t turned_us;
};

static struct worker_contents *worker_contents_find(const struct daemon *daemon, const char *worker)
{
    struct worker_contents *contents = daemon->worker_contents;
    while (contents != NULL && strcmp(contents->name, worker) != 0) {
        contents = contents->next;
    }
    return contents;
}

static bool was_known(const struct worker_contents *contents, const struct sha256 *hash)
{
    return contents != NULL && (content_refcounts_of(&contents->newer, hash) > 0 ||
                                   content_refcounts_of(&contents->older, hash) > 0);
}

static void worker_contents_rotate(struct worker_contents *contents, uint64_t now_us)
{
    if (now_us - contents->turned_us >= ROTATE_US || contents->newer.used >= ROTATE_MAX) {
        content_refcounts_free(&contents->older);
        contents->older = contents->newer;
        contents->newer = (struct content_refcounts){0};
        contents->turned_us = now_us;
    }
}

void worker_contents_note(struct daemon *daemon, const char *worker, const struct sha256 *hash)
{
    struct worker_contents *contents = worker_contents_find(daemon, worker);
    uint64_t now_us = clock_monotonic_us();
    if (contents == NULL) {
        contents = calloc(1, sizeof *contents);
        if (contents == NULL) {
            return;
        }
        snprintf(contents->name, sizeof contents->name, "%s", worker);
        contents->turned_us = now_us;
        contents->next = daemon->worker_contents;
        daemon->worker_contents = contents;
    }
    worker_contents_rotate(contents, now_us);
    if (content_refcounts_of(&contents->newer, hash) == 0) {
        (void)content_refcounts_add(&contents->newer, hash);
    }
}

cadre_status worker_contents_allowed(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, bool *ret_allowed, struct cadre_error *error)
{
    const struct worker_contents *contents = worker_contents_find(daemon, worker);
    CADRE_TRY(content_references_of_worker(daemon, worker, hashes, count, ret_allowed, error));
    for (size_t i = 0; i < count; i++) {
        ret_allowed[i] = ret_allowed[i] || was_known(contents, &hashes[i]);
    }
    return CADRE_OK;
}

cadre_status worker_contents_check(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT bool *may = calloc(count + 1, sizeof *may);
    if (may == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory to look for contents");
    }
    CADRE_TRY(worker_contents_allowed(daemon, worker, hashes, count, may, error));
    for (size_t i = 0; i < count; i++) {
        bool unreferenced = daemon->content_references != NULL &&
                            !content_references_has(daemon->content_references, &hashes[i]) &&
                            contents_is_older(daemon->contents, &hashes[i], daemon->started_us);
        if (!may[i] && !unreferenced) {
            char hex[SHA256_HEX_BYTES];
            sha256_hex(&hashes[i], hex);
            return cadre_error_set(error, CADRE_PERMISSION_DENIED,
                "the checkpoint names the content %s, which worker \"%s\" did not upload and no "
                "job there references",
                hex, worker);
        }
    }
    return CADRE_OK;
}

void worker_contents_close(struct worker_contents *contents)
{
    while (contents != NULL) {
        struct worker_contents *next = contents->next;
        content_refcounts_free(&contents->newer);
        content_refcounts_free(&contents->older);
        free(contents);
        contents = next;
    }
}
