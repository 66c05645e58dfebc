/* SPDX-License-Identifier: Apache-2.0
 * The tags of a task's events, and how often each is written: always at first, at most ten times a
 * second when the file has become large, once a second when it has become very large. A scalar that
 * is not written waits, and the next one of its tag replaces it. */
#ifndef CADRE_RUNTIME_EVENT_FILE_EVENT_TAGS_H
#define CADRE_RUNTIME_EVENT_FILE_EVENT_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/limits.h"

#define EVENT_TAGS_MAX         1024
#define EVENT_LARGE_BYTES      (UINT64_C(16) << 20)
#define EVENT_VERY_LARGE_BYTES (UINT64_C(64) << 20)

struct event_tag {
    char name[LIMIT_NAME_BYTES];
    uint64_t written_us; /* monotonic; 0: never */
    bool waits;          /* a scalar does: */
    uint64_t step;
    uint64_t wall_us;
    double value;
};

/* {0} is empty. */
struct event_tags {
    struct event_tag *list; /* owned; [count] */
    uint32_t count;
    uint32_t room;
    uint16_t *slots; /* owned; index + 1 of a tag, by the hash of its name */
};

/* Frees what it owns. */
void event_tags_clear(struct event_tags *tags);

/* The tag of that name (event_tags.list, valid until the next call), added when it is new.
 * RESOURCE_EXHAUSTED: there are EVENT_TAGS_MAX others, or there is no memory. */
cadre_status event_tags_find(struct event_tags *tags, const char *name, struct event_tag **ret_tag,
    struct cadre_error *error);

/* Whether a value of the tag is to be written into a file of so many bytes; then it counts as
 * written. */
bool event_tag_due(struct event_tag *tag, uint64_t file_bytes, uint64_t now_us);

#endif
