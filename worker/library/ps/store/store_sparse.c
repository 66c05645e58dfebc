/* SPDX-License-Identifier: Apache-2.0
 * Pushes of rows by number: sorted, so that each row is changed once, in the same order each time
 * that the push is sent. The progress counts elements of these rows. Called by store_push.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

/* ---- order ---- */

static bool scratch_ready(struct thread_scratch *scratch, size_t rows)
{
    if (rows <= scratch->room) {
        return true;
    }
    free(scratch->rows);
    free(scratch->other);
    scratch->rows = calloc(rows, sizeof *scratch->rows);
    scratch->other = calloc(rows, sizeof *scratch->other);
    scratch->room = scratch->rows != NULL && scratch->other != NULL ? rows : 0;
    return scratch->room != 0;
}

/* By one digit; equal ones stay in their order. */
static void sort_by(
    const struct sparse_row *from, struct sparse_row *to, size_t count, unsigned shift)
{
    size_t bucket_starts[DIGITS + 1] = {0};
    for (size_t i = 0; i < count; i++) {
        bucket_starts[((from[i].id >> shift) & (DIGITS - 1)) + 1]++;
    }
    for (size_t digit = 0; digit < DIGITS; digit++) {
        bucket_starts[digit + 1] += bucket_starts[digit];
    }
    for (size_t i = 0; i < count; i++) {
        to[bucket_starts[(from[i].id >> shift) & (DIGITS - 1)]++] = from[i];
    }
}

static void store_sparse_sort(
    struct thread_scratch *scratch, const int64_t *ids, size_t count, uint64_t rows)
{
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        scratch->rows[i] = (struct sparse_row){.id = (uint64_t)ids[i], .at = i};
        sorted = sorted && (i == 0 || ids[i - 1] <= ids[i]);
    }
    for (unsigned shift = 0; !sorted && shift < 64 && (rows - 1) >> shift != 0;
         shift += DIGIT_BITS) {
        sort_by(scratch->rows, scratch->other, count, shift);
        struct sparse_row *swap = scratch->rows;
        scratch->rows = scratch->other;
        scratch->other = swap;
    }
}

/* ---- pieces ---- */

struct sparse_push {
    struct store *store;
    struct shard *shard;
    struct pushing *pushing;
    struct thread_scratch *scratch;
    struct change change;
    const char *values;
    size_t count; /* of rows in scratch */
    size_t at;    /* index of the next row */
};

/* The values from element `offset` of the i-th row in order. */
static const void *values_at(const struct sparse_push *sparse, size_t i, uint64_t offset)
{
    uint64_t element = sparse->scratch->rows[i].at * sparse->shard->row_elements + offset;
    return sparse->values + (size_t)element * sparse->shard->element_bytes;
}

/* The index behind all entries of the row that begins at `i`. */
static size_t group_end(const struct sparse_push *sparse, size_t i)
{
    uint64_t id = sparse->scratch->rows[i].id;
    while (i < sparse->count && sparse->scratch->rows[i].id == id) {
        i++;
    }
    return i;
}

/* The sum over entries [i, end) of a row that comes several times. */
static const void *gradient_of(
    const struct sparse_push *sparse, size_t i, size_t end, uint64_t offset, size_t length)
{
    const void *values = values_at(sparse, i, offset);
    if (end - i == 1) {
        return values;
    }
    char *sum = sparse->scratch->sum;
    memcpy(sum, values, length * sparse->shard->element_bytes);
    for (i++; i < end; i++) {
        sparse->store->isa->add[sparse->shard->spec.dtype](
            sum, values_at(sparse, i, offset), length);
    }
    return sum;
}

static void change_segment(
    const struct sparse_push *sparse, size_t segment, uint64_t offset, size_t length)
{
    struct thread_scratch *scratch = sparse->scratch;
    struct shard *shard = sparse->shard;
    uint64_t start = scratch->starts[segment];
    size_t i = scratch->groups[segment];
    size_t end = scratch->groups[segment + 1];
    if (sparse->pushing->push.contributions != 0) {
        step_touch(shard, start, length);
        for (; i < end; i++) {
            step_sum(sparse->store, shard, start, values_at(sparse, i, offset), length);
        }
        return;
    }
    const void *values = values_at(sparse, end - 1, offset);
    if (sparse->change.kind == PUSH_UPDATE) {
        values = gradient_of(sparse, i, end, offset, length);
        i = end;
    }
    for (; sparse->change.kind != PUSH_ASSIGN && i + 1 < end; i++) {
        change_run(
            sparse->store, shard, &sparse->change, start, values_at(sparse, i, offset), length);
    }
    change_run(sparse->store, shard, &sparse->change, start, values, length);
}

