/* SPDX-License-Identifier: Apache-2.0
 * Parameters as checkpoints see them: each one logical tensor, whatever its shards; then what its
 * optimizer remembers, and how many updates each shard has seen. Read piece by piece, by the writer
 * of checkpoints, while others push. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/runtime/parameters/parameter_call.h"

static struct parameters *of(struct streamed *streamed)
{
    return (struct parameters *)streamed; /* its first member */
}

/* Value, slots, and the counts where there are slots. */
static uint32_t parts_of(const cadre_parameter *parameter)
{
    uint32_t slots = training_slots(&parameter->training);
    return 1 + slots + (slots > 0 ? 1 : 0);
}

static bool is_updates(const cadre_parameter *parameter, uint32_t part)
{
    return part > training_slots(&parameter->training);
}

static uint32_t count(struct streamed *streamed)
{
    uint32_t total = 0;
    const cadre_parameter *parameter;
    for (uint32_t i = 0; (parameter = parameters_at(of(streamed), i)) != NULL; i++) {
        total += parts_of(parameter);
    }
    return total;
}

/* The parameter of tensor i, and which part of it that is. */
static cadre_parameter *find(struct streamed *streamed, uint32_t i, uint32_t *ret_part)
{
    cadre_parameter *parameter;
    for (uint32_t at = 0; (parameter = parameters_at(of(streamed), at)) != NULL; at++) {
        uint32_t parts = parts_of(parameter);
        if (i < parts) {
            *ret_part = i;
            return parameter;
        }
        i -= parts;
    }
    CADRE_ASSERT(false);
    return NULL;
}

static void describe(struct streamed *streamed, uint32_t i, struct safetensors_entry *ret_entry)
{
    uint32_t part = 0;
    const cadre_parameter *parameter = find(streamed, i, &part);
    *ret_entry = (struct safetensors_entry){0};
    if (is_updates(parameter, part)) {
        snprintf(ret_entry->name, sizeof ret_entry->name, "%s/" TRAINING_UPDATES, parameter->name);
        ret_entry->dtype = CADRE_I64;
        ret_entry->rank = 1;
        ret_entry->dims[0] = (int64_t)parameter->layout.shards;
        ret_entry->bytes = (size_t)parameter->layout.shards * sizeof(int64_t);
        return;
    }
    snprintf(ret_entry->name, sizeof ret_entry->name, "%s%s%s", parameter->name,
        part == 0 ? "" : "/", part == 0 ? "" : training_slot_name(&parameter->training, part - 1));
    ret_entry->dtype = parameter->dtype;
    ret_entry->rank = parameter->rank;
    ret_entry->bytes = parameter->bytes;
    memcpy(ret_entry->dims, parameter->dims, sizeof ret_entry->dims);
}

/* --- reading --- */

static cadre_status read_rows(cadre_parameter *parameter, uint32_t part, streamed_sink *sink,
    void *user, struct cadre_error *error)
{
    uint64_t rows = parameter->bytes == 0 ? 0 : parameter->layout.rows;
    uint64_t most = parameter_piece_rows(parameter);
    most = most < rows ? most : rows;
    CADRE_FREE_AT_EXIT char *values = malloc((size_t)most * parameter->row_bytes + 1);
    if (values == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %llu rows of parameter '%s'", (unsigned long long)most, parameter->name);
    }
    const struct request like = {.kind = part == 0 ? REQUEST_PULL : REQUEST_SLOT,
        .slot = part == 0 ? 0 : part - 1,
        .into = values};
    for (uint64_t at = 0; at < rows; at += most) {
        struct row_range piece = {.first = at, .rows = rows - at < most ? rows - at : most};
        CADRE_TRY(parameter_call_range(parameter, piece, &like, NULL, NULL, error));
        CADRE_TRY(sink(user, values, (size_t)piece.rows * parameter->row_bytes, error));
    }
    return CADRE_OK;
}

static cadre_status read_updates(
    cadre_parameter *parameter, streamed_sink *sink, void *user, struct cadre_error *error)
{
    size_t shards = (size_t)parameter->layout.shards;
    CADRE_FREE_AT_EXIT struct request *requests = calloc(shards, sizeof *requests);
    CADRE_FREE_AT_EXIT int64_t *counts = malloc(shards * sizeof *counts);
    if (requests == NULL || counts == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the counts of parameter '%s'", parameter->name);
    }
    for (size_t i = 0; i < shards; i++) {
        requests[i] = (struct request){.kind = REQUEST_SLOT,
            .server = parameter->shards[i].server,
            .shard = parameter->shards[i].number,
            .row_bytes = parameter->row_bytes};
    }
    CADRE_TRY(parameter_send(parameter, requests, shards, error));
    for (size_t i = 0; i < shards; i++) {
        counts[i] = (int64_t)requests[i].updates;
    }
    return sink(user, counts, shards * sizeof *counts, error);
}

static cadre_status read_tensor(struct streamed *streamed, uint32_t i, streamed_sink *sink,
    void *user, struct cadre_error *error)
{
    uint32_t part = 0;
    cadre_parameter *parameter = find(streamed, i, &part);
    return is_updates(parameter, part) ? read_updates(parameter, sink, user, error)
                                       : read_rows(parameter, part, sink, user, error);
}

/* --- whether something has changed --- */

static bool stamp_of(const cadre_parameter *parameter, uint64_t *stamp)
{
    size_t shards = (size_t)parameter->layout.shards;
    CADRE_FREE_AT_EXIT struct request *requests = calloc(shards, sizeof *requests);
    struct cadre_error ignored; /* then it cannot be told, and is written again */
    if (requests == NULL) {
        return false;
    }
    for (size_t i = 0; i < shards; i++) {
        requests[i] = (struct request){.kind = REQUEST_PULL,
            .server = parameter->shards[i].server,
            .shard = parameter->shards[i].number,
            .row_bytes = parameter->row_bytes};
    }
    if (parameter_send(parameter, requests, shards, &ignored) != CADRE_OK) {
        return false;
    }
    for (size_t i = 0; i < shards; i++) {
        *stamp = prng_mix(*stamp ^ requests[i].ret_version);
    }
    return true;
}

static bool stamp(struct streamed *streamed, uint64_t *ret_stamp)
{
    const cadre_parameter *parameter;
    bool told = true;
    *ret_stamp = 0;
    for (uint32_t i = 0; told && (parameter = parameters_at(of(streamed), i)) != NULL; i++) {
        told = stamp_of(parameter, ret_stamp);
    }
    return told;
}

const struct streamed_ops parameters_streamed_ops = {
    .count = count, .describe = describe, .read = read_tensor, .stamp = stamp};
