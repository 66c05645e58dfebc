/* SPDX-License-Identifier: Apache-2.0
 * Encodes and decodes the note of a variable. */
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
    uint8_t *at; /* the next byte to write */
    const uint8_t *from;
    size_t left;
    bool short_of; /* fewer bytes were left than were read */
};

static void served_note_put(struct note_cursor *cursor, uint64_t value, size_t bytes)
{
    CADRE_ASSERT(bytes <= sizeof value);
    CADRE_ASSERT(cursor->left >= bytes);
    for (size_t i = 0; i < bytes; i++) {
        cursor->at[i] = (uint8_t)(value >> (8 * i));
    }
    cursor->at += bytes;
    cursor->left -= bytes;
}

static uint64_t served_note_take(struct note_cursor *cursor, size_t bytes)
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
    served_note_put(&cursor, MAGIC, 4);
    served_note_put(&cursor, VERSION, 4);
    served_note_put(&cursor, (uint64_t)variable->dtype, 4);
    served_note_put(&cursor, variable->rank, 4);
    served_note_put(&cursor, (uint64_t)variable->aggregation, 4);
    for (uint32_t axis = 0; axis < variable->rank; axis++) {
        served_note_put(&cursor, (uint64_t)variable->dims[axis], 8);
    }
    served_note_put(&cursor, variable->served->layout.shards, 8);
    for (uint64_t shard = 0; shard < variable->served->layout.shards; shard++) {
        served_note_put(&cursor, variable->served->shards[shard].server, 4);
        served_note_put(&cursor, variable->served->shards[shard].number, 4);
    }
    CADRE_ASSERT(cursor.left == 0);
    return CADRE_OK;
}

/* --- decoding --- */

static cadre_status served_note_damaged(
    const char *name, const char *what, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_DATA_LOSS, "what ps 0 noted of variable '%s' cannot be read: %s", name, what);
}

static bool take_shards(struct note_cursor *cursor, struct served *served)
{
    uint32_t servers = directory_self(served->all->ps_job->directory)->ps_job.servers;
    bool good = true;
    for (uint64_t shard = 0; shard < served->layout.shards; shard++) {
        uint32_t server = (uint32_t)served_note_take(cursor, 4);
        served_set_shard(served, shard, server);
        served->shards[shard].number = (uint32_t)served_note_take(cursor, 4);
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
    if (served_note_take(&cursor, 4) != MAGIC || served_note_take(&cursor, 4) != VERSION) {
        return served_note_damaged(name, "it is of another kind", error);
    }
    plan.dtype = (cadre_dtype)served_note_take(&cursor, 4);
    plan.rank = (uint32_t)served_note_take(&cursor, 4);
    plan.dims = dims;
    options.aggregation = (cadre_aggregation)served_note_take(&cursor, 4);
    if (options.aggregation > CADRE_AGGREGATION_ONLY_FIRST_REPLICA || plan.rank > CADRE_RANK_MAX ||
        plan.dtype == CADRE_STRING) {
        return served_note_damaged(name, "it has no such shape", error);
    }
    for (uint32_t axis = 0; axis < plan.rank; axis++) {
        dims[axis] = (int64_t)served_note_take(&cursor, 8);
    }
    uint64_t shards = served_note_take(&cursor, 8);
    uint64_t rows = plan.rank == 0 ? 1 : (uint64_t)dims[0];
    if (cursor.short_of || shards == 0 || (shards > 1 && shards > rows) ||
        cursor.left / SHARD_BYTES != shards || cursor.left % SHARD_BYTES != 0) {
        return served_note_damaged(name, "its parts do not fit together", error);
    }
    CADRE_TRY(served_new(all, &plan, shards, ret_variable, error));
    if (!take_shards(&cursor, (*ret_variable)->served)) {
        variable_free(*ret_variable);
        *ret_variable = NULL;
        return served_note_damaged(name, "it names a server that is not there", error);
    }
    return CADRE_OK;
}