static void change_piece(
    struct sparse_push *sparse, size_t segments, uint64_t offset, size_t length, uint64_t after)
{
    const struct push *push = &sparse->pushing->push;
    struct journal_piece piece = {.shard = sparse->shard,
        .key = {.closure = push->closure, .ordinal = push->ordinal, .shard = push->shard},
        .after = after,
        .sums = push->contributions != 0,
        .starts = sparse->scratch->starts,
        .segments = segments,
        .length = length};
    bool assigns = push->kind == PUSH_ASSIGN;
    pthread_mutex_lock(&sparse->shard->lock);
    if (!assigns) {
        journal_begin(sparse->store, sparse->pushing->thread, &piece, MARK_PIECE);
    }
    for (size_t i = 0; i < segments; i++) {
        change_segment(sparse, i, offset, length);
        store_order_point();
    }
    if (!assigns) {
        journal_commit(sparse->store, sparse->pushing->thread, &piece);
    } else if (push->closure != 0) {
        applied_progress(sparse->store, piece.key, after);
    }
    pthread_mutex_unlock(&sparse->shard->lock);
    sparse->pushing->done = after;
}

/* Whole rows, as many as a piece has, or a part of a larger row. */
static void next_piece(struct sparse_push *sparse)
{
    struct thread_scratch *scratch = sparse->scratch;
    uint64_t wide = sparse->shard->row_elements;
    size_t most = journal_piece_elements(sparse->shard);
    uint64_t offset = sparse->pushing->done % wide;
    size_t length = wide - offset < most ? (size_t)(wide - offset) : most;
    size_t rows = length == wide ? most / length : 1;
    rows = rows < JOURNAL_SEGMENTS ? rows : JOURNAL_SEGMENTS;
    size_t segments = 0;
    size_t at = sparse->at;
    while (segments < rows && at < sparse->count) {
        scratch->starts[segments] = scratch->rows[at].id * wide + offset;
        scratch->groups[segments++] = at;
        at = group_end(sparse, at);
    }
    scratch->groups[segments] = at;
    change_piece(sparse, segments, offset, length, sparse->pushing->done + segments * length);
    if (sparse->pushing->done % wide == 0) {
        sparse->at = at;
    }
}

/* From all of its rows. */
static void add_norms(const struct sparse_push *sparse, struct trust *trust)
{
    struct shard *shard = sparse->shard;
    uint64_t wide = shard->row_elements;
    size_t most = journal_piece_elements(shard);
    for (size_t i = 0; i < sparse->count;) {
        size_t end = group_end(sparse, i);
        for (uint64_t offset = 0; offset < wide; offset += most) {
            size_t length = wide - offset < most ? (size_t)(wide - offset) : most;
            const void *gradient = gradient_of(sparse, i, end, offset, length);
            pthread_mutex_lock(&shard->lock);
            trust_add(shard, sparse->pushing->count, sparse->scratch->rows[i].id * wide + offset,
                gradient, length, trust);
            pthread_mutex_unlock(&shard->lock);
        }
        i = end;
    }
}

/* False: no memory. */
static bool sort_rows(struct sparse_push *sparse)
{
    const struct push *push = &sparse->pushing->push;
    if (!scratch_ready(sparse->scratch, sparse->count)) {
        return false;
    }
    store_sparse_sort(sparse->scratch, push->ids, sparse->count, sparse->shard->spec.rows);
    return true;
}

static struct sparse_push sparse_of(
    struct store *store, struct shard *shard, struct pushing *pushing, const void *values)
{
    return (struct sparse_push){.store = store,
        .shard = shard,
        .pushing = pushing,
        .scratch = store->scratch[pushing->thread],
        .values = values,
        .count = shard->row_elements == 0 ? 0 : (size_t)pushing->push.rows};
}

bool sparse_norms(struct store *store, struct shard *shard, struct pushing *pushing,
    const void *values, struct trust *trust)
{
    struct sparse_push sparse = sparse_of(store, shard, pushing, values);
    if (sparse.count != 0 && !sort_rows(&sparse)) {
        return false;
    }
    add_norms(&sparse, trust);
    return true;
}

cadre_status store_push_rows(
    struct store *store, struct pushing *pushing, const void *values, struct cadre_error *error)
{
    const struct push *push = &pushing->push;
    struct shard *shard = store_shard(store, push->shard);
    CADRE_ASSERT(push->sparse && !pushing->applied);
    struct sparse_push sparse = sparse_of(store, shard, pushing, values);
    size_t count = sparse.count;
    if (count != 0) {
        if (!sort_rows(&sparse)) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "ps has no memory to sort %zu rows of `%s`", count, shard->spec.name);
        }
        if (store_push_is_one(store, push) && pushing->trust == 0) {
            struct trust trust = {0};
            add_norms(&sparse, &trust);
            trust_keep(store, pushing, store_trust(&trust.norms));
        }
        for (uint64_t row = 0; row < pushing->done / shard->row_elements && sparse.at < count;
             row++) {
            sparse.at = group_end(&sparse, sparse.at);
        }
    }
    sparse.change = change_of(shard, push->kind, push->rate, pushing->count, pushing->trust);
    while (sparse.at < count) {
        next_piece(&sparse);
    }
    pushing->rows_done = push->rows;
    return CADRE_OK;
}
