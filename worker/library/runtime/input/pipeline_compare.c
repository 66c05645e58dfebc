/* SPDX-License-Identifier: Apache-2.0
 * Whether all tasks distribute the same pipeline. One that lists other files, or that was built
 * with other parameters, would read samples twice or not at all, unnoticed; one that is divided in
 * another way, or ends an epoch elsewhere, would wait for the others for ever. Compared are its
 * description (dataset_describe) and the options in which all must agree; functions of the program
 * cannot be. distribute.c calls it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/strategy/strategy.h"

#define EXCERPT_BYTES 192 /* of a message that shows two of them */

/* A text line that is too long is shown around its byte `at`, after the name of the node. */
static void copy_excerpt(const char *text_line, size_t at, char into[EXCERPT_BYTES])
{
    size_t indent = strspn(text_line, " ");
    text_line += indent;
    at = at > indent ? at - indent : 0;
    size_t length = strcspn(text_line, "\n");
    size_t from = 0;
    if (length >= EXCERPT_BYTES && at > EXCERPT_BYTES / 2) {
        size_t latest = at - EXCERPT_BYTES / 4;
        for (from = latest; from > at - EXCERPT_BYTES / 2 && text_line[from - 1] != ' ';) {
            from--; /* to the beginning of a word, if one is near */
        }
    }
    int name = from > 0 ? (int)strcspn(text_line, ":\n") : 0;
    name = name > EXCERPT_BYTES / 8 ? EXCERPT_BYTES / 8 : name;
    int before = snprintf(into, EXCERPT_BYTES, "%.*s%s", name, text_line, from > 0 ? ": ... " : "");
    CADRE_ASSERT(before >= 0);
    CADRE_ASSERT(before < EXCERPT_BYTES);
    size_t room = EXCERPT_BYTES - 1 - (size_t)before;
    bool fits = length - from <= room;
    snprintf(into + before, room + 1, "%.*s%s", (int)(fits ? length - from : room - 3),
        text_line + from, fits ? "" : "...");
}

/* Excerpts of the first text lines in which both differ; at an end "nothing more". */
static void first_difference(
    const char *a, const char *b, char of_a[EXCERPT_BYTES], char of_b[EXCERPT_BYTES])
{
    const char *text_line_a = a;
    const char *text_line_b = b;
    while (*a != '\0' && *a == *b) {
        if (*a == '\n') {
            text_line_a = a + 1;
            text_line_b = b + 1;
        }
        a++;
        b++;
    }
    size_t at = (size_t)(a - text_line_a);
    copy_excerpt(*text_line_a == '\0' ? "nothing more" : text_line_a, at, of_a);
    copy_excerpt(*text_line_b == '\0' ? "nothing more" : text_line_b, at, of_b);
}

/* --- all of them --- */

struct comparing {
    const char *own; /* this task's description */
    bool differs;    /* on some task */
    uint32_t rank;   /* the lowest that does */
    char chief[EXCERPT_BYTES];
    char theirs[EXCERPT_BYTES];
};

static cadre_status describe_difference(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    void *data, size_t bytes, struct cadre_error *error)
{
    const struct mesh_buffer buffer = {.data = data, .bytes = bytes, .dtype = MESH_U8};
    return strategy->mesh->ops->broadcast(
        strategy->mesh, local, rank * strategy->local_replicas, &buffer, 1, NULL, error);
}

static uint64_t hash_of(const char *text)
{
    uint64_t key = 0;
    for (; *text != '\0'; text++) {
        key = collective_key(key, (unsigned char)*text);
    }
    return key;
}

/* They differ: the chief broadcasts its description, and the first task that differs shows both. */
static cadre_status find_difference(cadre_strategy *strategy, uint32_t local,
    struct comparing *comparing, struct cadre_error *error)
{
    const char *own = comparing->own;
    bool chief = strategy->roster.rank == 0;
    uint64_t bytes = chief ? strlen(own) + 1 : 0;
    CADRE_TRY(describe_difference(strategy, local, 0, &bytes, sizeof bytes, error));
    CADRE_FREE_AT_EXIT char *text = calloc(bytes == 0 ? 1 : (size_t)bytes, 1);
    if (text == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the description of a dataset");
    }
    if (chief) {
        memcpy(text, own, (size_t)bytes);
    }
    CADRE_TRY(describe_difference(strategy, local, 0, text, (size_t)bytes, error));
    int64_t rank = strcmp(text, own) != 0 ? (int64_t)strategy->roster.rank : INT64_MAX;
    const struct mesh_buffer buffer = {.data = &rank, .bytes = sizeof rank, .dtype = MESH_I64};
    CADRE_TRY(
        strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_MIN, &buffer, 1, NULL, error));
    char lines[2][EXCERPT_BYTES] = {{0}};
    first_difference(text, own, lines[0], lines[1]);
    uint32_t shows = rank == INT64_MAX ? 0 : (uint32_t)rank; /* that task was lost: none differs */
    CADRE_TRY(describe_difference(strategy, local, shows, lines, sizeof lines, error));
    if (local == 0) {
        comparing->differs = rank != INT64_MAX;
        comparing->rank = shows;
        memcpy(comparing->chief, lines[0], EXCERPT_BYTES);
        memcpy(comparing->theirs, lines[1], EXCERPT_BYTES);
    }
    /* All have received it, whichever ends first. One that ended meanwhile changes nothing. */
    struct cadre_error ignored;
    strategy->mesh->ops->barrier(strategy->mesh, local, NULL, &ignored);
    return CADRE_OK;
}

