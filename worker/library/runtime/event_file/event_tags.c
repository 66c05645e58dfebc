/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/event_file/event_tags.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"

#define SLOTS      2048 /* twice the tags: a search ends soon */
#define ROOM_FIRST 16

_Static_assert(SLOTS >= 2 * EVENT_TAGS_MAX, "there is always an empty slot");
_Static_assert(EVENT_TAGS_MAX < UINT16_MAX, "an index fits a slot");

void event_tags_clear(struct event_tags *tags)
{
    free(tags->list);
    free(tags->slots);
    *tags = (struct event_tags){0};
}

/* FNV-1a. */
static uint32_t event_tags_hash(const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *at = name; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    }
    return hash;
}

static bool event_tags_grow(struct event_tags *tags)
{
    if (tags->slots == NULL) {
        tags->slots = fault_point("event.memory") ? NULL : calloc(SLOTS, sizeof *tags->slots);
    }
    if (tags->slots == NULL || tags->count < tags->room) {
        return tags->slots != NULL;
    }
    uint32_t room = tags->room == 0 ? ROOM_FIRST : tags->room * 2;
    struct event_tag *list =
        fault_point("event.memory") ? NULL : realloc(tags->list, room * sizeof *list);
    if (list != NULL) {
        tags->list = list;
        tags->room = room;
    }
    return list != NULL;
}

/* The slot that has it, or the empty one that would get it. */
static uint32_t event_tags_slot(const struct event_tags *tags, const char *name)
{
    uint32_t slot = event_tags_hash(name) % SLOTS;
    while (tags->slots[slot] != 0 && strcmp(tags->list[tags->slots[slot] - 1].name, name) != 0) {
        slot = (slot + 1) % SLOTS;
    }
    return slot;
}

cadre_status event_tags_find(struct event_tags *tags, const char *name, struct event_tag **ret_tag,
    struct cadre_error *error)
{
    CADRE_ASSERT(strlen(name) < sizeof tags->list->name); /* the caller has checked it */
    uint32_t slot = tags->slots == NULL ? 0 : event_tags_slot(tags, name);
    if (tags->slots != NULL && tags->slots[slot] != 0) {
        *ret_tag = &tags->list[tags->slots[slot] - 1];
        return CADRE_OK;
    }
    if (tags->count == EVENT_TAGS_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "'%s' would be tag number %d of the event files; at most %d are written: use fewer "
            "names",
            name, EVENT_TAGS_MAX + 1, EVENT_TAGS_MAX);
    }
    if (!event_tags_grow(tags)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the tag '%s'", name);
    }
    slot = event_tags_slot(tags, name);
    struct event_tag *tag = &tags->list[tags->count++];
    *tag = (struct event_tag){.waits = false};
    memcpy(tag->name, name, strlen(name) + 1);
    tags->slots[slot] = (uint16_t)tags->count;
    *ret_tag = tag;
    return CADRE_OK;
}

bool event_tag_due(struct event_tag *tag, uint64_t file_bytes, uint64_t now_us)
{
    uint64_t apart_us = file_bytes < EVENT_LARGE_BYTES        ? 0
                        : file_bytes < EVENT_VERY_LARGE_BYTES ? CADRE_US_PER_S / 10
                                                              : CADRE_US_PER_S;
    bool due = tag->written_us == 0 || now_us - tag->written_us >= apart_us;
    tag->written_us = due ? now_us : tag->written_us;
    return due;
}
