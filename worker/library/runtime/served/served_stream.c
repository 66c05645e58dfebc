/* SPDX-License-Identifier: Apache-2.0
 * Variables on servers for the writer of checkpoints: each one logical tensor, whatever its shards;
 * then its slots and each shard's counts of updates and steps. Read piece by piece, in the writer's
 * thread, while other threads push. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/runtime/served/served_call.h"
#include "worker/library/runtime/served/served_values.h"

static struct served_variables *served_stream_of(struct streamed *streamed)
{
    return (struct served_variables *)streamed; /* its first member */
}

static uint32_t served_stream_count(struct streamed *streamed)
{
    struct served_part part;
    uint32_t total = 0;
    while (served_part_at(served_stream_of(streamed), total, &part)) {
        total++;
    }
    return total;
}

/* i < count. */
static struct served_part served_stream_find(struct streamed *streamed, uint32_t i)
{
    struct served_part part = {0};
    bool found = served_part_at(served_stream_of(streamed), i, &part);
    CADRE_ASSERT(found);
    return part;
}

static void served_stream_describe(
    struct streamed *streamed, uint32_t i, struct safetensors_entry *ret_entry)
{
    const struct served_part part = served_stream_find(streamed, i);
    const cadre_variable *variable = part.variable;
    *ret_entry = (struct safetensors_entry){0};
    served_part_name(&part, ret_entry->name);
    if (part.kind == SERVED_UPDATES || part.kind == SERVED_STEPS) { /* a count for each shard */
        ret_entry->dtype = CADRE_I64;
        ret_entry->rank = 1;
        ret_entry->dims[0] = (int64_t)variable->served->layout.shards;
        ret_entry->bytes = (size_t)variable->served->layout.shards * sizeof(int64_t);
        return;
    }
    ret_entry->dtype = variable->dtype;
    ret_entry->rank = variable->rank;
    ret_entry->bytes = variable->bytes;
    memcpy(ret_entry->dims, variable->dims, sizeof ret_entry->dims);
}

static bool is_part(struct streamed *streamed, uint32_t i)
{
    return served_stream_find(streamed, i).kind != SERVED_VALUE;
}

static bool is_slot(struct streamed *streamed, uint32_t i, bool *ret_counts)
{
    const struct served_part part = served_stream_find(streamed, i);
    *ret_counts = part.kind == SERVED_UPDATES;
    return part.kind == SERVED_SLOT || part.kind == SERVED_UPDATES;
}

/* --- reading --- */

/* `like`: a PULL, or a SLOT. */
static cadre_status read_rows(cadre_variable *variable, const struct request *like,
    streamed_sink *sink, void *user, struct cadre_error *error)
{
    CADRE_ASSERT(like->kind == REQUEST_PULL || like->kind == REQUEST_SLOT);
    struct request request = *like;
    uint64_t rows = variable->bytes == 0 ? 0 : variable->served->layout.rows;
    uint64_t most = served_piece_rows(variable);
    most = most < rows ? most : rows;
    CADRE_ASSERT(most > 0 || rows == 0);
    CADRE_FREE_AT_EXIT char *values = malloc((size_t)most * variable->served->row_bytes + 1);
    if (values == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %llu rows of variable '%s'", (unsigned long long)most, variable->name);
    }
    request.into = values;
    for (uint64_t at = 0; at < rows; at += most) {
        struct row_range piece = {.first = at, .rows = rows - at < most ? rows - at : most};
        CADRE_TRY(served_call_range(variable, piece, &request, NULL, NULL, error));
        CADRE_TRY(sink(user, values, (size_t)piece.rows * variable->served->row_bytes, error));
    }
    return CADRE_OK;
}

/* The counts of updates or of steps, from answers without rows. */
static cadre_status read_counts(cadre_variable *variable, bool steps, streamed_sink *sink,
    void *user, struct cadre_error *error)
{
    size_t shards = (size_t)variable->served->layout.shards;
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    CADRE_FREE_AT_EXIT int64_t *counts = malloc(shards * sizeof *counts);
    const struct request like = {.kind = steps ? REQUEST_PULL : REQUEST_SLOT};
    if (counts == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the counts of variable '%s'", variable->name);
    }
    CADRE_TRY(served_call_shards(variable, &like, &requests, error));
    for (size_t i = 0; i < shards; i++) {
        counts[i] = (int64_t)(steps ? requests[i].ret_steps : requests[i].updates);
    }
    return sink(user, counts, shards * sizeof *counts, error);
}

static cadre_status read_tensor(struct streamed *streamed, uint32_t i, streamed_sink *sink,
    void *user, struct cadre_error *error)
{
    const struct served_part part = served_stream_find(streamed, i);
    struct request like = {.kind = REQUEST_PULL, .slot = part.slot};
    switch (part.kind) {
    case SERVED_VALUE:
        return read_rows(part.variable, &like, sink, user, error);
    case SERVED_SLOT:
        like.kind = REQUEST_SLOT;
        return read_rows(part.variable, &like, sink, user, error);
    case SERVED_UPDATES:
        return read_counts(part.variable, false, sink, user, error);
    default:
        return read_counts(part.variable, true, sink, user, error);
    }
}

static cadre_status served_stream_take(struct streamed *streamed,
    const struct cadre_strategy *strategy, uint32_t i, struct cadre_error *error)
{
    const struct served_part part = served_stream_find(streamed, i);
    struct served *served = part.variable->served;
    CADRE_ASSERT(part.kind == SERVED_VALUE);
    CADRE_TRY(served_restore(strategy, part.variable, &served->restored, error));
    CADRE_ASSERT(served->restored);
    if (served->rule.kind != OPTIMIZER_NONE) {
        CADRE_TRY(served_restore_slots(part.variable, &served->rule, error));
    }
    return CADRE_OK;
}

/* --- whether something has changed --- */

static bool stamp_of(const cadre_variable *variable, uint64_t *stamp)
{
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    const struct request like = {.kind = REQUEST_PULL};
    struct cadre_error ignored; /* on an error it counts as changed */
    if (served_call_shards(variable, &like, &requests, &ignored) != CADRE_OK) {
        return false;
    }
    for (size_t i = 0; i < variable->served->layout.shards; i++) {
        *stamp = prng_mix(*stamp ^ requests[i].ret_version);
    }
    return true;
}

static bool served_stream_stamp(struct streamed *streamed, uint64_t *ret_stamp)
{
    const cadre_variable *variable;
    bool known = true;
    *ret_stamp = served_stream_count(streamed); /* a trained one has more entries */
    for (uint32_t i = 0; known && (variable = served_at(served_stream_of(streamed), i)) != NULL;
         i++) {
        known = stamp_of(variable, ret_stamp);
    }
    return known;
}

const struct streamed_ops served_streamed_ops = {.count = served_stream_count,
    .describe = served_stream_describe,
    .is_part = is_part,
    .is_slot = is_slot,
    .read = read_tensor,
    .take = served_stream_take,
    .stamp = served_stream_stamp};
