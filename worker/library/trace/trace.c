/* SPDX-License-Identifier: Apache-2.0
 * The ring: several threads put, one takes. Each slot has a turn that says whose it is: 2 n before
 * the n-th span of that slot is put, 2 n + 1 until it is taken. A thread claims the head only when
 * its slot is free, so a full ring loses the newest spans, and counts them. */
#include "worker/library/trace/trace.h"

#include <stdlib.h>

#include "common/pure/assert.h"

_Static_assert((TRACE_RING_SPANS & (TRACE_RING_SPANS - 1)) == 0, "a power of two");

struct ring_slot {
    _Atomic uint64_t turn;
    struct trace_span span;
};

atomic_bool trace_records;

static struct ring_slot *_Atomic ring; /* never freed: a thread may be about to put */
static _Atomic uint64_t head;          /* spans that were claimed */
static uint64_t tail;                  /* spans that were taken */
static _Atomic uint64_t lost;
static _Atomic uint64_t current_step;
static _Thread_local uint32_t thread_kind;

void trace_thread_is(enum trace_thread thread)
{
    thread_kind = thread;
}

struct trace_mark trace_mark_now(void)
{
    return (struct trace_mark){.begin_ns = trace_clock_ns(),
        .step = atomic_load_explicit(&current_step, memory_order_relaxed)};
}

uint64_t trace_now(struct trace_mark mark)
{
    return mark.begin_ns != 0 ? trace_clock_ns() : 0;
}

/* The turn of the slot of span `at` while it is free. */
static uint64_t free_turn(uint64_t at)
{
    return at / TRACE_RING_SPANS * 2;
}

static void trace_add(const struct trace_span *span)
{
    struct ring_slot *slots = atomic_load_explicit(&ring, memory_order_acquire);
    if (slots == NULL) {
        return;
    }
    uint64_t at = atomic_load_explicit(&head, memory_order_relaxed);
    for (;;) {
        struct ring_slot *slot = &slots[at % TRACE_RING_SPANS];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn == free_turn(at)) {
            if (atomic_compare_exchange_weak_explicit(
                    &head, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
                slot->span = *span;
                atomic_store_explicit(&slot->turn, turn + 1, memory_order_release);
                return;
            }
        } else if (turn < free_turn(at)) {
            atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
            return; /* what was put there a round ago is not taken yet */
        } else {
            at = atomic_load_explicit(&head, memory_order_relaxed);
        }
    }
}

void trace_put(struct trace_mark mark, enum trace_kind kind, uint32_t replica)
{
    trace_put_collective(mark, kind, replica, 0, 0, 0);
}

void trace_put_collective(struct trace_mark mark, enum trace_kind kind, uint32_t replica,
    uint64_t arrived_ns, uint64_t bytes, uint64_t match)
{
    if (mark.begin_ns == 0) {
        return;
    }
    const struct trace_span span = {.kind = kind,
        .thread = thread_kind,
        .replica = replica,
        .step = mark.step,
        .begin_ns = mark.begin_ns,
        .end_ns = trace_clock_ns(),
        .arrived_ns = arrived_ns,
        .bytes = bytes,
        .match = match};
    CADRE_ASSERT(span.begin_ns <= span.end_ns); /* a monotonic clock */
    trace_add(&span);
}

bool trace_open(void)
{
    struct trace_span dropped[64];
    if (atomic_load(&ring) == NULL) {
        struct ring_slot *made = calloc(TRACE_RING_SPANS, sizeof *made);
        if (made == NULL) {
            return false;
        }
        atomic_store(&ring, made);
    }
    while (trace_take(dropped, 64) > 0) {
        /* of a trace before */
    }
    return true;
}

void trace_set(bool records, uint64_t step)
{
    atomic_store_explicit(&current_step, step, memory_order_relaxed);
    atomic_store_explicit(&trace_records, records, memory_order_relaxed);
}

size_t trace_take(struct trace_span *ret_spans, size_t max)
{
    struct ring_slot *slots = atomic_load(&ring);
    size_t count = 0;
    while (slots != NULL && count < max) {
        struct ring_slot *slot = &slots[tail % TRACE_RING_SPANS];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn != free_turn(tail) + 1) {
            break; /* none is there, or its thread is about to write it */
        }
        ret_spans[count++] = slot->span;
        atomic_store_explicit(&slot->turn, turn + 1, memory_order_release);
        tail++;
    }
    return count;
}

uint64_t trace_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}
