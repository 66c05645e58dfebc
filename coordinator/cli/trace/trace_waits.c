/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/trace/trace_waits.h"

#include <stdlib.h>

static uint64_t clamp(uint64_t at, uint64_t least, uint64_t most)
{
    return at < least ? least : at > most ? most : at;
}

/* ---- collectives ---- */

static int compare_matches(const void *a, const void *b)
{
    const struct stored_span *first = *(struct stored_span *const *)a;
    const struct stored_span *second = *(struct stored_span *const *)b;
    if (first->match != second->match) {
        return first->match < second->match ? -1 : 1;
    }
    return first->begin_ns < second->begin_ns ? -1 : first->begin_ns > second->begin_ns ? 1 : 0;
}

/* The spans of one collective, by their begin: all wait for the last. */
static void take_collective(struct stored_span *const *spans, size_t count)
{
    const struct stored_span *last = spans[count - 1];
    for (size_t i = 0; i < count; i++) {
        struct stored_span *span = spans[i];
        uint64_t until_ns = span->arrived_ns != 0 ? span->arrived_ns : last->begin_ns;
        span->until_ns = clamp(until_ns, span->begin_ns, span->end_ns);
        span->waits_for = span != last ? last->process : TRACE_NO_PROCESS;
        if (span == last) {
            span->until_ns = span->begin_ns; /* what it waits is not for any of these */
        }
    }
}

static bool take_collectives(struct trace_store *store)
{
    size_t count = 0;
    struct stored_span **list = calloc(store->span_count + 1, sizeof(void *));
    for (size_t i = 0; list != NULL && i < store->span_count; i++) {
        if (trace_is_collective(store->spans[i].kind) && store->spans[i].match != 0) {
            list[count++] = &store->spans[i];
        }
    }
    if (list != NULL) {
        qsort(list, count, sizeof(void *), compare_matches);
    }
    for (size_t i = 0, next = 0; list != NULL && i < count; i = next) {
        next = i;
        while (next < count && list[next]->match == list[i]->match) {
            next++;
        }
        take_collective(list + i, next - i);
    }
    free(list);
    return list != NULL;
}

/* ---- releases ---- */

/* When a process had what it needs for a step: the batch, else it had begun the step. */
struct arrival {
    uint64_t step;
    uint32_t process;
    uint64_t at_ns;
    bool by_input;
};

static int compare_arrivals(const void *a, const void *b)
{
    const struct arrival *first = a;
    const struct arrival *second = b;
    if (first->step != second->step) {
        return first->step < second->step ? -1 : 1;
    }
    return first->at_ns < second->at_ns ? -1 : first->at_ns > second->at_ns ? 1 : 0;
}

/* Of each process and step one; *ret_count of them. NULL: no memory. */
static struct arrival *find_arrivals(const struct trace_store *store, size_t *ret_count)
{
    size_t count = 0;
    struct arrival *list = calloc(store->span_count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < store->span_count; i++) {
        const struct stored_span *span = &store->spans[i];
        bool input = span->kind == CADRE_TRACE_INPUT;
        if ((!input && span->kind != CADRE_TRACE_STEP) || span->replica != 0) {
            continue;
        }
        struct arrival *newest = count > 0 ? &list[count - 1] : NULL;
        bool same =
            newest != NULL && newest->step == span->step && newest->process == span->process;
        if (!same) {
            newest = &list[count++];
            *newest = (struct arrival){.step = span->step, .process = span->process};
        }
        if (input || !newest->by_input) {
            newest->at_ns = input ? span->end_ns : span->begin_ns;
            newest->by_input = newest->by_input || input;
        }
    }
    *ret_count = count;
    if (list != NULL) {
        qsort(list, count, sizeof *list, compare_arrivals);
    }
    return list;
}

/* The process that came last to this step; NULL: none is known. */
static const struct arrival *last_of(const struct arrival *list, size_t count, uint64_t step)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].step <= step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && list[low - 1].step == step ? &list[low - 1] : NULL;
}

static bool take_releases(struct trace_store *store)
{
    size_t count = 0;
    struct arrival *list = find_arrivals(store, &count);
    for (size_t i = 0; list != NULL && i < store->span_count; i++) {
        struct stored_span *span = &store->spans[i];
        const struct arrival *last =
            span->kind == CADRE_TRACE_RELEASE ? last_of(list, count, span->step) : NULL;
        /* A release that came before that was not for this batch: it is steps ahead. */
        if (last == NULL || last->process == span->process || last->at_ns <= span->begin_ns ||
            last->at_ns > span->end_ns) {
            continue;
        }
        span->until_ns = last->at_ns;
        span->waits_for = last->process;
    }
    free(list);
    return list != NULL;
}

/* ---- closures ---- */

static int compare_ends(const void *a, const void *b)
{
    const struct stored_span *first = *(struct stored_span *const *)a;
    const struct stored_span *second = *(struct stored_span *const *)b;
    if (first->step != second->step) {
        return first->step < second->step ? -1 : 1;
    }
    return first->end_ns < second->end_ns ? -1 : first->end_ns > second->end_ns ? 1 : 0;
}

/* TRACE_NO_PROCESS: the job has no parameter servers, or its chief sent nothing. */
static uint32_t find_chief(struct trace_store *store)
{
    uint32_t chief = TRACE_NO_PROCESS;
    for (size_t i = 0; i < store->span_count; i++) {
        if (store->spans[i].kind == CADRE_TRACE_SCHEDULE) {
            chief = store->spans[i].process;
            store->processes[chief].chief = true;
        }
    }
    return chief;
}

/* The closure of this step that ended last until the end of the wait; NULL: none did. */
static const struct stored_span *last_closure(
    struct stored_span *const *list, size_t count, const struct stored_span *wait)
{
    const struct stored_span *key = wait;
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_ends(&list[middle], &key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && list[low - 1]->step == wait->step ? list[low - 1] : NULL;
}

/* A worker without a closure waits for the worker that has one of the same step, or, if that is the
 * longer part, for the chief. What the chief waits is the work of all, and for none of them. */
static bool take_closures(struct trace_store *store)
{
    size_t count = 0;
    uint32_t chief = find_chief(store);
    struct stored_span **list = calloc(store->span_count + 1, sizeof(void *));
    for (size_t i = 0; list != NULL && i < store->span_count; i++) {
        struct stored_span *span = &store->spans[i];
        if (span->kind == CADRE_TRACE_FUNCTION && span->replica == 0 &&
            !store->processes[span->process].chief) {
            list[count++] = span;
        }
    }
    if (list != NULL) {
        qsort(list, count, sizeof(void *), compare_ends);
    }
    for (size_t i = 0; list != NULL && i < store->span_count; i++) {
        struct stored_span *span = &store->spans[i];
        if (span->kind != CADRE_TRACE_WAIT || store->processes[span->process].chief) {
            continue;
        }
        const struct stored_span *last = last_closure(list, count, span);
        bool waits = last != NULL && last->process != span->process &&
                     last->end_ns > span->begin_ns &&
                     last->end_ns - span->begin_ns >= span->end_ns - last->end_ns;
        span->waits_for = waits ? last->process : chief;
        span->until_ns = waits                       ? last->end_ns
                         : chief != TRACE_NO_PROCESS ? span->end_ns
                                                     : span->begin_ns;
    }
    free(list);
    return list != NULL;
}

bool trace_waits(struct trace_store *store)
{
    return take_collectives(store) && take_releases(store) && take_closures(store);
}
