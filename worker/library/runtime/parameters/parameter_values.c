/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/parameters/parameter_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/parameters/parameter_call.h"
#include "worker/library/runtime/state/checkpoint_read.h"
#include "worker/library/runtime/state/restoration.h"
#include "worker/library/runtime/state/restore.h"
#include "worker/library/runtime/state/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* --- pieces --- */

/* Fills `values` with rows of the parameter; they are zero before. Then they are sent as `like`
 * says. */
typedef cadre_status piece_function(void *user, const cadre_parameter *parameter,
    struct row_range piece, void *values, struct cadre_error *error);

static cadre_status send_pieces(cadre_parameter *parameter, const struct request *like,
    piece_function *fill, void *user, struct cadre_error *error)
{
    CADRE_ASSERT(like->kind == REQUEST_PUSH || like->kind == REQUEST_SET_SLOT);
    struct request request = *like;
    uint64_t most = parameter_piece_rows(parameter);
    uint64_t rows = parameter->bytes == 0 ? 0 : parameter->layout.rows;
    most = most < rows ? most : rows;
    CADRE_ASSERT(most > 0 || rows == 0);
    CADRE_FREE_AT_EXIT char *values = malloc((size_t)most * parameter->row_bytes + 1);
    if (values == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %llu rows of parameter '%s'", (unsigned long long)most, parameter->name);
    }
    for (uint64_t at = 0; at < rows; at += most) {
        struct row_range piece = {.first = at, .rows = rows - at < most ? rows - at : most};
        memset(values, 0, (size_t)piece.rows * parameter->row_bytes);
        CADRE_TRY(fill(user, parameter, piece, values, error));
        request.values = values;
        CADRE_TRY(parameter_call_range(parameter, piece, &request, NULL, NULL, error));
    }
    return CADRE_OK;
}

/* By closure 0: it is no push that counts, and may be sent again. */
static const struct request assigning = {
    .kind = REQUEST_PUSH, .push = {.kind = PUSH_ASSIGN, .based_on = PUSH_ANY_VERSION}};

/* --- initial values --- */

static cadre_status fill_initial(void *user, const cadre_parameter *parameter,
    struct row_range piece, void *values, struct cadre_error *error)
{
    const struct initializer_of of = {.what = "parameter",
        .name = parameter->name,
        .dtype = parameter->dtype,
        .first = (int64_t)(piece.first * parameter->row_elements)};
    return initializer_fill_piece(
        user, &of, (int64_t)(piece.rows * parameter->row_elements), values, error);
}

cadre_status parameter_initialize(
    cadre_parameter *parameter, const cadre_initializer *initializer, struct cadre_error *error)
{
    cadre_initializer copy = *initializer;
    if (initializer->kind == CADRE_INITIALIZER_ZEROS && !parameter->parameters->unfinished) {
        return CADRE_OK; /* shards begin so */
    }
    return send_pieces(parameter, &assigning, fill_initial, &copy, error);
}

/* --- from a checkpoint --- */

struct saved {
    struct checkpoint_reader *reader;
    const struct safetensors_entry *entry;
};

static cadre_status fill_saved(void *user, const cadre_parameter *parameter, struct row_range piece,
    void *values, struct cadre_error *error)
{
    const struct saved *saved = user;
    CADRE_ASSERT(saved->entry != NULL);
    CADRE_ASSERT(saved->entry->rank == parameter->rank);
    return checkpoint_reader_read(saved->reader, saved->entry,
        (size_t)piece.first * parameter->row_bytes, values,
        (size_t)piece.rows * parameter->row_bytes, error);
}

/* The entry "<name>" or "<name>/<part>", of that type and shape. */
static cadre_status find_entry(struct checkpoint_reader *reader, const cadre_parameter *parameter,
    const char *part, const struct safetensors_entry **ret_entry, struct cadre_error *error)
{
    char name[SAFETENSORS_NAME_BYTES];
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    snprintf(name, sizeof name, "%s%s%s", parameter->name, part[0] == '\0' ? "" : "/", part);
    const struct safetensors_entry *entry = checkpoint_reader_find(reader, name);
    *ret_entry = entry;
    if (entry == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "it holds no '%s', which the program wants", name);
    }
    if (entry->dtype != parameter->dtype || entry->rank != parameter->rank ||
        memcmp(entry->dims, parameter->dims, entry->rank * sizeof entry->dims[0]) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds '%s' as %s, and the program wants %s", name,
            tensor_shape_text(entry->dtype, entry->rank, entry->dims, is),
            tensor_shape_text(parameter->dtype, parameter->rank, parameter->dims, wanted));
    }
    return CADRE_OK;
}

/* "<name>/updates" or "<name>/steps": what the shards that were had. *ret_counts, one for each, is
 * to be freed. */
static cadre_status read_counts(struct checkpoint_reader *reader, const cadre_parameter *parameter,
    uint32_t part, int64_t **ret_counts, uint64_t *ret_shards, struct cadre_error *error)
{
    char name[SAFETENSORS_NAME_BYTES];
    const struct safetensors_entry *entry = checkpoint_reader_find(
        reader, parameter_part_name(parameter->name, &parameter->training, part, name));
    uint64_t rows = parameter->layout.rows;
    if (entry == NULL || entry->dtype != CADRE_I64 || entry->rank != 1 || entry->dims[0] < 1 ||
        ((uint64_t)entry->dims[0] > rows && entry->dims[0] > 1)) {
        return cadre_error_set(error, entry == NULL ? CADRE_NOT_FOUND : CADRE_INVALID_ARGUMENT,
            "it holds no '%s' with a count for each shard; use another checkpoint", name);
    }
    *ret_shards = (uint64_t)entry->dims[0];
    *ret_counts = malloc(entry->bytes);
    return *ret_counts != NULL
               ? checkpoint_reader_read(reader, entry, 0, *ret_counts, entry->bytes, error)
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for '%s'", name);
}

