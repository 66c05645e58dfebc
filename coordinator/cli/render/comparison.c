/* SPDX-License-Identifier: Apache-2.0
 * Compares two verified jobs for `cadre verify A B`: epochs by their digests, then states. */
#include "coordinator/cli/render/comparison.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *comparison_outcome_name(enum comparison_outcome outcome)
{
    switch (outcome) {
    case COMPARISON_EQUAL:
        return "equal";
    case COMPARISON_DIFFERS:
        return "differs";
    case COMPARISON_NOTHING:
        return "nothing in common";
    }
    return "unknown";
}

const char *difference_name(enum difference difference)
{
    switch (difference) {
    case DIFFERENCE_NONE:
        return "none";
    case DIFFERENCE_DATASET:
        return "dataset";
    case DIFFERENCE_BEGIN:
        return "begin";
    case DIFFERENCE_LENGTH:
        return "length";
    case DIFFERENCE_CONSUMED:
        return "consumed";
    case DIFFERENCE_STATE:
        return "state";
    }
    return "unknown";
}

static uint64_t comparison_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Keeps the difference with the lowest position. */
__attribute__((format(printf, 3, 4))) static void comparison_offer(
    struct comparison *comparison, const struct comparison_point *point, const char *format, ...)
{
    struct comparison_point *kept = &comparison->point;
    if (kept->difference != DIFFERENCE_NONE && kept->position <= point->position) {
        return;
    }
    *kept = *point;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(kept->text, sizeof kept->text, format, arguments);
    va_end(arguments);
}

/* ---- one epoch of both ---- */

/* Whether `a` ended the epoch where `b` went on with it. */
static bool ended_before(const cadre_verified_epoch *a, const cadre_verified_epoch *b)
{
    return a->steps_whole != 0 && a->steps >= a->steps_whole && b->steps > a->steps;
}

static bool consumed_equal(const cadre_verified_epoch *a, const cadre_verified_epoch *b)
{
    return a->samples == b->samples && a->consumed[0] == b->consumed[0] &&
           a->consumed[1] == b->consumed[1];
}

/* The difference of the epoch; DIFFERENCE_NONE: the ledger has none. */
static struct comparison_point point_of(
    const cadre_verified_epoch *a, const cadre_verified_epoch *b)
{
    struct comparison_point point = {.stream = a->stream,
        .name = a->name,
        .epoch = a->epoch,
        .position = comparison_least(a->first, b->first),
        .steps = 1};
    if (strcmp(a->name, b->name) != 0) {
        point.difference = DIFFERENCE_DATASET;
    } else if (a->first != b->first) {
        point.difference = DIFFERENCE_BEGIN;
    } else if (a->steps == b->steps && !consumed_equal(a, b)) {
        point.difference = DIFFERENCE_CONSUMED;
        point.steps = a->steps;
    } else if (ended_before(a, b) || ended_before(b, a)) {
        point.difference = DIFFERENCE_LENGTH;
        point.step = comparison_least(a->steps, b->steps);
        point.position += point.step;
    }
    return point;
}

static void offer_epoch(struct comparison *comparison, const cadre_verified_epoch *a,
    const cadre_verified_epoch *b, const struct comparison_point *point)
{
    uint64_t one = comparison->jobs[0]->job;
    uint64_t other = comparison->jobs[1]->job;
    uint64_t epoch = a->epoch + 1; /* as people count */
    switch (point->difference) {
    case DIFFERENCE_NONE:
    case DIFFERENCE_STATE: /* is no difference of an epoch */
        return;
    case DIFFERENCE_DATASET:
        comparison_offer(comparison, point,
            "dataset %" PRIu32 " is %s in job %" PRIu64 ", and %s in job %" PRIu64, a->stream,
            a->name, one, b->name, other);
        return;
    case DIFFERENCE_BEGIN:
        comparison_offer(comparison, point,
            "epoch %" PRIu64 " of %s begins at step %" PRIu64 " of job %" PRIu64
            ", and at step %" PRIu64 " of job %" PRIu64,
            epoch, a->name, a->first, one, b->first, other);
        return;
    case DIFFERENCE_LENGTH:
        comparison_offer(comparison, point,
            "epoch %" PRIu64 " of %s ends after %" PRIu64 " steps in job %" PRIu64
            ", and goes on in job %" PRIu64,
            epoch, a->name, point->step, ended_before(a, b) ? one : other,
            ended_before(a, b) ? other : one);
        return;
    case DIFFERENCE_CONSUMED:
        comparison_offer(comparison, point,
            "in epoch %" PRIu64 " of %s, the steps %" PRIu64 " to %" PRIu64 ", job %" PRIu64
            " consumed %" PRIu64 " samples and job %" PRIu64 " %s%" PRIu64,
            epoch, a->name, a->first, a->first + a->steps, one, a->samples, other,
            a->samples == b->samples ? "others, also " : "", b->samples);
        return;
    }
}

