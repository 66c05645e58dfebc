/* SPDX-License-Identifier: Apache-2.0
 * Synchronous pushes, called by store_push.c, store_settle.c and store_recover.c. The contributions
 * of a step are added up beside the shard; the last one applies the sums, piece by piece, and sets
 * each piece of them to zero.
 *     contribution ──▶ sums      contributions == count: sums ──▶ rows, slots ──▶ next step
 *                      touched                           ^ progress
 *
 * A step that a dead process was applying goes on at its progress: the sums behind it are left to
 * do, and those before it are set to zero again. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

static uint64_t touched_size(const struct shard *shard)
{
    return shard->spec.rows / 64 + 1;
}

cadre_status step_ready(struct store *store, struct shard *shard, struct cadre_error *error)
{
    if (shard->step != NULL) {
        return CADRE_OK;
    }
    uint64_t at = 0;
    uint64_t sums = shard->spec.rows * shard->row_elements * shard->sum_bytes;
    uint64_t head = store_aligned(sizeof(struct image_step));
    uint64_t bits = store_aligned(touched_size(shard) * sizeof(uint64_t));
    CADRE_TRY(store_alloc(
        store, head + bits + sums, &at, error, "the sums of " SHARD_TEXT, SHARD_ARGS(shard)));
    struct image_step *step = store_at(store, at);
    step->touched_at = at + head;
    step->sums_at = at + head + bits;
    step->sum = image_checksum(at, &step->sums_at, 2 * sizeof(uint64_t));
    store_order_point();
    atomic_store_explicit(&shard->kept->step, at, memory_order_release);
    store_view_step(store, shard, step);
    return CADRE_OK;
}

static cadre_status store_step_agree(
    const struct shard *shard, const struct push *push, struct cadre_error *error)
{
    struct image_step *step = shard->step;
    uint64_t contributions = atomic_load(&step->contributions);
    if (contributions != push->contributions || atomic_load(&step->kind) != push->kind ||
        atomic_load(&step->rate) != store_bits(push->rate)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            SHARD_TEXT ": step %" PRIu64 " has %" PRIu64 " contributions of kind %" PRIu64
                       " and rate %g, and one says %u of kind %u and rate %g; all have to agree",
            SHARD_ARGS(shard), push->step, contributions, atomic_load(&step->kind),
            store_double(atomic_load(&step->rate)), push->contributions, (unsigned)push->kind,
            push->rate);
    }
    if (shard->begun >= contributions) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            SHARD_TEXT ": step %" PRIu64 " has its %" PRIu64
                       " contributions already; closure %" PRIu64
                       " is one too many (after a batch that failed a step is begun again with "
                       "cadre_variable_begin_step)",
            SHARD_ARGS(shard), push->step, contributions, push->closure);
    }
    return CADRE_OK;
}

bool step_is_passed(const struct shard *shard, const struct push *push)
{
    uint64_t passed = atomic_load(&shard->kept->passed);
    return push->contributions != 0 && passed != 0 && push->step == passed - 1 &&
           push->step < atomic_load(&shard->kept->steps);
}

cadre_status store_step_admit(
    struct store *store, struct shard *shard, const struct push *push, struct cadre_error *error)
{
    uint64_t steps = atomic_load(&shard->kept->steps);
    if (push->step > steps) {
        return CADRE_PENDING;
    }
    if (push->step < steps) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            SHARD_TEXT
            ": step %" PRIu64 " is over, %" PRIu64 " steps were applied; closure %" PRIu64
            " comes too late: number steps on, or say with cadre_variable_begin_step which "
            "one is next",
            SHARD_ARGS(shard), push->step, steps, push->closure);
    }
    CADRE_TRY(step_ready(store, shard, error));
    if (shard->begun == 0) {
        atomic_store(&shard->step->contributions, push->contributions);
        atomic_store(&shard->step->kind, push->kind);
        atomic_store(&shard->step->rate, store_bits(push->rate));
        atomic_store(&shard->step->part, isnan(push->trust) && trust_is_wanted(shard, push->kind));
    }
    CADRE_TRY(store_step_agree(shard, push, error));
    if (!push->sparse && push->rows == shard->spec.rows) {
        atomic_store(&shard->step->dense, 1);
    }
    return CADRE_OK;
}

void step_touch(struct shard *shard, uint64_t start, size_t length)
{
    if (length == 0 || atomic_load_explicit(&shard->step->dense, memory_order_relaxed) != 0) {
        return;
    }
    uint64_t last = (start + length - 1) / shard->row_elements;
    for (uint64_t row = start / shard->row_elements; row <= last; row++) {
        shard->touched[row / 64] |= UINT64_C(1) << (row % 64);
    }
}

void step_sum(const struct store *store, struct shard *shard, uint64_t start, const void *values,
    size_t length)
{
    store->isa->sum[shard->spec.dtype](shard->sums + start * shard->sum_bytes, values, length);
}

/* ---- a step that is begun again ---- */

