/* SPDX-License-Identifier: Apache-2.0
 * Answers that were made lately: many browsers that ask the same each second cost as much as one.
 */
#ifndef CADRE_COORDINATOR_PAGES_ANSWER_CACHE_H
#define CADRE_COORDINATOR_PAGES_ANSWER_CACHE_H

#include <stdint.h>

#include "common/http/response.h"

#define ANSWER_KEY_BYTES 256

struct answer_cache;

/* The answer kept under the key, if it is still good at `now_us`; it is borrowed. NULL: there is
 * none. *cache is NULL at first. */
struct http_response *answer_cache_find(
    const struct answer_cache *cache, const char *key, uint64_t now_us);

/* Keeps the answer with a reference of its own, in the place of the one that is good for the
 * shortest time. Without memory it is not kept, nor where it is very large. */
void answer_cache_keep(struct answer_cache **cache, const char *key, struct http_response *response,
    uint64_t good_until_us);

/* Accepts NULL. */
void answer_cache_close(struct answer_cache *cache);

#endif
