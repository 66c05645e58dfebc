/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/trace/trace_conclusion.h"

#include <stdlib.h>

#include "coordinator/cli/trace/trace_pieces.h"

const char *trace_split_name(enum trace_split part)
{
    static const char *const names[TRACE_SPLITS] = {[TRACE_SPLIT_INPUT] = "input",
        [TRACE_SPLIT_FUNCTION] = "function",
        [TRACE_SPLIT_WAIT] = "wait",
        [TRACE_SPLIT_TRANSFER] = "transfer",
        [TRACE_SPLIT_RELEASE] = "release",
        [TRACE_SPLIT_APPLY] = "apply",
        [TRACE_SPLIT_CHECKPOINT] = "checkpoint",
        [TRACE_SPLIT_REGROUP] = "regroup",
        [TRACE_SPLIT_PULL] = "pull",
        [TRACE_SPLIT_PUSH] = "push",
        [TRACE_SPLIT_SCHEDULE] = "schedule",
        [TRACE_SPLIT_CLOSURES] = "closures",
        [TRACE_SPLIT_LIBRARY] = "library",
        [TRACE_SPLIT_PROGRAM] = "program"};
    return names[part];
}

void trace_conclusion_free(struct trace_conclusion *conclusion)
{
    free(conclusion->shares);
    *conclusion = (struct trace_conclusion){0};
}

/* ---- the steps of each process ---- */

/* A step of one process: from the end of the one before, or its own first span, to its own end. */
struct own_step {
    uint64_t step;
    uint32_t process;
    uint64_t begin_ns;
    uint64_t end_ns;
    bool follows; /* the one before is known */
    bool counts;
};

static struct own_step *begin_step(
    struct own_step *list, size_t *count, const struct stored_span *span)
{
    struct own_step *newest = *count > 0 ? &list[*count - 1] : NULL;
    if (newest != NULL && newest->process == span->process && newest->step == span->step) {
        return newest;
    }
    bool follows =
        newest != NULL && newest->process == span->process && newest->end_ns <= span->begin_ns;
    list[(*count)++] = (struct own_step){.step = span->step,
        .process = span->process,
        .begin_ns = follows && newest->step + 1 == span->step ? newest->end_ns : span->begin_ns,
        .end_ns = span->end_ns,
        .follows = follows && newest->step + 1 == span->step};
    return &list[*count - 1];
}

/* A step of a plain program begins where the one before ends, so the first one is not whole; unless
 * there is no other. Returns how many are left. */
static size_t keep_following(struct own_step *list, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].follows) {
            list[kept++] = list[i];
        }
    }
    return kept > 0 ? kept : count;
}

/* By process and time; NULL: no memory. */
static struct own_step *find_steps(const struct trace_store *store, size_t *ret_count)
{
    size_t count = 0;
    struct own_step *list = calloc(store->span_count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < store->span_count; i++) {
        const struct stored_span *span = &store->spans[i];
        if (span->replica == 0 && span->thread == CADRE_TRACE_REPLICA &&
            span->step >= store->first && span->step < store->end) {
            struct own_step *step = begin_step(list, &count, span);
            step->end_ns = span->end_ns > step->end_ns ? span->end_ns : step->end_ns;
        }
    }
    *ret_count = store->own_numbers ? keep_following(list, count) : count;
    return list;
}

static int compare_by_step(const void *a, const void *b)
{
    const struct own_step *first = a;
    const struct own_step *second = b;
    if (first->step != second->step) {
        return first->step < second->step ? -1 : 1;
    }
    return first->process < second->process ? -1 : first->process > second->process ? 1 : 0;
}

/* How long a step took: of the processes that did it, on average. */
struct step_time {
    uint64_t step;
    double time_ns;
    size_t first; /* index of its first own_step */
    size_t count;
};

static int compare_by_time(const void *a, const void *b)
{
    double first = ((const struct step_time *)a)->time_ns;
    double second = ((const struct step_time *)b)->time_ns;
    return first < second ? -1 : first > second ? 1 : 0;
}

static size_t count_steps(const struct own_step *own, size_t own_count, struct step_time *times)
{
    size_t count = 0;
    for (size_t i = 0; i < own_count; i++) {
        if (count == 0 || times[count - 1].step != own[i].step) {
            times[count++] = (struct step_time){.step = own[i].step, .first = i};
        }
        struct step_time *time = &times[count - 1];
        time->count++;
        double own_ns = (double)(own[i].end_ns - own[i].begin_ns);
        time->time_ns += (own_ns - time->time_ns) / (double)time->count;
    }
    return count;
}