/* `contributions` is cleared last: until then there is something to drop. */
static void drop_sums(struct shard *shard)
{
    struct image_step *step = shard->step;
    if (step == NULL || atomic_load(&step->contributions) == 0) {
        return;
    }
    atomic_store(&step->count, 0);
    store_order_point();
    memset(shard->sums, 0, (size_t)(shard->spec.rows * shard->row_elements) * shard->sum_bytes);
    store_order_point();
    memset(shard->touched, 0, (size_t)touched_size(shard) * sizeof(uint64_t));
    store_order_point();
    atomic_store(&step->dense, 0);
    store_order_point();
    atomic_store(&step->contributions, 0);
    store_order_point();
}

cadre_status store_begin_step(struct store *store, uint32_t shard, uint64_t step)
{
    struct shard *one = store_shard(store, shard);
    pthread_mutex_lock(&one->lock);
    uint64_t count = one->step == NULL ? 0 : atomic_load(&one->step->count);
    bool applies =
        count != 0 && count == atomic_load(&one->step->contributions) && !step_waits(one);
    if (applies || !applied_drop(store, shard)) {
        pthread_mutex_unlock(&one->lock);
        return CADRE_PENDING;
    }
    store_order_point();
    drop_sums(one);
    one->begun = 0;
    uint64_t steps = atomic_load(&one->kept->steps);
    bool ahead = steps > step && steps - step == 1;
    atomic_store(&one->kept->passed, ahead ? steps : 0);
    store_order_point();
    if (!ahead) {
        if (one->step != NULL) {
            atomic_store(&one->step->settled_step, 0);
            store_order_point();
        }
        atomic_store_explicit(&one->kept->steps, step, memory_order_release);
    }
    pthread_mutex_unlock(&one->lock);
    return CADRE_OK;
}

/* ---- applying ---- */

/* The first touched row from `row` on, or the end. */
static uint64_t next_touched(const struct shard *shard, uint64_t row)
{
    uint64_t rows = shard->spec.rows;
    if (atomic_load_explicit(&shard->step->dense, memory_order_relaxed) != 0) {
        return row;
    }
    while (row < rows) {
        uint64_t word = shard->touched[row / 64] >> (row % 64);
        if (word != 0) {
            row += (uint64_t)__builtin_ctzll(word);
            return row < rows ? row : rows;
        }
        row = (row / 64 + 1) * 64;
    }
    return rows;
}

/* The piece behind `done`: a run of elements when all rows are touched, else rows, or a part of a
 * row. No segments: nothing is left. */
static void choose_piece(
    const struct shard *shard, uint64_t done, uint64_t *starts, struct journal_piece *piece)
{
    uint64_t wide = shard->row_elements;
    uint64_t total = shard->spec.rows * wide;
    size_t most = journal_piece_elements(shard);
    piece->segments = 0;
    if (done >= total) {
        return;
    }
    uint64_t row = done / wide;
    uint64_t offset = done % wide;
    bool dense = atomic_load_explicit(&shard->step->dense, memory_order_relaxed) != 0;
    uint64_t left = dense ? total - done : wide;
    if (dense || wide > most) {
        uint64_t next = next_touched(shard, row);
        offset = next == row ? offset : 0;
        left = dense ? left : wide - offset;
        if (next >= shard->spec.rows) {
            return;
        }
        starts[piece->segments++] = next * wide + offset;
        piece->length = left < most ? (size_t)left : most;
        piece->after = next * wide + offset + piece->length;
        return;
    }
    piece->length = (size_t)wide;
    size_t rows = most / piece->length < JOURNAL_SEGMENTS ? most / piece->length : JOURNAL_SEGMENTS;
    for (row = next_touched(shard, row); piece->segments < rows && row < shard->spec.rows;
         row = next_touched(shard, row + 1)) {
        starts[piece->segments++] = row * wide;
        piece->after = (row + 1) * wide;
    }
}

/* The gradient of a piece, in the thread's scratch. */
static const void *mean_of(const struct store *store, uint32_t thread, const struct shard *shard,
    uint64_t start, size_t length)
{
    char *mean = store->scratch[thread]->sum;
    store->isa->mean[shard->spec.dtype](mean, shard->sums + start * shard->sum_bytes,
        (double)atomic_load(&shard->step->contributions), length);
    return mean;
}

static void apply_segment(struct store *store, uint32_t thread, struct shard *shard,
    const struct change *change, uint64_t start, size_t length)
{
    cadre_dtype dtype = shard->spec.dtype;
    const char *sums = shard->sums + start * shard->sum_bytes;
    char *rows = shard->rows + start * shard->element_bytes;
    if (change->kind == PUSH_UPDATE) {
        change_run(
            store, shard, change, start, mean_of(store, thread, shard, start, length), length);
    } else if (change->kind == PUSH_ADD) {
        store->isa->add_sum[dtype](rows, sums, length);
    } else {
        store->isa->sub_sum[dtype](rows, sums, length);
    }
}

