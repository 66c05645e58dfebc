/* SPDX-License-Identifier: Apache-2.0
 * The comparison of replicas in a step: when one is due, the hashes before it, the piggyback,
 * and what follows a difference. The strategy's hooks call it. */
#include "worker/library/runtime/digests/digests.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/digests/digests_part.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/strategy/strategy.h"

/* What no step writes is hashed again within so many comparisons; a share that costs next to
 * nothing at once. */
#define TURNS       8
#define SHARE_BYTES ((size_t)256 << 10)

/* --- opening and closing --- */

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->digests == NULL);
    struct digests_part *part = calloc(1, sizeof *part);
    struct state_hashes *hashes = calloc(strategy->local_replicas, sizeof *hashes);
    if (part == NULL || hashes == NULL) {
        free(part);
        free(hashes);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to compare the replicas' states");
    }
    part->hashes = hashes;
    part->next = POSITION_NONE;
    part->interval.fixed = strategy->environment->verify_every;
    strategy->digests = part;
    return CADRE_OK;
}

/* Where the interval was printed, prints the cost. */
static void report_cost(const cadre_strategy *strategy)
{
    const struct compare_interval *interval = &strategy->digests->interval;
    if (interval->reported > 0) {
        show_note("the states of the replicas were compared %" PRIu64
                  " times: to hash them took %.2f %% of the time of the steps",
            interval->comparisons, 100 * compare_interval_cost(interval));
    }
}

static void close_part(cadre_strategy *strategy)
{
    struct digests_part *part = strategy->digests;
    if (part != NULL) {
        report_cost(strategy);
    }
    for (uint32_t i = 0; part != NULL && i < strategy->local_replicas; i++) {
        state_hashes_clear(&part->hashes[i]);
    }
}

static void free_part(cadre_strategy *strategy)
{
    if (strategy->digests != NULL) {
        free(strategy->digests->hashes);
        free(strategy->digests);
        strategy->digests = NULL;
    }
}

static bool digests_compares(const cadre_strategy *strategy)
{
    return !strategy->environment->verify_off && strategy->replica_count > 1;
}

/* --- in a step --- */

static uint32_t turns_of(const cadre_strategy *strategy)
{
    size_t shares = state_bytes(strategy) / SHARE_BYTES;
    return shares < 1 ? 1 : shares < TURNS ? (uint32_t)shares : TURNS;
}

static struct state_hash_turn turn_of(const cadre_strategy *strategy)
{
    const struct digests_part *part = strategy->digests;
    uint32_t of = part->whole ? 1 : turns_of(strategy);
    return (struct state_hash_turn){.number = part->turn % of, .of = of};
}

/* Before any replica runs: hashes the task's state, which one of them may write early. */
static cadre_status digests_begin(struct step_order *order, struct cadre_error *error)
{
    cadre_strategy *strategy = order->strategy;
    struct digests_part *part = strategy->digests;
    part->due = order->position >= part->next && part->next != POSITION_NONE;
    if (!part->due) {
        return CADRE_OK;
    }
    part->begun_us = clock_monotonic_us();
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        CADRE_TRY(state_hash_prepare(strategy, &part->hashes[i], error));
    }
    CADRE_TRY(state_hash_shared(strategy, turn_of(strategy), &part->hashes[0], error));
    part->took_us = clock_monotonic_us() - part->begun_us;
    return CADRE_OK;
}

/* The chief sets when all compare next: at the latest where a checkpoint is taken, because that is
 * not published before, and is compared whole: no old hash may count for it. */
static void send_next_interval(cadre_strategy *strategy, struct digests_part *part)
{
    struct step *step = &strategy->step;
    uint64_t next = part->next;
    bool whole = part->whole;
    uint64_t checkpoint = checkpoint_next(strategy, step->position);
    if (part->due) {
        next = step->position + compare_interval_hashed(&part->interval, step->position,
                                    part->whole, part->begun_us, part->begun_us + part->took_us);
        whole = false;
    }
    if (checkpoint_taken_at(strategy, step->position) && !(part->due && part->whole)) {
        next = step->position + 1; /* a checkpoint on demand */
        whole = true;
    }
    if (checkpoint <= next) {
        next = checkpoint;
        whole = true;
    }
    CADRE_ASSERT(next > step->position);
    uint64_t in = next - step->position;
    step->compares_in = in < INT32_MAX ? (uint32_t)in : INT32_MAX;
    step->compares_whole = whole;
}

