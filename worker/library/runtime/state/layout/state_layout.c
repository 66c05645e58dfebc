/* SPDX-License-Identifier: Apache-2.0
 * The layout of a state as text, compared between a source and the tasks that lack its state.
 * state_hooks.c calls it. */
#include "worker/library/runtime/state/layout/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/regroup/transfer.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/variables/variable.h"

static void write_variable(FILE *to, const cadre_variable *variable)
{
    CADRE_ASSERT(variable->aggregation <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA);
    static const char *const kinds[] = {[CADRE_VARIABLE_REGULAR] = "regular",
        [CADRE_VARIABLE_MIRRORED] = "mirrored",
        [CADRE_VARIABLE_SYNC_ON_READ] = "combined when read",
        [CADRE_VARIABLE_AGGREGATING] = "stored once"};
    static const char *const aggregations[] = {
        "no aggregation", "sum", "mean", "only the first replica"};
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    fprintf(to, "variable '%s': %s, %s, %s%s\n", variable->name,
        tensor_shape_text(variable->dtype, variable->rank, variable->dims, shape),
        kinds[variable->kind], aggregations[variable->aggregation],
        variable->origin.in_function ? ", of a replica function" : "");
}

/* One line for each variable in order of name, registered state and dataset; the caller's to free.
 * NULL: no memory. */
static char *layout_text(const cadre_strategy *strategy)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (to == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        write_variable(to, strategy->variables->list[i]);
    }
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        fprintf(to, "registered state '%s': %zu bytes\n", strategy->state_part->registered[i].name,
            strategy->state_part->registered[i].size);
    }
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        if (strategy->input->datasets[i]->iterating.of == NULL) {
            fprintf(to, "dataset '%s'\n", strategy->input->datasets[i]->name);
        }
    }
    bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* A line without its end. */
struct text_line {
    const char *text;
    int length;
    const char *next; /* line; of the last one its end */
};

static struct text_line text_line_at(const char *text)
{
    size_t length = strcspn(text, "\n");
    return (struct text_line){.text = text,
        .length = (int)length,
        .next = text + length + (text[length] == '\n' ? 1 : 0)};
}

static bool are_equal(const struct text_line *a, const struct text_line *b)
{
    return a->length == b->length && memcmp(a->text, b->text, (size_t)a->length) == 0;
}

/* Whether `there` is of a variable that is missing here: not of one of that name. */
static bool is_more(const struct text_line *here, const struct text_line *there)
{
    static const char variable[] = "variable '";
    const char *end = strstr(there->text, "': ");
    if (strncmp(there->text, variable, sizeof variable - 1) != 0 || end == NULL) {
        return false;
    }
    size_t name = (size_t)(end - there->text) + 1;
    return (size_t)here->length < name || memcmp(here->text, there->text, name) != 0;
}

cadre_status state_layout_difference(
    uint32_t rank, const char *own, uint32_t source, const char *theirs, struct cadre_error *error)
{
    struct text_line here = text_line_at(own);
    struct text_line there = text_line_at(theirs);
    while (here.length > 0 || there.length > 0) {
        bool same = are_equal(&here, &there);
        if (!same && !is_more(&here, &there)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the task of rank %u does not make the same variables, registered states and "
                "datasets as the task of rank %u: the first difference is %.*s%s here, %.*s%s "
                "there; run one program",
                rank, source, here.length, here.text, here.length == 0 ? "nothing" : "",
                there.length, there.text, there.length == 0 ? "nothing" : "");
        }
        here = same ? text_line_at(here.next) : here;
        there = text_line_at(there.next);
    }
    return CADRE_OK;
}

/* --- between tasks --- */

struct comparison {
    const char *text; /* at the source */
    char *theirs;     /* at the others; owned */
};

static cadre_status read_text(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    (void)error; /* it is in the host's memory */
    memcpy(into, ((struct comparison *)user)->text + offset, bytes);
    return CADRE_OK;
}

static cadre_status write_text(void *user, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    struct comparison *comparison = user;
    if (comparison->theirs == NULL) {
        comparison->theirs = calloc(1, (size_t)total + 1);
    }
    if (comparison->theirs == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for what another task's state is made of");
    }
    if (bytes > 0) {
        memcpy(comparison->theirs + offset, from, bytes);
    }
    return CADRE_OK;
}

cadre_status state_layout_compare(cadre_strategy *strategy, uint32_t local, uint32_t source,
    bool differs, struct cadre_error *error)
{
    bool takes = differs && local == 0;
    bool sends = strategy->roster.rank == source && local == 0;
    CADRE_FREE_AT_EXIT char *own = takes || sends ? layout_text(strategy) : NULL;
    if ((takes || sends) && own == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for what this task's state is made of");
    }
    struct comparison comparison = {.text = own};
    const struct transfer transfer = {.what = "what the state is made of",
        .source = source,
        .bytes = sends ? strlen(own) : 0,
        .read = read_text,
        .write = takes ? write_text : NULL,
        .user = &comparison};
    struct cadre_error difference = {0};
    struct cadre_error received = {0};
    cadre_status status = transfer_run(strategy, local, &transfer, error);
    if (status == CADRE_OK && takes) {
        CADRE_ASSERT(comparison.theirs != NULL);
        state_layout_difference(strategy->roster.rank, own, source, comparison.theirs, &difference);
    }
    free(comparison.theirs);
    int64_t misfits = difference.code != CADRE_OK ? 1 : 0;
    const struct mesh_buffer sum = {.data = &misfits, .bytes = sizeof misfits, .dtype = MESH_I64};
    if (status == CADRE_OK) {
        status =
            strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_SUM, &sum, 1, NULL, error);
    }
    if (status == CADRE_OK && misfits > 0) {
        status = collective_share_first_error(strategy, local, &difference, &received, error);
    }
    if (status != CADRE_OK || misfits == 0) {
        return status;
    }
    return difference.code != CADRE_OK
               ? cadre_error_set(error, difference.code, "%s", difference.text)
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s", received.text);
}