/* ---- all epochs ---- */

/* The next epoch from `i` and `j` on that both have; false: there is none. */
static bool next_of_both(
    const cadre_verification *a, const cadre_verification *b, size_t *i, size_t *j)
{
    while (*i < a->epoch_count && *j < b->epoch_count) {
        const cadre_verified_epoch *one = &a->epochs[*i];
        const cadre_verified_epoch *other = &b->epochs[*j];
        if (one->stream == other->stream && one->epoch == other->epoch) {
            return true;
        }
        bool before = one->stream < other->stream ||
                      (one->stream == other->stream && one->epoch < other->epoch);
        *i += before ? 1 : 0;
        *j += before ? 0 : 1;
    }
    return false;
}

/* Counts what is equal before the difference, or all. */
static void count_equal(struct comparison *comparison)
{
    const cadre_verification *a = comparison->jobs[0];
    const cadre_verification *b = comparison->jobs[1];
    bool differs = comparison->point.difference != DIFFERENCE_NONE;
    for (size_t i = 0, j = 0; next_of_both(a, b, &i, &j); i++, j++) {
        const cadre_verified_epoch *epoch = &a->epochs[i];
        uint64_t end = epoch->first + epoch->steps;
        bool before = !differs || end <= comparison->point.position;
        if (epoch->steps == 0 || epoch->steps != b->epochs[j].steps || !before) {
            continue;
        }
        bool first = comparison->epochs++ == 0;
        comparison->steps += epoch->steps;
        comparison->begin =
            first ? epoch->first : comparison_least(comparison->begin, epoch->first);
        comparison->end = end > comparison->end ? end : comparison->end;
    }
}

static void compare_consumed(struct comparison *comparison)
{
    const cadre_verification *a = comparison->jobs[0];
    const cadre_verification *b = comparison->jobs[1];
    for (size_t i = 0, j = 0; next_of_both(a, b, &i, &j); i++, j++) {
        const struct comparison_point point = point_of(&a->epochs[i], &b->epochs[j]);
        offer_epoch(comparison, &a->epochs[i], &b->epochs[j], &point);
    }
}

/* ---- states ---- */

/* The next position from `i` and `j` on that both verified; false: there is none. */
static bool next_state_of_both(
    const cadre_verification *a, const cadre_verification *b, size_t *i, size_t *j)
{
    while (*i < a->state_count && *j < b->state_count) {
        uint64_t one = a->states[*i].position;
        uint64_t other = b->states[*j].position;
        if (one == other) {
            return true;
        }
        *i += one < other ? 1 : 0;
        *j += one < other ? 0 : 1;
    }
    return false;
}

/* A state is that before the step of its position. */
static void compare_states(struct comparison *comparison)
{
    const cadre_verification *a = comparison->jobs[0];
    const cadre_verification *b = comparison->jobs[1];
    for (size_t i = 0, j = 0; next_state_of_both(a, b, &i, &j); i++, j++) {
        const cadre_verified_state *one = &a->states[i];
        const cadre_verified_state *other = &b->states[j];
        if (one->digest != other->digest) {
            const struct comparison_point point = {
                .difference = DIFFERENCE_STATE, .position = one->position, .name = ""};
            comparison_offer(comparison, &point,
                "state differs at step %" PRIu64 ": its digest is %016" PRIx64 " in job %" PRIu64
                ", and %016" PRIx64 " in job %" PRIu64
                "; with equal numbers of replicas and the same program there should be none",
                one->position, one->digest, a->job, other->digest, b->job);
            return;
        }
    }
}

static void count_equal_states(struct comparison *comparison)
{
    const cadre_verification *a = comparison->jobs[0];
    const cadre_verification *b = comparison->jobs[1];
    const struct comparison_point *point = &comparison->point;
    for (size_t i = 0, j = 0; next_state_of_both(a, b, &i, &j); i++, j++) {
        uint64_t position = a->states[i].position;
        bool before = point->difference == DIFFERENCE_NONE || position <= point->position;
        if (!before || a->states[i].digest != b->states[j].digest) {
            return;
        }
        comparison->states++;
        comparison->state = position;
    }
}

void comparison_make(
    const cadre_verification *a, const cadre_verification *b, struct comparison *ret_comparison)
{
    *ret_comparison = (struct comparison){.jobs = {a, b}};
    compare_states(ret_comparison); /* first, for of one position the state comes before the step */
    compare_consumed(ret_comparison);
    count_equal(ret_comparison);
    count_equal_states(ret_comparison);
    if (ret_comparison->point.difference != DIFFERENCE_NONE) {
        ret_comparison->outcome = COMPARISON_DIFFERS;
    } else if (ret_comparison->epochs == 0 && ret_comparison->states == 0) {
        ret_comparison->outcome = COMPARISON_NOTHING;
    }
}
