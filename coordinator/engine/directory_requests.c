/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/directory_requests.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "coordinator/engine/directory.h"

#define CAPACITY_MIN 64

/* Where the search for an id begins. Clients draw ids, so their bits are mixed. */
static size_t home_of(
    const struct directory_requests *requests, const uint8_t id[LIMIT_REQUEST_ID_BYTES])
{
    uint64_t halves[2];
    memcpy(halves, id, sizeof halves);
    return (size_t)prng_mix(halves[0] ^ prng_mix(halves[1])) & (requests->capacity - 1);
}

static size_t after(const struct directory_requests *requests, size_t slot)
{
    return (slot + 1) & (requests->capacity - 1);
}

static void put(struct directory_requests *requests, struct directory_entry *entry)
{
    size_t slot = home_of(requests, entry->spec.request_id);
    while (requests->slots[slot] != NULL) {
        slot = after(requests, slot);
    }
    requests->slots[slot] = entry;
}

cadre_status directory_requests_add(
    struct directory_requests *requests, struct directory_entry *entry, struct cadre_error *error)
{
    if (2 * (requests->count + 1) > requests->capacity) {
        struct directory_requests grown = {.count = requests->count};
        grown.capacity = requests->capacity > 0 ? 2 * requests->capacity : CAPACITY_MIN;
        grown.slots = calloc(grown.capacity, sizeof *grown.slots);
        if (grown.slots == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for the request ids of %zu jobs", requests->count + 1);
        }
        for (size_t i = 0; i < requests->capacity; i++) {
            if (requests->slots[i] != NULL) {
                put(&grown, requests->slots[i]);
            }
        }
        free(requests->slots);
        *requests = grown;
    }
    put(requests, entry);
    requests->count++;
    return CADRE_OK;
}

void directory_requests_remove(
    struct directory_requests *requests, const struct directory_entry *entry)
{
    if (!entry->spec.has_request_id || requests->count == 0) {
        return;
    }
    size_t slot = home_of(requests, entry->spec.request_id);
    while (requests->slots[slot] != NULL && requests->slots[slot] != entry) {
        slot = after(requests, slot);
    }
    if (requests->slots[slot] == NULL) {
        return;
    }
    requests->slots[slot] = NULL;
    requests->count--;
    /* What was put behind it because it was there is put again. */
    for (size_t at = after(requests, slot); requests->slots[at] != NULL; at = after(requests, at)) {
        struct directory_entry *moved = requests->slots[at];
        requests->slots[at] = NULL;
        put(requests, moved);
    }
}

struct directory_entry *directory_requests_find(
    const struct directory_requests *requests, const uint8_t id[LIMIT_REQUEST_ID_BYTES])
{
    if (requests->count == 0) {
        return NULL;
    }
    size_t slot = home_of(requests, id);
    while (requests->slots[slot] != NULL &&
           memcmp(requests->slots[slot]->spec.request_id, id, LIMIT_REQUEST_ID_BYTES) != 0) {
        slot = after(requests, slot);
    }
    return requests->slots[slot];
}

void directory_requests_free(struct directory_requests *requests)
{
    free(requests->slots);
    *requests = (struct directory_requests){0};
}