void step_redo_end(struct shard *shard, const struct image_journal *journal)
{
    struct image_step *step = shard->step;
    atomic_store(&shard->kept->updates, journal->updates);
    store_order_point();
    memset(shard->touched, 0, (size_t)touched_size(shard) * sizeof(uint64_t));
    store_order_point();
    atomic_store(&step->dense, 0);
    store_order_point();
    atomic_store(&step->progress, 0);
    store_order_point();
    atomic_store(&step->trust, 0);
    store_order_point();
    atomic_store(&step->count, 0);
    store_order_point();
    atomic_store(&step->contributions, 0);
    store_order_point();
    atomic_store(&shard->kept->steps, journal->steps);
    store_order_point();
    atomic_store(&shard->kept->version, journal->version);
    store_order_point();
    shard->begun = 0;
}

static void end_step(
    struct store *store, uint32_t thread, struct shard *shard, const struct change *change)
{
    struct image_journal *journal = store->journals[thread];
    journal->shard = shard->number;
    journal->updates = atomic_load(&shard->kept->updates) + (change->kind == PUSH_UPDATE);
    journal->steps = atomic_load(&shard->kept->steps) + 1;
    journal->version = atomic_load(&shard->kept->version) + 1;
    journal->sums = 1;
    store_order_point();
    atomic_store_explicit(&journal->mark, MARK_STEP_END, memory_order_release);
    store_order_point();
    step_redo_end(shard, journal);
    atomic_store_explicit(&journal->mark, MARK_NONE, memory_order_release);
    store_order_point();
}

/* False: it was the end. */
static bool apply_piece(
    struct store *store, uint32_t thread, struct shard *shard, const struct change *change)
{
    uint64_t *starts = store->scratch[thread]->starts;
    struct journal_piece piece = {.shard = shard, .key.shard = shard->number, .starts = starts};
    choose_piece(shard, atomic_load(&shard->step->progress), starts, &piece);
    if (piece.segments == 0) {
        end_step(store, thread, shard, change);
        return false;
    }
    journal_begin(store, thread, &piece, MARK_STEP_PIECE);
    for (size_t i = 0; i < piece.segments; i++) {
        apply_segment(store, thread, shard, change, starts[i], piece.length);
    }
    journal_commit(store, thread, &piece);
    for (size_t i = 0; i < piece.segments; i++) {
        memset(shard->sums + starts[i] * shard->sum_bytes, 0, piece.length * shard->sum_bytes);
    }
    store_order_point();
    return true;
}

bool step_waits(const struct shard *shard)
{
    const struct image_step *step = shard->step;
    uint64_t count = step == NULL ? 0 : atomic_load(&step->count);
    return count != 0 && count == atomic_load(&step->contributions) &&
           atomic_load(&step->part) != 0 &&
           atomic_load(&step->settled_step) != atomic_load(&shard->kept->steps) + 1;
}

void step_norms(struct store *store, uint32_t thread, struct shard *shard, struct trust *trust)
{
    uint64_t count = atomic_load(&shard->kept->updates) + 1;
    uint64_t *starts = store->scratch[thread]->starts;
    struct journal_piece piece = {.starts = starts};
    for (choose_piece(shard, 0, starts, &piece); piece.segments != 0;
         choose_piece(shard, piece.after, starts, &piece)) {
        for (size_t i = 0; i < piece.segments; i++) {
            trust_add(shard, count, starts[i],
                mean_of(store, thread, shard, starts[i], piece.length), piece.length, trust);
        }
        pthread_mutex_unlock(&shard->lock);
        pthread_mutex_lock(&shard->lock);
    }
}

/* The caller holds the lock, which is released between pieces. A step that was begun has its
 * ratio. */
static double step_trust(struct store *store, uint32_t thread, struct shard *shard)
{
    struct image_step *step = shard->step;
    if (atomic_load(&step->part) != 0) {
        CADRE_ASSERT(atomic_load(&step->settled_step) == atomic_load(&shard->kept->steps) + 1);
        return store_double(atomic_load(&step->settled_trust));
    }
    double kept = store_double(atomic_load(&step->trust));
    if (kept != 0 || atomic_load(&step->progress) != 0 ||
        !trust_is_wanted(shard, (enum push_kind)atomic_load(&step->kind))) {
        return kept != 0 ? kept : 1;
    }
    struct trust trust = {0};
    step_norms(store, thread, shard, &trust);
    store_order_point();
    atomic_store(&step->trust, store_bits(store_trust(&trust.norms)));
    store_order_point();
    return store_trust(&trust.norms);
}

void step_apply(struct store *store, uint32_t thread, struct shard *shard)
{
    struct image_step *step = shard->step;
    pthread_mutex_lock(&shard->lock);
    double trust = step_trust(store, thread, shard);
    struct change change = change_of(shard, (enum push_kind)atomic_load(&step->kind),
        store_double(atomic_load(&step->rate)), atomic_load(&shard->kept->updates) + 1, trust);
    pthread_mutex_unlock(&shard->lock);
    bool more = true;
    while (more) {
        pthread_mutex_lock(&shard->lock);
        more = apply_piece(store, thread, shard, &change);
        pthread_mutex_unlock(&shard->lock);
    }
}