/* Marks the steps of the middle half; one that took much longer than the others says nothing about
 * them. With fewer than four all count. */
static void choose_steps(struct own_step *own, size_t own_count, struct step_time *times,
    struct trace_conclusion *conclusion)
{
    qsort(own, own_count, sizeof *own, compare_by_step);
    size_t count = count_steps(own, own_count, times);
    qsort(times, count, sizeof *times, compare_by_time);
    size_t left_out = count >= 4 ? count / 4 : 0;
    conclusion->steps = count;
    conclusion->counted = count - 2 * left_out;
    conclusion->step_us = count > 0 ? times[count / 2].time_ns / 1000 : 0;
    conclusion->longest = count > 0 ? times[count - 1].step : 0;
    conclusion->longest_us = count > 0 ? times[count - 1].time_ns / 1000 : 0;
    for (size_t i = left_out; i < count - left_out; i++) {
        for (size_t at = times[i].first; at < times[i].first + times[i].count; at++) {
            own[at].counts = true;
        }
    }
}

/* ---- shares ---- */

static const struct own_step *own_step_of(
    const struct own_step *own, size_t count, uint64_t step, uint32_t process)
{
    const struct own_step key = {.step = step, .process = process};
    return bsearch(&key, own, count, sizeof *own, compare_by_step);
}

static double sum_of(const double split[TRACE_SPLITS])
{
    double sum = 0;
    for (int part = 0; part < TRACE_SPLITS; part++) {
        sum += split[part];
    }
    return sum;
}

static void make_shares(double split[TRACE_SPLITS])
{
    double sum = sum_of(split);
    for (int part = 0; part < TRACE_SPLITS && sum > 0; part++) {
        split[part] /= sum;
    }
}

/* How the time of each process splits, in nanoseconds. */
static void split_time(const struct trace_pieces *pieces, const struct own_step *own, size_t count,
    struct trace_conclusion *conclusion)
{
    for (size_t i = 0; i < count; i++) {
        const struct trace_lane *lane = trace_pieces_lane(pieces, own[i].process, 0);
        if (own[i].counts && lane != NULL) {
            trace_pieces_between(pieces, lane, own[i].begin_ns, own[i].end_ns,
                conclusion->shares[own[i].process].split);
        }
    }
}

/* The chief of a job with parameter servers waits while its workers work: its time counts for no
 * task that waits. */
static double time_of(const struct trace_store *store, const struct trace_share *share)
{
    return store->processes[share->process].chief ? 0 : sum_of(share->split);
}

/* How long others wait for each process, of all their time. */
static void count_waits(const struct trace_store *store, const struct own_step *own, size_t count,
    struct trace_conclusion *conclusion)
{
    double all_ns = 0;
    for (size_t i = 0; i < conclusion->share_count; i++) {
        all_ns += time_of(store, &conclusion->shares[i]);
    }
    for (size_t i = 0; i < store->span_count; i++) {
        const struct stored_span *span = &store->spans[i];
        if (span->waits_for == TRACE_NO_PROCESS || span->until_ns <= span->begin_ns ||
            span->replica != 0 || span->thread != CADRE_TRACE_REPLICA) {
            continue;
        }
        const struct own_step *step = own_step_of(own, count, span->step, span->process);
        struct trace_share *share = &conclusion->shares[span->waits_for];
        double others_ns = all_ns - time_of(store, share);
        if (span->waits_for == span->process || others_ns <= 0) {
            others_ns = all_ns; /* a replica waits for another of its task */
        }
        if (step != NULL && step->counts && others_ns > 0) {
            share->awaited += (double)(span->until_ns - span->begin_ns) / others_ns;
        }
    }
}

/* Who was waited for longest in the longest step. */
static void find_longest_wait(const struct trace_store *store, struct trace_conclusion *conclusion)
{
    uint64_t most_ns = 0;
    for (size_t i = 0; i < store->span_count; i++) {
        const struct stored_span *span = &store->spans[i];
        uint64_t wait_ns = span->until_ns - span->begin_ns;
        if (span->step == conclusion->longest && span->waits_for != TRACE_NO_PROCESS &&
            span->replica == 0 && span->thread == CADRE_TRACE_REPLICA && wait_ns > most_ns) {
            most_ns = wait_ns;
            conclusion->longest_for = span->waits_for;
        }
    }
    double share = conclusion->longest_us > 0 ? (double)most_ns / 1000 / conclusion->longest_us : 0;
    conclusion->longest_wait = share < 1 ? share : 1;
}