/* Of a shard that is made of parts of others the most that one of those had. */
static uint64_t count_of(
    const cadre_parameter *parameter, uint64_t shard, const int64_t *counts, uint64_t shards)
{
    CADRE_ASSERT(shard < parameter->layout.shards);
    CADRE_ASSERT(shards > 0);
    struct partition_layout before = {.rows = parameter->layout.rows, .shards = shards};
    uint64_t first = partition_first(parameter->layout, shard);
    uint64_t rows = partition_rows(parameter->layout, shard);
    uint64_t begin = rows == 0 ? 0 : partition_owner(before, first);
    uint64_t last = rows == 0 ? 0 : partition_owner(before, first + rows - 1);
    uint64_t most = 0;
    for (uint64_t i = begin; i <= last; i++) {
        most = counts[i] > 0 && (uint64_t)counts[i] > most ? (uint64_t)counts[i] : most;
    }
    return most;
}

/* The counts alone, with no rows, after the slots themselves. */
static cadre_status restore_counts(struct checkpoint_reader *reader, cadre_parameter *parameter,
    uint32_t part, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *counts = NULL;
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    uint64_t shards = 0;
    uint32_t slot = 0;
    bool steps = parameter_part(&parameter->training, part, &slot) == PART_STEPS;
    CADRE_TRY(read_counts(reader, parameter, part, &counts, &shards, error));
    requests = calloc((size_t)parameter->layout.shards, sizeof *requests);
    if (requests == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for requests");
    }
    for (uint64_t shard = 0; shard < parameter->layout.shards; shard++) {
        uint64_t count = count_of(parameter, shard, counts, shards);
        requests[shard] = (struct request){.kind = steps ? REQUEST_BEGIN_STEP : REQUEST_SET_SLOT,
            .server = parameter->shards[shard].server,
            .shard = parameter->shards[shard].number,
            .row_bytes = parameter->row_bytes,
            .updates = count,
            .least_steps = count};
    }
    return parameter_send(parameter, requests, (size_t)parameter->layout.shards, error);
}

/* Checkpoints that others wrote need not have counted steps: then they begin at 0. */
static bool has_steps(
    struct checkpoint_reader *reader, const cadre_parameter *parameter, uint32_t part)
{
    char name[SAFETENSORS_NAME_BYTES];
    parameter_part_name(parameter->name, &parameter->training, part, name);
    return checkpoint_reader_find(reader, name) != NULL;
}

static cadre_status restore_value(
    struct checkpoint_reader *reader, cadre_parameter *parameter, struct cadre_error *error)
{
    struct saved saved = {.reader = reader};
    CADRE_TRY(find_entry(reader, parameter, "", &saved.entry, error));
    return send_pieces(parameter, &assigning, fill_saved, &saved, error);
}

static cadre_status restore_from(
    struct checkpoint_reader *reader, cadre_parameter *parameter, struct cadre_error *error)
{
    struct saved saved = {.reader = reader};
    uint32_t slots = training_slots(&parameter->training);
    CADRE_TRY(restore_value(reader, parameter, error));
    for (uint32_t slot = 0; slot < slots; slot++) {
        const struct request like = {.kind = REQUEST_SET_SLOT, .slot = slot};
        CADRE_TRY(find_entry(reader, parameter, training_slot_name(&parameter->training, slot),
            &saved.entry, error));
        CADRE_TRY(send_pieces(parameter, &like, fill_saved, &saved, error));
    }
    if (slots > 0) {
        CADRE_TRY(restore_counts(reader, parameter, slots + 1, error));
    }
    uint32_t last = parameter_parts(&parameter->training) - 1;
    return has_steps(reader, parameter, last) ? restore_counts(reader, parameter, last, error)
                                              : CADRE_OK;
}

/* What the program takes values from. An optimizer that is not in it begins anew. */
static cadre_status take_value(
    struct restoration *restoration, cadre_parameter *parameter, struct cadre_error *error)
{
    struct checkpoint_reader *reader;
    char slot[SAFETENSORS_NAME_BYTES];
    uint32_t slots = training_slots(&parameter->training);
    CADRE_TRY(restoration_reader(restoration, &reader, error));
    snprintf(slot, sizeof slot, "%s/%s", parameter->name,
        slots == 0 ? "" : training_slot_name(&parameter->training, 0));
    bool whole = slots > 0 && restoration_find(restoration, slot) != NULL;
    cadre_status status =
        whole ? restore_from(reader, parameter, error) : restore_value(reader, parameter, error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "%s", restoration->path);
}

cadre_status parameter_restore(const struct cadre_strategy *strategy, cadre_parameter *parameter,
    bool *ret_restored, struct cadre_error *error)
{
    struct parameters *parameters = parameter->parameters;
    const char *path = strategy->environment->restore_path;
    struct restoration *restoration = strategy->state_part->restoration;
    *ret_restored = restoration_find(restoration, parameter->name) != NULL;
    if (*ret_restored) {
        return take_value(restoration, parameter, error);
    }
    if (path[0] == '\0' || strategy->roster.resume == 0) {
        return CADRE_OK;
    }
    cadre_status status = CADRE_OK;
    if (parameters->reader == NULL) {
        status = checkpoint_reader_open(strategy, path, &parameters->reader, error);
    }
    if (status == CADRE_OK && strategy->state != STATE_RESTORES &&
        checkpoint_reader_find(parameters->reader, parameter->name) == NULL) {
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        status = restore_from(parameters->reader, parameter, error);
    }
    *ret_restored = status == CADRE_OK;
    return status == CADRE_OK ? CADRE_OK : restore_failed(path, status, error);
}
