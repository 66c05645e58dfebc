/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <stdlib.h>

#include "common/pure/assert.h"

static bool before(const struct happening *a, const struct happening *b)
{
    if (a->at_us != b->at_us) {
        return a->at_us < b->at_us;
    }
    return a->serial < b->serial;
}

void queue_put(struct queue *queue, const struct happening *happening)
{
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity == 0 ? 4096 : 2 * queue->capacity;
        queue->items = realloc(queue->items, queue->capacity * sizeof(*queue->items));
        CADRE_ASSERT(queue->items != NULL);
    }
    struct happening added = *happening;
    added.serial = queue->serial++;
    size_t at = queue->count++;
    while (at > 0 && before(&added, &queue->items[(at - 1) / 4])) {
        queue->items[at] = queue->items[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    queue->items[at] = added;
}

static size_t first_child(const struct queue *queue, size_t at)
{
    size_t best = 4 * at + 1;
    for (size_t child = best + 1; child < 4 * at + 5 && child < queue->count; child++) {
        if (before(&queue->items[child], &queue->items[best])) {
            best = child;
        }
    }
    return best;
}

bool queue_take(struct queue *queue, struct happening *ret_happening)
{
    if (queue->count == 0) {
        return false;
    }
    *ret_happening = queue->items[0];
    struct happening last = queue->items[--queue->count];
    size_t at = 0;
    while (4 * at + 1 < queue->count) {
        size_t child = first_child(queue, at);
        if (!before(&queue->items[child], &last)) {
            break;
        }
        queue->items[at] = queue->items[child];
        at = child;
    }
    if (queue->count > 0) {
        queue->items[at] = last;
    }
    return true;
}

void queue_free(struct queue *queue)
{
    free(queue->items);
    *queue = (struct queue){0};
}
