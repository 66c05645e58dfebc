/* SPDX-License-Identifier: Apache-2.0
 * What is sent once an entry of the shared log is stored: messages, answers and notices, each as it
 * was when it was decided, in the order in which they were. engine/send.c adds, engine/turn.c
 * sends. */
#ifndef CADRE_COORDINATOR_ENGINE_DELAYED_H
#define CADRE_COORDINATOR_ENGINE_DELAYED_H

#include "common/wire/wire.h"
#include "coordinator/core/core.h"

enum delayed_kind {
    DELAYED_DOWN = 1,  /* to an agent */
    DELAYED_REFUSE,    /* an agent */
    DELAYED_ANSWER,    /* to a client */
    DELAYED_CHANGED,   /* watchers of the job may read it again */
    DELAYED_SUBMITTED, /* readers may see the job */
    DELAYED_ENDED,     /* readers may see the job's end */
    DELAYED_FORGOTTEN, /* the job's files may go */
    DELAYED_DROPPED    /* those of a checkpoint of it may */
};

struct delayed_item {
    enum delayed_kind kind;
    uint64_t entry; /* of the log, that it waits for */
    union {
        struct link_id link; /* of DOWN and REFUSE */
        struct call_id call; /* of ANSWER */
    };
    struct job_id job; /* of ANSWER and the notices */
    cadre_status code;
    uint32_t queued_before;
    uint8_t *bytes; /* a packed agent_down, a text, a checkpoint; owned; NULL: none */
    size_t size;
};

/* {0} is an empty one. The items wait for entries in rising order. */
struct delayed {
    struct delayed_item *items; /* a ring */
    size_t first;
    size_t count;
    size_t capacity; /* a power of two, or 0 */
};

/* Takes a copy of `size` bytes; item->bytes and item->size are ignored. item->entry is at least
 * that of the item before. false: no memory, and nothing was added. */
bool delayed_add(
    struct delayed *delayed, const struct delayed_item *item, const void *bytes, size_t size);
/* Removes the oldest item, if the entry that it waits for is among the first `stored`: its bytes
 * are then the caller's to free. */
bool delayed_take(struct delayed *delayed, uint64_t stored, struct delayed_item *ret_item);
/* The i-th item from the oldest one on, from 0; NULL: there are not so many. */
const struct delayed_item *delayed_at(const struct delayed *delayed, size_t i);
void delayed_free(struct delayed *delayed);

#endif