/* What a step of each process has more of than one of the others has on average; waiting apart,
 * which is the other side of it. In nanoseconds. */
static void compare_split(
    const struct own_step *own, size_t count, struct trace_conclusion *conclusion)
{
    for (size_t i = 0; i < count; i++) {
        conclusion->shares[own[i].process].steps += own[i].counts ? 1 : 0;
    }
    for (int part = 0; part < TRACE_SPLITS; part++) {
        double sum_ns = 0;
        double processes = 0;
        for (size_t i = 0; i < conclusion->share_count; i++) {
            const struct trace_share *share = &conclusion->shares[i];
            sum_ns += share->steps > 0 ? share->split[part] / (double)share->steps : 0;
            processes += share->steps > 0 ? 1 : 0;
        }
        bool waits = part == TRACE_SPLIT_WAIT || part == TRACE_SPLIT_RELEASE ||
                     part == TRACE_SPLIT_TRANSFER || part == TRACE_SPLIT_CLOSURES;
        for (size_t i = 0; i < conclusion->share_count && !waits && processes > 1; i++) {
            struct trace_share *share = &conclusion->shares[i];
            double own_ns = share->steps > 0 ? share->split[part] / (double)share->steps : 0;
            double more_ns = own_ns - (sum_ns - own_ns) / (processes - 1);
            share->longer[part] = more_ns > 0 ? more_ns : 0;
        }
    }
}

static void find_slowest(struct trace_conclusion *conclusion)
{
    double most = 0;
    for (size_t i = 0; i < conclusion->share_count; i++) {
        const struct trace_share *share = &conclusion->shares[i];
        if (share->awaited >= TRACE_NAMED && share->awaited > most) {
            most = share->awaited;
            conclusion->slowest = (uint32_t)i;
        }
    }
}

static void sum_up(const struct trace_store *store, struct trace_conclusion *conclusion)
{
    double all_ns = 0;
    find_slowest(conclusion);
    for (size_t i = 0; i < conclusion->share_count; i++) {
        double own_ns = time_of(store, &conclusion->shares[i]);
        all_ns += own_ns;
        conclusion->of_others = conclusion->of_others || (i != conclusion->slowest && own_ns > 0);
    }
    conclusion->of_others = conclusion->of_others && conclusion->slowest != TRACE_NO_PROCESS;
    for (size_t i = 0; i < conclusion->share_count; i++) {
        struct trace_share *share = &conclusion->shares[i];
        bool counts = (all_ns <= 0 || !store->processes[i].chief) && /* a chief alone does */
                      (!conclusion->of_others || i != conclusion->slowest);
        for (int part = 0; part < TRACE_SPLITS && counts; part++) {
            conclusion->split[part] += share->split[part];
        }
        make_shares(share->split);
        make_shares(share->longer);
    }
    make_shares(conclusion->split);
}

bool trace_conclude(const struct trace_store *store, struct trace_conclusion *ret_conclusion)
{
    size_t count = 0;
    struct trace_pieces pieces = {0};
    *ret_conclusion =
        (struct trace_conclusion){.slowest = TRACE_NO_PROCESS, .longest_for = TRACE_NO_PROCESS};
    struct own_step *own = find_steps(store, &count);
    struct step_time *times = calloc(count + 1, sizeof *times);
    ret_conclusion->shares = calloc(store->process_count + 1, sizeof(struct trace_share));
    bool memory = own != NULL && times != NULL && ret_conclusion->shares != NULL &&
                  trace_pieces_make(store, &pieces);
    if (memory) {
        ret_conclusion->share_count = store->process_count;
        for (size_t i = 0; i < store->process_count; i++) {
            ret_conclusion->shares[i].process = (uint32_t)i;
        }
        choose_steps(own, count, times, ret_conclusion);
        split_time(&pieces, own, count, ret_conclusion);
        count_waits(store, own, count, ret_conclusion);
        find_longest_wait(store, ret_conclusion);
        compare_split(own, count, ret_conclusion);
        sum_up(store, ret_conclusion);
    }
    trace_pieces_free(&pieces);
    free(times);
    free(own);
    return memory;
}
