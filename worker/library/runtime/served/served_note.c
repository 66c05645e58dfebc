/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/served/served_note.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

#define MAGIC       0x50524443u /* "CDRP" */
#define VERSION     2u
#define HEAD_BYTES  20u
#define SHARD_BYTES 8u

/* --- numbers --- */

struct note_cursor {
    uint8_t *at; /* of what is written */
    const uint8_t *from;
    size_t left;
    bool short_of; /* more was asked for than there is */
};

static void put(struct note_cursor *cursor, uint64_t value, size_t bytes)
{
    CADRE_ASSERT(bytes <= sizeof value);
    CADRE_ASSERT(cursor->left >= bytes);
    for (size_t i = 0; i < bytes; i++) {
        cursor->at[i] = (uint8_t)(value >> (8 * i));
    }
    cursor->at += bytes;
    cursor->left -= bytes;
}

static uint64_t take(struct note_cursor *cursor, size_t bytes)
{
    uint64_t value = 0;
    CADRE_ASSERT(bytes <= sizeof value);
    if (cursor->left < bytes) {
        cursor->short_of = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)cursor->from[i] << (8 * i);
    }
    cursor->from += bytes;
    cursor->left -= bytes;
    return value;
}

/* --- encoding --- */

cadre_status served_note_encode(
    const cadre_variable *variable, void **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    CADRE_ASSERT(variable->served->layout.shards > 0);
    CADRE_ASSERT(variable->rank <= CADRE_RANK_MAX);
    size_t size =
        HEAD_BYTES + variable->rank * 8 + 8 + (size_t)variable->served->layout.shards * SHARD_BYTES;
    uint8_t *bytes = malloc(size);
    *ret_bytes = bytes;
    *ret_size = size;
    if (bytes == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to describe '%s'", variable->name);
    }
    struct note_cursor cursor = {.at = bytes, .left = size};
    put(&cursor, MAGIC, 4);
    put(&cursor, VERSION, 4);
    put(&cursor, (uint64_t)variable->dtype, 4);
    put(&cursor, variable->rank, 4);
    put(&cursor, (uint64_t)variable->aggregation, 4);
    for (uint32_t axis = 0; axis < variable->rank; axis++) {
        put(&cursor, (uint64_t)variable->dims[axis], 8);
    }
    put(&cursor, variable->served->layout.shards, 8);
    for (uint64_t shard = 0; shard < variable->served->layout.shards; shard++) {
        put(&cursor, variable->served->shards[shard].server, 4);
        put(&cursor, variable->served->shards[shard].number, 4);
    }
    CADRE_ASSERT(cursor.left == 0);
    return CADRE_OK;
}

/* --- decoding --- */

static cadre_status damaged(const char *name, const char *what, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_DATA_LOSS, "what ps 0 noted of variable '%s' cannot be read: %s", name, what);
}

static bool take_shards(struct note_cursor *cursor, struct served *served)
{
    uint32_t servers = directory_self(served->all->ps_job->directory)->ps_job.servers;
    bool good = true;
    for (uint64_t shard = 0; shard < served->layout.shards; shard++) {
        uint32_t server = (uint32_t)take(cursor, 4);
        served_set_shard(served, shard, server);
        served->shards[shard].number = (uint32_t)take(cursor, 4);
        good = good && server < servers;
    }
    return good;
}

cadre_status served_note_decode(struct served_variables *all, const char *name, const void *bytes,
    size_t size, cadre_variable **ret_variable, struct cadre_error *error)
{
    struct note_cursor cursor = {.from = bytes, .left = size};
    cadre_variable_options options = {0};
    struct variable_plan plan = {.name = name, .options = &options};
    int64_t dims[CADRE_RANK_MAX];
    *ret_variable = NULL;
    if (take(&cursor, 4) != MAGIC || take(&cursor, 4) != VERSION) {
        return damaged(name, "it is of another kind", error);
    }
    plan.dtype = (cadre_dtype)take(&cursor, 4);
    plan.rank = (uint32_t)take(&cursor, 4);
    plan.dims = dims;
    options.aggregation = (cadre_aggregation)take(&cursor, 4);
    if (options.aggregation > CADRE_AGGREGATION_ONLY_FIRST_REPLICA || plan.rank > CADRE_RANK_MAX ||
        plan.dtype == CADRE_STRING) {
        return damaged(name, "it has no such shape", error);
    }
    for (uint32_t axis = 0; axis < plan.rank; axis++) {
        dims[axis] = (int64_t)take(&cursor, 8);
    }
    uint64_t shards = take(&cursor, 8);
    uint64_t rows = plan.rank == 0 ? 1 : (uint64_t)dims[0];
    if (cursor.short_of || shards == 0 || (shards > 1 && shards > rows) ||
        cursor.left / SHARD_BYTES != shards || cursor.left % SHARD_BYTES != 0) {
        return damaged(name, "its parts do not fit together", error);
    }
    CADRE_TRY(served_new(all, &plan, shards, ret_variable, error));
    if (!take_shards(&cursor, (*ret_variable)->served)) {
        variable_free(*ret_variable);
        *ret_variable = NULL;
        return damaged(name, "it names a server that is not there", error);
    }
    return CADRE_OK;
}
