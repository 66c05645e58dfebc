/* SPDX-License-Identifier: Apache-2.0
 * Jobs by the request id that their client drew: a hash table of entries of the directory. */
#ifndef CADRE_ENGINE_DIRECTORY_REQUESTS_H
#define CADRE_ENGINE_DIRECTORY_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/limits.h"

struct directory_entry;

/* Zeroed: empty. Open addressing, linear probing, at most half full. */
struct directory_requests {
    struct directory_entry **slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* The entry has an id; of two with the same, either is found. */
cadre_status directory_requests_add(
    struct directory_requests *requests, struct directory_entry *entry, struct cadre_error *error);

/* Nothing for an entry that is not in it. */
void directory_requests_remove(
    struct directory_requests *requests, const struct directory_entry *entry);

/* NULL: none has this id. */
struct directory_entry *directory_requests_find(
    const struct directory_requests *requests, const uint8_t id[LIMIT_REQUEST_ID_BYTES]);

/* Frees the table; the entries and the struct are the caller's. */
void directory_requests_free(struct directory_requests *requests);

#endif