static cadre_status compare_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct comparing *comparing = user;
    CADRE_ASSERT(comparing->own != NULL);
    int64_t hash = (int64_t)(hash_of(comparing->own) >> 1);
    int64_t ends[2] = {hash, -hash}; /* the least, and the greatest */
    const struct mesh_buffer buffer = {.data = ends, .bytes = sizeof ends, .dtype = MESH_I64};
    CADRE_TRY(
        strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_MIN, &buffer, 1, NULL, error));
    if (local == 0) {
        comparing->differs = false;
    }
    return ends[0] == -ends[1] ? CADRE_OK : find_difference(strategy, local, comparing, error);
}

static const char *policy_text(cadre_shard_policy policy)
{
    switch (policy) {
    case CADRE_SHARD_OFF:
        return "CADRE_SHARD_OFF";
    case CADRE_SHARD_AUTO:
        return "CADRE_SHARD_AUTO";
    case CADRE_SHARD_FILE:
        return "CADRE_SHARD_FILE";
    case CADRE_SHARD_DATA:
        return "CADRE_SHARD_DATA";
    case CADRE_SHARD_HINT:
        return "CADRE_SHARD_HINT";
    }
    return "an unknown policy"; /* refused when it is opened */
}

/* The options in one text line, then the pipeline. malloc'ed; NULL without memory. */
static char *text_of(const cadre_distributed_dataset *distributed)
{
    char steps[64] = "epochs as long as the data";
    const char *pipeline =
        distributed->pipeline != NULL ? distributed->pipeline : "pipelines of a function";
    if (distributed->steps_per_epoch > 0) {
        snprintf(steps, sizeof steps, "%" PRIu64 " steps per epoch", distributed->steps_per_epoch);
    }
    const char *rebatch = distributed->rebatch == CADRE_REBATCH_SPLIT ? "CADRE_REBATCH_SPLIT"
                                                                      : "CADRE_REBATCH_TENSORFLOW";
    char *text = NULL;
    int bytes = asprintf(&text, "options: name '%s', %s, %s, %s\n%s", distributed->name,
        policy_text(distributed->policy), rebatch, steps, pipeline);
    return bytes < 0 ? NULL : text;
}

cadre_status pipelines_compare(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    cadre_strategy *strategy = distributed->strategy;
    if (strategy->environment->tasks == 1 || strategy_is_warm(strategy) ||
        strategy_is_catching_up(strategy)) {
        return CADRE_OK; /* alone, or compared when the state arrives */
    }
    CADRE_FREE_AT_EXIT char *own = text_of(distributed);
    struct comparing comparing = {.own = own};
    if (own == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to describe the dataset '%s'", distributed->name);
    }
    char what[STRATEGY_CALL_TEXT_BYTES];
    snprintf(what, sizeof what, "cadre_distribute_dataset of '%s'", distributed->name);
    CADRE_TRY(strategy_between_steps(strategy, what, compare_on_replica, &comparing, error));
    if (!comparing.differs) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "dataset '%s' differs between workers: worker 0 has '%s', worker %" PRIu32
        " has '%s'; all must build it from the same files with the same parameters and options",
        distributed->name, comparing.chief, comparing.rank, comparing.theirs);
}

/* --- joiners --- */

cadre_status pipelines_match(
    const cadre_distributed_dataset *distributed, const char *theirs, struct cadre_error *error)
{
    char lines[2][EXCERPT_BYTES];
    if (distributed->pipeline == NULL || theirs == NULL ||
        strcmp(distributed->pipeline, theirs) == 0) {
        return CADRE_OK;
    }
    first_difference(theirs, distributed->pipeline, lines[0], lines[1]);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "dataset '%s' differs from that of the training to go on with: it has '%s' there and '%s' "
        "here; build it from the same files with the same parameters",
        distributed->name, lines[0], lines[1]);
}
