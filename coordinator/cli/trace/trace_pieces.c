/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/trace/trace_pieces.h"

#include <stdlib.h>

#define DEPTH_MAX 32

void trace_pieces_free(struct trace_pieces *pieces)
{
    free(pieces->items);
    free(pieces->lanes);
    *pieces = (struct trace_pieces){0};
}

static bool add_piece(struct trace_pieces *pieces, const struct trace_piece *piece)
{
    if (piece->end_ns <= piece->begin_ns) {
        return true;
    }
    if (pieces->count == pieces->capacity) {
        size_t capacity = pieces->capacity * 2 + 256;
        struct trace_piece *grown = realloc(pieces->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        pieces->items = grown;
        pieces->capacity = capacity;
    }
    pieces->items[pieces->count++] = *piece;
    pieces->lanes[pieces->lane_count - 1].count++;
    return true;
}

static bool add_lane(struct trace_pieces *pieces, uint32_t process, uint32_t replica)
{
    if (pieces->lane_count == pieces->lane_capacity) {
        size_t capacity = pieces->lane_capacity * 2 + 16;
        struct trace_lane *grown = realloc(pieces->lanes, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        pieces->lanes = grown;
        pieces->lane_capacity = capacity;
    }
    pieces->lanes[pieces->lane_count++] =
        (struct trace_lane){.process = process, .replica = replica, .first = pieces->count};
    return true;
}

/* What a moment in this span is, outside of those that it contains. */
static enum trace_split part_of(const struct stored_span *span, bool waits)
{
    switch (span->kind) {
    case CADRE_TRACE_INPUT:
        return TRACE_SPLIT_INPUT;
    case CADRE_TRACE_FUNCTION:
        return TRACE_SPLIT_FUNCTION;
    case CADRE_TRACE_RELEASE:
        return waits ? TRACE_SPLIT_WAIT : TRACE_SPLIT_RELEASE;
    case CADRE_TRACE_APPLY:
        return TRACE_SPLIT_APPLY;
    case CADRE_TRACE_CHECKPOINT:
        return TRACE_SPLIT_CHECKPOINT;
    case CADRE_TRACE_REGROUP:
        return TRACE_SPLIT_REGROUP;
    case CADRE_TRACE_PULL:
        return TRACE_SPLIT_PULL;
    case CADRE_TRACE_PUSH:
        return TRACE_SPLIT_PUSH;
    case CADRE_TRACE_SCHEDULE:
        return TRACE_SPLIT_SCHEDULE;
    case CADRE_TRACE_WAIT:
        return waits ? TRACE_SPLIT_WAIT : TRACE_SPLIT_CLOSURES;
    default:
        break;
    }
    if (trace_is_collective(span->kind)) {
        return waits ? TRACE_SPLIT_WAIT : TRACE_SPLIT_TRANSFER;
    }
    return TRACE_SPLIT_LIBRARY;
}

/* [begin_ns, end_ns) of the span, in which it contains no other: until until_ns it waits. */
static bool cut(
    struct trace_pieces *pieces, const struct stored_span *span, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t wait_ns = span->until_ns < begin_ns ? begin_ns
                       : span->until_ns < end_ns ? span->until_ns
                                                 : end_ns;
    return add_piece(pieces, &(struct trace_piece){.begin_ns = begin_ns,
                                 .end_ns = wait_ns,
                                 .step = span->step,
                                 .part = part_of(span, true)}) &&
           add_piece(pieces, &(struct trace_piece){.begin_ns = wait_ns,
                                 .end_ns = end_ns,
                                 .step = span->step,
                                 .part = part_of(span, false)});
}

/* The spans of one lane are in order: those around others come first. */
static bool cut_lane(struct trace_pieces *pieces, const struct stored_span *spans, size_t count)
{
    const struct stored_span *open[DEPTH_MAX];
    size_t depth = 0;
    uint64_t at_ns = 0; /* all before is cut */
    bool memory = true;
    for (size_t i = 0; i <= count && memory; i++) {
        uint64_t next_ns = i < count ? spans[i].begin_ns : UINT64_MAX;
        while (depth > 0 && open[depth - 1]->end_ns <= next_ns && memory) {
            const struct stored_span *top = open[--depth];
            memory = cut(pieces, top, at_ns, top->end_ns);
            at_ns = top->end_ns > at_ns ? top->end_ns : at_ns;
        }
        if (depth > 0 && memory) {
            memory = cut(pieces, open[depth - 1], at_ns, next_ns);
        }
        if (i < count && depth < DEPTH_MAX) {
            at_ns = next_ns > at_ns ? next_ns : at_ns;
            open[depth++] = &spans[i];
        }
    }
    return memory;
}

bool trace_pieces_make(const struct trace_store *store, struct trace_pieces *ret_pieces)
{
    bool memory = true;
    *ret_pieces = (struct trace_pieces){0};
    for (size_t i = 0, next = 0; i < store->span_count && memory; i = next) {
        const struct stored_span *first = &store->spans[i];
        next = i;
        while (next < store->span_count && store->spans[next].process == first->process &&
               store->spans[next].replica == first->replica &&
               store->spans[next].thread == first->thread) {
            next++;
        }
        if (first->thread == CADRE_TRACE_REPLICA) {
            memory = add_lane(ret_pieces, first->process, first->replica) &&
                     cut_lane(ret_pieces, first, next - i);
        }
    }
    return memory;
}

const struct trace_lane *trace_pieces_lane(
    const struct trace_pieces *pieces, uint32_t process, uint32_t replica)
{
    size_t low = 0;
    size_t high = pieces->lane_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct trace_lane *lane = &pieces->lanes[middle];
        if (lane->process < process || (lane->process == process && lane->replica < replica)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct trace_lane *lane = low < pieces->lane_count ? &pieces->lanes[low] : NULL;
    return lane != NULL && lane->process == process && lane->replica == replica ? lane : NULL;
}

/* The index of the first piece of the lane that ends behind `at_ns`. */
static size_t piece_behind(
    const struct trace_pieces *pieces, const struct trace_lane *lane, uint64_t at_ns)
{
    size_t low = lane->first;
    size_t high = lane->first + lane->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pieces->items[middle].end_ns <= at_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void trace_pieces_between(const struct trace_pieces *pieces, const struct trace_lane *lane,
    uint64_t begin_ns, uint64_t end_ns, double split[TRACE_SPLITS])
{
    double known = 0;
    if (end_ns <= begin_ns) {
        return;
    }
    for (size_t i = piece_behind(pieces, lane, begin_ns);
         i < lane->first + lane->count && pieces->items[i].begin_ns < end_ns; i++) {
        const struct trace_piece *piece = &pieces->items[i];
        uint64_t from_ns = piece->begin_ns > begin_ns ? piece->begin_ns : begin_ns;
        uint64_t to_ns = piece->end_ns < end_ns ? piece->end_ns : end_ns;
        split[piece->part] += (double)(to_ns - from_ns);
        known += (double)(to_ns - from_ns);
    }
    split[TRACE_SPLIT_PROGRAM] += (double)(end_ns - begin_ns) - known;
}
