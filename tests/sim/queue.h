/* SPDX-License-Identifier: Apache-2.0
 * Future events, ordered by (time, serial): equal instants happen in the order in which they were
 * planned. */
#ifndef CADRE_SIM_QUEUE_H
#define CADRE_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message;

/* `a`, `b` and `n` depend on the type. */
struct happening {
    uint64_t at_us;
    uint64_t serial;
    uint64_t n;
    struct message *message; /* one reference, or NULL */
    uint32_t a;
    uint32_t b;
    uint32_t type;
};

struct queue {
    struct happening *items;
    size_t count;
    size_t capacity;
    uint64_t serial;
};

/* Takes over the message's reference. */
void queue_put(struct queue *queue, const struct happening *happening);
/* The earliest; false: there is none. */
bool queue_take(struct queue *queue, struct happening *ret_happening);
/* Frees the events, not their messages. */
void queue_free(struct queue *queue);

#endif
