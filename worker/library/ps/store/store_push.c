/* SPDX-License-Identifier: Apache-2.0
 * Pushes: what is admitted, dense blocks, the end. Called by server_push.c. */
#include <inttypes.h>
#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

/* ---- begin ---- */

cadre_status push_check_kind(
    const struct shard *shard, const struct push *push, struct cadre_error *error)
{
    if (push->kind < PUSH_UPDATE || push->kind > PUSH_ASSIGN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            SHARD_TEXT ": there is no kind of push %u", SHARD_ARGS(shard), (unsigned)push->kind);
    }
    if (push->kind == PUSH_UPDATE && shard_rule(shard)->kind == OPTIMIZER_NONE) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "`%s` has no optimizer; build one for it, or assign or add to it instead",
            shard->spec.name);
    }
    if (push->kind != PUSH_ASSIGN && shard->spec.dtype == CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s` is of bool: it can be assigned, not added to", shard->spec.name);
    }
    bool waits = push->contributions != 0 && isnan(push->trust);
    if (trust_is_wanted(shard, push->kind) && !(push->trust >= 0) && !waits) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            SHARD_TEXT " is a part of what LAMB updates, and is pushed to without the ratio of the "
                       "norms of all of it; the optimizer may have come just now: push it again",
            SHARD_ARGS(shard));
    }
    if (push->kind == PUSH_UPDATE && isinf(push->rate)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s`: the rate is infinite; it has to be a number", shard->spec.name);
    }
    if (push->closure == UINT64_MAX ||
        (push->contributions != 0 && (push->closure == 0 || push->kind == PUSH_ASSIGN))) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s`: a synchronous push updates, adds or subtracts, and is a closure's; this one is "
            "of kind %u and closure %" PRIu64,
            shard->spec.name, (unsigned)push->kind, push->closure);
    }
    return CADRE_OK;
}

cadre_status push_check_rows(
    const struct shard *shard, const struct push *push, struct cadre_error *error)
{
    uint64_t rows = shard->spec.rows;
    if (!push->sparse) {
        if (push->first_row <= rows && push->rows <= rows - push->first_row) {
            return CADRE_OK;
        }
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            SHARD_TEXT " has %" PRIu64 " rows, and %" PRIu64 " from row %" PRIu64 " on were pushed",
            SHARD_ARGS(shard), rows, push->rows, push->first_row);
    }
    for (uint64_t i = 0; i < push->rows; i++) {
        if ((uint64_t)push->ids[i] >= rows) { /* negative ones are too */
            return cadre_error_set(error, CADRE_OUT_OF_RANGE,
                SHARD_TEXT " has %" PRIu64 " rows, and row %" PRId64 " was pushed",
                SHARD_ARGS(shard), rows, push->ids[i]);
        }
    }
    return CADRE_OK;
}

static cadre_status check_staleness(
    const struct shard *shard, const struct push *push, struct cadre_error *error)
{
    uint64_t version = atomic_load(&shard->kept->version);
    if (push->based_on == PUSH_ANY_VERSION || version <= push->based_on ||
        version - push->based_on <= push->staleness) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_ABORTED,
        SHARD_TEXT " has version %" PRIu64 ", %" PRIu64 " pushes after the %" PRIu64
                   " that this one is based on, and %" PRIu64
                   " may lie between; read it again and push what comes of that",
        SHARD_ARGS(shard), version, version - push->based_on, push->based_on, push->staleness);
}

/* A push that was begun before goes on. */
static cadre_status store_push_resume(struct store *store, struct shard *shard,
    const struct push_progress *progress, struct pushing *pushing, struct cadre_error *error)
{
    const struct push *push = &pushing->push;
    uint64_t elements = push->rows * shard->row_elements;
    if (progress->done > elements || progress->synchronous != (push->contributions != 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            SHARD_TEXT ": push %u of closure %" PRIu64 " was begun with other rows; a closure has "
                       "to make the same pushes in the same order each time it runs",
            SHARD_ARGS(shard), push->ordinal, push->closure);
    }
    CADRE_TRY(applied_claim(store, push_key_of(push), progress, error));
    pushing->done = progress->done;
    pushing->count = progress->count;
    pushing->trust = progress->trust;
    if (progress->done != 0 && progress->trust == 0) {
        pushing->trust = 1; /* not LAMB's ratio, which is kept first; or the memory is wrong */
    } else if (progress->trust == 0 && push->trust > 0) {
        trust_keep(store, pushing, push->trust);
    }
    pushing->rows_done = shard->row_elements == 0 ? 0 : progress->done / shard->row_elements;
    return CADRE_OK;
}

static cadre_status begin_new(
    struct store *store, struct shard *shard, struct pushing *pushing, struct cadre_error *error)
{
    const struct push *push = &pushing->push;
    bool synchronous = push->contributions != 0;
    CADRE_TRY(push_check_rows(shard, push, error));
    if (step_is_passed(shard, push)) {
        pushing->applied = true;
        return CADRE_OK;
    }
    CADRE_TRY(synchronous ? store_step_admit(store, shard, push, error)
                          : check_staleness(shard, push, error));
    bool updates = push->kind == PUSH_UPDATE && !synchronous;
    pushing->count = updates ? atomic_load(&shard->kept->updates) + 1 : 0;
    pushing->trust = updates && push->trust > 0 ? push->trust : 0;
    if (push->closure != 0) {
        struct push_progress progress = {
            .count = pushing->count, .trust = pushing->trust, .synchronous = synchronous};
        CADRE_TRY(applied_claim(store, push_key_of(push), &progress, error));
    }
    store_order_point();
    if (updates) {
        atomic_store_explicit(&shard->kept->updates, pushing->count, memory_order_release);
    }
    shard->begun += synchronous;
    return CADRE_OK;
}

static cadre_status store_push_admit(
    struct store *store, struct shard *shard, struct pushing *pushing, struct cadre_error *error)
{
    struct push_progress progress = {0};
    enum push_state state = pushing->push.closure == 0
                                ? PUSH_NEW
                                : applied_find(store, push_key_of(&pushing->push), &progress);
    switch (state) {
    case PUSH_WHOLE:
        pushing->applied = true;
        pushing->trust = progress.trust;
        return CADRE_OK;
    case PUSH_ACTIVE:
        return CADRE_PENDING;
    case PUSH_BEGUN:
        CADRE_TRY(push_check_rows(shard, &pushing->push, error));
        return store_push_resume(store, shard, &progress, pushing, error);
    default:
        return begin_new(store, shard, pushing, error);
    }
}

cadre_status store_push_begin(struct store *store, uint32_t thread, const struct push *push,
    struct pushing *ret_pushing, struct cadre_error *error)
{
    *ret_pushing = (struct pushing){.push = *push, .thread = thread};
    if (push->shard >= store_count(store)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "ps has %u shards, and shard number %u was pushed", store_count(store), push->shard);
    }
    struct shard *shard = store_shard(store, push->shard);
    CADRE_TRY(push_check_kind(shard, push, error));
    CADRE_TRY(journal_ready(store, thread, error));
    pthread_mutex_lock(&shard->lock);
    cadre_status status = store_push_admit(store, shard, ret_pushing, error);
    pthread_mutex_unlock(&shard->lock);
    return status;
}

/* ---- dense blocks ---- */

static void dense_piece(struct store *store, struct shard *shard, struct pushing *pushing,
    const struct change *change, const void *values, size_t length)
{
    const struct push *push = &pushing->push;
    uint64_t start = push->first_row * shard->row_elements + pushing->done;
    struct journal_piece piece = {.shard = shard,
        .key = push_key_of(push),
        .after = pushing->done + length,
        .sums = push->contributions != 0,
        .starts = &start,
        .segments = 1,
        .length = length};
    pthread_mutex_lock(&shard->lock);
    if (push->kind == PUSH_ASSIGN) { /* the same when done again: no old values to put back */
        change_run(store, shard, change, start, values, length);
        store_order_point();
        if (push->closure != 0) {
            applied_progress(store, piece.key, piece.after);
        }
    } else {
        journal_begin(store, pushing->thread, &piece, MARK_PIECE);
        if (piece.sums) {
            step_touch(shard, start, length);
            step_sum(store, shard, start, values, length);
        } else {
            change_run(store, shard, change, start, values, length);
        }
        journal_commit(store, pushing->thread, &piece);
    }
    pthread_mutex_unlock(&shard->lock);
    pushing->done += length;
}

void trust_keep(struct store *store, struct pushing *pushing, double trust)
{
    const struct push *push = &pushing->push;
    pushing->trust = trust;
    if (push->closure != 0) {
        store_order_point();
        applied_trust(store, push_key_of(push), pushing->trust);
        store_order_point();
    }
}

bool store_push_is_one(const struct store *store, const struct push *push)
{
    return push->contributions == 0 && push->trust == 0 &&
           trust_is_wanted(store_shard(store, push->shard), push->kind);
}

void dense_norms(
    struct shard *shard, const struct pushing *pushing, const void *values, struct trust *trust)
{
    uint64_t first = pushing->push.first_row * shard->row_elements;
    uint64_t total = pushing->push.rows * shard->row_elements;
    size_t most = journal_piece_elements(shard);
    while (trust->index < total) {
        uint64_t at = trust->index;
        size_t length = total - at < most ? (size_t)(total - at) : most;
        pthread_mutex_lock(&shard->lock);
        trust_add(shard, pushing->count, first + at,
            (const char *)values + (size_t)at * shard->element_bytes, length, trust);
        pthread_mutex_unlock(&shard->lock);
    }
}

void store_push_block(
    struct store *store, struct pushing *pushing, const void *values, uint64_t rows)
{
    const struct push *push = &pushing->push;
    struct shard *shard = store_shard(store, push->shard);
    CADRE_ASSERT(!push->sparse && !pushing->applied);
    CADRE_ASSERT(rows <= push->rows - pushing->rows_done);
    uint64_t given = pushing->rows_done * shard->row_elements;
    uint64_t end = given + rows * shard->row_elements;
    size_t most = journal_piece_elements(shard);
    if (store_push_is_one(store, push) && pushing->trust == 0) {
        CADRE_ASSERT(rows == push->rows);
        struct trust trust = {0};
        dense_norms(shard, pushing, values, &trust);
        trust_keep(store, pushing, store_trust(&trust.norms));
    }
    struct change change = change_of(shard, push->kind, push->rate, pushing->count, pushing->trust);
    while (pushing->done < end) {
        uint64_t left = end - pushing->done;
        size_t length = left < most ? (size_t)left : most;
        const char *at =
            (const char *)values + (size_t)(pushing->done - given) * shard->element_bytes;
        dense_piece(store, shard, pushing, &change, at, length);
    }
    pushing->rows_done += rows;
}

/* ---- the end ---- */

/* Done whole, or again by a process that finds the mark. */
static bool store_push_record(
    struct store *store, struct shard *shard, const struct pushing *pushing)
{
    struct image_journal *journal = store->journals[pushing->thread];
    bool synchronous = pushing->push.contributions != 0;
    uint64_t version = atomic_load(&shard->kept->version) + !synchronous;
    uint64_t count = synchronous ? atomic_load(&shard->step->count) + 1 : 0;
    journal->shard = pushing->push.shard;
    journal->closure = pushing->push.closure;
    journal->ordinal = pushing->push.ordinal;
    journal->sums = synchronous;
    journal->version = version;
    journal->count = count;
    store_order_point();
    atomic_store_explicit(&journal->mark, MARK_END, memory_order_release);
    store_order_point();
    atomic_store_explicit(&shard->kept->version, version, memory_order_release);
    store_order_point();
    if (synchronous) {
        atomic_store_explicit(&shard->step->count, count, memory_order_release);
        store_order_point();
    }
    applied_progress(store, push_key_of(&pushing->push), IMAGE_PUSH_WHOLE);
    store_order_point();
    atomic_store_explicit(&journal->mark, MARK_NONE, memory_order_release);
    store_order_point();
    return synchronous && count == atomic_load(&shard->step->contributions);
}

void store_push_end(struct store *store, struct pushing *pushing)
{
    const struct push *push = &pushing->push;
    if (pushing->applied) {
        return;
    }
    CADRE_ASSERT(pushing->rows_done == push->rows);
    struct shard *shard = store_shard(store, push->shard);
    bool last = false;
    pthread_mutex_lock(&shard->lock);
    if (push->closure != 0) {
        last = store_push_record(store, shard, pushing) && !step_waits(shard);
    } else if (push->kind != PUSH_ASSIGN) {
        atomic_fetch_add_explicit(&shard->kept->version, 1, memory_order_release);
    }
    pthread_mutex_unlock(&shard->lock);
    pushing->applied = true;
    if (last) {
        step_apply(store, pushing->thread, shard);
    }
}

void store_push_abandon(struct store *store, struct pushing *pushing)
{
    if (!pushing->applied && pushing->push.closure != 0) {
        applied_release(store, push_key_of(&pushing->push));
    }
}
