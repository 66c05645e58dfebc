/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/ps/closure_queue.h"

#include "common/pure/assert.h"

static void list_init(struct closure_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static void list_add(struct closure_list *list, struct closure *closure)
{
    closure->next = NULL;
    *list->last = closure;
    list->last = &closure->next;
}

static struct closure *list_take(struct closure_list *list)
{
    struct closure *closure = list->first;
    if (closure != NULL) {
        list->first = closure->next;
        list->last = list->first == NULL ? &list->first : list->last;
        closure->next = NULL;
    }
    return closure;
}

void closure_queue_init(
    struct closure_queue *queue, struct closure_list *tagged, uint32_t workers, size_t capacity)
{
    CADRE_ASSERT(capacity > 0);
    *queue = (struct closure_queue){.tagged = tagged, .workers = workers, .capacity = capacity};
    list_init(&queue->ready);
    for (uint32_t i = 0; i < workers; i++) {
        list_init(&tagged[i]);
    }
}

bool closure_queue_full(const struct closure_queue *queue)
{
    return queue->queued >= queue->capacity && queue->failed == NULL;
}

static void closure_queue_enqueue(struct closure_queue *queue, struct closure *closure)
{
    closure->state = CLOSURE_QUEUED;
    if (closure->tag != CLOSURE_ANY) {
        CADRE_ASSERT(closure->tag < queue->workers);
        list_add(&queue->tagged[closure->tag], closure);
    } else {
        list_add(&queue->ready, closure);
        queue->queued++;
    }
}

void closure_queue_put(struct closure_queue *queue, struct closure *closure)
{
    CADRE_ASSERT(closure->state == CLOSURE_NEW);
    closure_queue_enqueue(queue, closure);
}

struct closure *closure_queue_get(struct closure_queue *queue, uint32_t worker)
{
    struct closure *closure = worker < queue->workers ? list_take(&queue->tagged[worker]) : NULL;
    if (closure == NULL && queue->failed == NULL) {
        closure = list_take(&queue->ready);
        if (closure != NULL) {
            queue->queued--;
            queue->running++;
        }
    }
    if (closure != NULL) {
        closure->state = CLOSURE_RUNNING;
    }
    return closure;
}

static void closure_queue_leave(
    struct closure_queue *queue, struct closure *closure, enum closure_state state)
{
    CADRE_ASSERT(closure->state == CLOSURE_RUNNING);
    closure->state = state;
    if (closure->tag == CLOSURE_ANY) {
        CADRE_ASSERT(queue->running > 0);
        queue->running--;
    }
}

void closure_queue_done(struct closure_queue *queue, struct closure *closure)
{
    closure_queue_leave(queue, closure, CLOSURE_DONE);
}

void closure_queue_fail(struct closure_queue *queue, struct closure *closure)
{
    closure_queue_leave(queue, closure, CLOSURE_FAILED);
    if (closure->tag == CLOSURE_ANY && queue->failed == NULL) {
        queue->failed = closure;
        queue->cancelling = true;
    }
}

bool closure_queue_put_back(struct closure_queue *queue, struct closure *closure)
{
    bool again = queue->failed == NULL || closure->tag != CLOSURE_ANY;
    closure_queue_leave(queue, closure, CLOSURE_CANCELLED);
    if (again) {
        closure_queue_enqueue(queue, closure);
    }
    return again;
}

void closure_queue_cancel(
    struct closure_queue *queue, void (*cancelled)(struct closure *closure, void *user), void *user)
{
    struct closure *closure;
    while ((closure = list_take(&queue->ready)) != NULL) {
        queue->queued--;
        closure->state = CLOSURE_CANCELLED;
        cancelled(closure, user);
    }
}

const struct closure *closure_queue_settle(struct closure_queue *queue,
    void (*cancelled)(struct closure *closure, void *user), void *user, bool *ret_wait)
{
    const struct closure *failed = queue->failed;
    *ret_wait = failed != NULL && queue->running > 0;
    if (failed == NULL || *ret_wait) {
        return NULL;
    }
    closure_queue_cancel(queue, cancelled, user);
    queue->failed = NULL;
    queue->cancelling = false;
    return failed;
}

bool closure_queue_idle(const struct closure_queue *queue)
{
    return queue->queued == 0 && queue->running == 0;
}
