/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/pages/answer_cache.h"

#include <stdlib.h>
#include <string.h>

#define ANSWERS   64
#define BYTES_MAX ((size_t)32 * 1024 * 1024) /* of all together */

struct kept_answer {
    struct http_response *response; /* NULL: the entry is free */
    uint64_t good_until_us;
    char key[ANSWER_KEY_BYTES];
};

struct answer_cache {
    struct kept_answer answers[ANSWERS];
    size_t bytes;
};

struct http_response *answer_cache_find(
    const struct answer_cache *cache, const char *key, uint64_t now_us)
{
    for (size_t i = 0; cache != NULL && i < ANSWERS; i++) {
        const struct kept_answer *kept = &cache->answers[i];
        if (kept->response != NULL && now_us < kept->good_until_us && strcmp(kept->key, key) == 0) {
            return kept->response;
        }
    }
    return NULL;
}

static void drop_answer(struct answer_cache *cache, struct kept_answer *kept)
{
    if (kept->response != NULL) {
        cache->bytes -= http_response_bytes(kept->response);
        http_response_release(kept->response);
        *kept = (struct kept_answer){0};
    }
}

/* Drops those that are good for the shortest time until the others leave room for so many. */
static void make_room(struct answer_cache *cache, size_t bytes)
{
    while (cache->bytes + bytes > BYTES_MAX) {
        struct kept_answer *oldest = NULL;
        for (size_t i = 0; i < ANSWERS; i++) {
            struct kept_answer *kept = &cache->answers[i];
            if (kept->response != NULL &&
                (oldest == NULL || kept->good_until_us < oldest->good_until_us)) {
                oldest = kept;
            }
        }
        drop_answer(cache, oldest);
    }
}

static struct kept_answer *entry_for(struct answer_cache *cache, const char *key)
{
    struct kept_answer *chosen = &cache->answers[0];
    for (size_t i = 0; i < ANSWERS; i++) {
        struct kept_answer *kept = &cache->answers[i];
        if (kept->response != NULL && strcmp(kept->key, key) == 0) {
            return kept;
        }
        chosen = kept->good_until_us < chosen->good_until_us ? kept : chosen;
    }
    return chosen;
}

void answer_cache_keep(struct answer_cache **cache, const char *key, struct http_response *response,
    uint64_t good_until_us)
{
    if (*cache == NULL) {
        *cache = calloc(1, sizeof **cache);
    }
    size_t bytes = http_response_bytes(response);
    if (*cache == NULL || bytes > BYTES_MAX) {
        return;
    }
    struct kept_answer *kept = entry_for(*cache, key);
    drop_answer(*cache, kept);
    make_room(*cache, bytes);
    (*cache)->bytes += bytes;
    kept->response = http_response_share(response);
    kept->good_until_us = good_until_us;
    memmove(kept->key, key, strlen(key) + 1);
}

void answer_cache_close(struct answer_cache *cache)
{
    for (size_t i = 0; cache != NULL && i < ANSWERS; i++) {
        http_response_release(cache->answers[i].response);
    }
    free(cache);
}