static cadre_status digests_bind(const cadre_replica *bound, struct cadre_error *error)
{
    cadre_strategy *strategy = bound->strategy;
    struct digests_part *part = strategy->digests;
    cadre_replica *replica = &strategy->replicas[bound->local];
    /* Once the step counts nothing is sent, and variables may be newer than the hashes. */
    if (part->next == POSITION_NONE || !replica->active) {
        return CADRE_OK;
    }
    if (part->due) {
        struct state_hashes *hashes = &part->hashes[replica->local];
        uint64_t begun_us = clock_monotonic_us();
        if (replica->local > 0) {
            state_hash_share(strategy, &part->hashes[0], hashes);
        }
        CADRE_TRY(state_hash_own(strategy, replica->local, turn_of(strategy), hashes, error));
        replica->digest = pause_digest_to_send(replica, state_digest(hashes));
        if (replica->local == 0) {
            /* Without the work of other parts since the beginning, such as copying a checkpoint. */
            part->took_us += clock_monotonic_us() - begun_us;
            part->hashed = part->whole ? part->hashed : hashes->hashed;
        }
    }
    if (replica->local == 0) {
        strategy->step.compares_in = 0;
        strategy->step.compares_whole = false;
    }
    if (replica->local == 0 && strategy->roster.rank == 0) {
        send_next_interval(strategy, part);
    }
    return CADRE_OK;
}

static void report_interval(const cadre_strategy *strategy, struct digests_part *part)
{
    bool chief = strategy->roster.rank == 0;
    if (chief && compare_interval_should_log(&part->interval, part->interval.ended_us)) {
        uint64_t steps = part->interval.steps;
        show_note("the states of %u replicas are compared every %" PRIu64
                  " steps, and what no step writes within %" PRIu64
                  ": to hash %.1f of %.1f MB takes %.1f ms, less than a hundredth of their time "
                  "(CADRE_VERIFY_STATE)",
            strategy->replica_count, steps, steps * turns_of(strategy), (double)part->hashed / 1e6,
            (double)state_bytes(strategy) / 1e6, (double)part->interval.hash_us / 1e3);
    }
}

static void digests_commit(struct step_order *order)
{
    cadre_strategy *strategy = order->strategy;
    struct digests_part *part = strategy->digests;
    if (part->next == POSITION_NONE) {
        return;
    }
    /* No interval came: the chief does not compare, so no task does. */
    uint32_t in = strategy->step.compares_in;
    part->next = in > 0 ? order->position + in : POSITION_NONE;
    part->whole = strategy->step.compares_whole;
    if (part->due && strategy->step.equal) {
        verified_position_record(strategy, order->position, strategy->replicas[0].digest);
        checkpoint_agreed(strategy, order->position, strategy->replicas[0].digest);
    }
    if (part->due) {
        report_interval(strategy, part);
        part->due = false;
        part->turn++;
    }
}

/* By hand no daemon starts the program again. */
static bool digests_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    (void)aborted;
    const struct digests_part *part = strategy->digests;
    bool ends = part->found && strategy->environment->by_hand;
    if (ends) {
        (void)divergence_fail(strategy, part->text, cause);
    }
    return !ends;
}

/* --- outside of steps --- */

static cadre_status digests_digest(
    cadre_strategy *strategy, uint32_t local, uint64_t *ret_digest, struct cadre_error *error)
{
    struct state_hashes *hashes = &strategy->digests->hashes[local];
    if (!digests_compares(strategy)) {
        return CADRE_OK;
    }
    CADRE_TRY(state_hash_all(strategy, local, hashes, error));
    *ret_digest = state_digest(hashes);
    return CADRE_OK;
}

/* --- in a generation --- */

/* A task that leaves is compared before it may exit, and a task that gives its state before another
 * receives it: by the coordinator, with the digests of all others. */
static cadre_status before_pause(cadre_strategy *strategy, struct cadre_error *error)
{
    struct verified *paused = &strategy->digests->paused;
    if (task_pause_point(strategy->task) == TASK_PAUSES) {
        paused->position = strategy_position(strategy);
        CADRE_TRY(digests_at_end(strategy, &paused->digest, error));
        task_report_paused(strategy->task, paused->digest);
    }
    return CADRE_OK;
}

static void generation_end(cadre_strategy *strategy)
{
    struct digests_part *part = strategy->digests;
    if (part->found) {
        part->found = false;
        task_diverged(strategy->task, strategy->roster.generation, &part->divergence, part->text);
    }
}

/* The first step of a generation compares, so that a joiner equals the others. */
static cadre_status digests_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    (void)error;
    struct digests_part *part = strategy->digests;
    part->next = digests_compares(strategy) ? 0 : POSITION_NONE;
    part->whole = true;
    part->turn = 0;
    part->due = false;
    part->found = false;
    strategy->step.verified = (struct verified){0};
    compare_interval_reset(&part->interval);
    return CADRE_OK;
}

const struct strategy_hooks digests_hooks = {
    .name = "digests",
    .before_pause = before_pause,
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .begin = digests_begin,
    .bind = digests_bind,
    .diverged = divergence_find,
    .commit = digests_commit,
    .undo = digests_undo,
    .digest = digests_digest,
    .generation_end = generation_end,
    .reopen = digests_reopen,
};
