/* SPDX-License-Identifier: Apache-2.0
 * The first values of variables and slots, sent in pieces of whole rows: initial values, or a
 * checkpoint's. Called by served_create.c and served_train.c. */
#include "worker/library/runtime/served/served_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/served/served_call.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"
#include "worker/library/runtime/state/restore/restoration.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define STEPS   "steps"
#define UPDATES "updates"

/* --- pieces --- */

/* Fills `values`, which are zero, with rows of the variable; then they are sent as `like`. */
typedef cadre_status piece_function(void *user, const cadre_variable *variable,
    struct row_range piece, void *values, struct cadre_error *error);

static cadre_status send_pieces(cadre_variable *variable, const struct request *like,
    piece_function *fill, void *user, struct cadre_error *error)
{
    CADRE_ASSERT(like->kind == REQUEST_PUSH || like->kind == REQUEST_SET_SLOT);
    struct request request = *like;
    uint64_t most = served_piece_rows(variable);
    uint64_t rows = variable->bytes == 0 ? 0 : variable->served->layout.rows;
    most = most < rows ? most : rows;
    CADRE_ASSERT(most > 0 || rows == 0);
    CADRE_FREE_AT_EXIT char *values = malloc((size_t)most * variable->served->row_bytes + 1);
    if (values == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %llu rows of variable '%s'", (unsigned long long)most, variable->name);
    }
    for (uint64_t at = 0; at < rows; at += most) {
        struct row_range piece = {.first = at, .rows = rows - at < most ? rows - at : most};
        memset(values, 0, (size_t)piece.rows * variable->served->row_bytes);
        CADRE_TRY(fill(user, variable, piece, values, error));
        request.values = values;
        CADRE_TRY(served_call_range(variable, piece, &request, NULL, NULL, error));
    }
    return CADRE_OK;
}

/* By closure 0: such a push is not counted and may be sent again. */
static const struct request assigning = {
    .kind = REQUEST_PUSH, .push = {.kind = PUSH_ASSIGN, .based_on = PUSH_ANY_VERSION}};

/* --- initial values --- */

static cadre_status fill_initial(void *user, const cadre_variable *variable, struct row_range piece,
    void *values, struct cadre_error *error)
{
    const struct initializer_of of = {.name = variable->name,
        .dtype = variable->dtype,
        .first = (int64_t)(piece.first * variable->served->row_elements)};
    return initializer_fill_piece(
        user, &of, (int64_t)(piece.rows * variable->served->row_elements), values, error);
}

cadre_status served_initialize(
    cadre_variable *variable, const cadre_initializer *initializer, struct cadre_error *error)
{
    cadre_initializer copy = *initializer;
    if (initializer->kind == CADRE_INITIALIZER_ZEROS && !variable->served->all->unfinished) {
        return CADRE_OK; /* shards begin with zeros */
    }
    return send_pieces(variable, &assigning, fill_initial, &copy, error);
}

/* --- from a checkpoint --- */

struct saved {
    struct checkpoint_reader *reader;
    const struct safetensors_entry *entry;
};

static cadre_status fill_saved(void *user, const cadre_variable *variable, struct row_range piece,
    void *values, struct cadre_error *error)
{
    const struct saved *saved = user;
    CADRE_ASSERT(saved->entry != NULL);
    CADRE_ASSERT(saved->entry->rank == variable->rank);
    return checkpoint_reader_read(saved->reader, saved->entry,
        (size_t)piece.first * variable->served->row_bytes, values,
        (size_t)piece.rows * variable->served->row_bytes, error);
}

/* The entry "<name>" or "<name>/<part>", of that type and shape. */
static cadre_status find_entry(struct checkpoint_reader *reader, const cadre_variable *variable,
    const char *part, const struct safetensors_entry **ret_entry, struct cadre_error *error)
{
    char name[SAFETENSORS_NAME_BYTES];
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    snprintf(name, sizeof name, "%s%s%s", variable->name, part[0] == '\0' ? "" : "/", part);
    const struct safetensors_entry *entry = checkpoint_reader_find(reader, name);
    *ret_entry = entry;
    if (entry == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "it holds no '%s', which the program creates", name);
    }
    if (entry->dtype != variable->dtype || entry->rank != variable->rank ||
        memcmp(entry->dims, variable->dims, entry->rank * sizeof entry->dims[0]) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds '%s' as %s, and the program creates it as %s", name,
            tensor_shape_text(entry->dtype, entry->rank, entry->dims, is),
            tensor_shape_text(variable->dtype, variable->rank, variable->dims, wanted));
    }
    return CADRE_OK;
}

static const struct safetensors_entry *part_of(struct checkpoint_reader *reader,
    const cadre_variable *variable, const char *part, char ret_name[SAFETENSORS_NAME_BYTES])
{
    snprintf(ret_name, SAFETENSORS_NAME_BYTES, "%s/%s", variable->name, part);
    return checkpoint_reader_find(reader, ret_name);
}

/* "<name>/updates" or "<name>/steps": the counts of the shards in the checkpoint. *ret_counts, one
 * for each, is the caller's to free. */
static cadre_status read_counts(struct checkpoint_reader *reader, const cadre_variable *variable,
    const char *part, int64_t **ret_counts, uint64_t *ret_shards, struct cadre_error *error)
{
    char name[SAFETENSORS_NAME_BYTES];
    const struct safetensors_entry *entry = part_of(reader, variable, part, name);
    uint64_t rows = variable->served->layout.rows;
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

/* The count of a new shard is the largest of the old shards whose rows it gets. */
static uint64_t count_of(
    const cadre_variable *variable, uint64_t shard, const int64_t *counts, uint64_t shards)
{
    CADRE_ASSERT(shard < variable->served->layout.shards);
    CADRE_ASSERT(shards > 0);
    struct partition_layout before = {.rows = variable->served->layout.rows, .shards = shards};
    uint64_t first = partition_first(variable->served->layout, shard);
    uint64_t rows = partition_rows(variable->served->layout, shard);
    uint64_t begin = rows == 0 ? 0 : partition_owner(before, first);
    uint64_t last = rows == 0 ? 0 : partition_owner(before, first + rows - 1);
    uint64_t most = 0;
    for (uint64_t i = begin; i <= last; i++) {
        most = counts[i] > 0 && (uint64_t)counts[i] > most ? (uint64_t)counts[i] : most;
    }
    return most;
}

/* Sends the counts alone, with no rows, after the slots themselves: STEPS or UPDATES. */
static cadre_status restore_counts(struct checkpoint_reader *reader, cadre_variable *variable,
    const char *part, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *counts = NULL;
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    uint64_t shards = 0;
    bool steps = strcmp(part, STEPS) == 0;
    CADRE_TRY(read_counts(reader, variable, part, &counts, &shards, error));
    requests = calloc((size_t)variable->served->layout.shards, sizeof *requests);
    if (requests == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for requests");
    }
    for (uint64_t shard = 0; shard < variable->served->layout.shards; shard++) {
        uint64_t count = count_of(variable, shard, counts, shards);
        requests[shard] = (struct request){.kind = steps ? REQUEST_BEGIN_STEP : REQUEST_SET_SLOT,
            .server = variable->served->shards[shard].server,
            .shard = variable->served->shards[shard].number,
            .row_bytes = variable->served->row_bytes,
            .updates = count,
            .min_steps = count};
    }
    return served_send(variable, requests, (size_t)variable->served->layout.shards, error);
}

static cadre_status restore_value(
    struct checkpoint_reader *reader, cadre_variable *variable, struct cadre_error *error)
{
    struct saved saved = {.reader = reader};
    CADRE_TRY(find_entry(reader, variable, "", &saved.entry, error));
    return send_pieces(variable, &assigning, fill_saved, &saved, error);
}

/* Checkpoints from other programs need not have counts of steps: then they begin at 0. */
static cadre_status restore_from(
    struct checkpoint_reader *reader, cadre_variable *variable, struct cadre_error *error)
{
    char name[SAFETENSORS_NAME_BYTES];
    CADRE_TRY(restore_value(reader, variable, error));
    return part_of(reader, variable, STEPS, name) != NULL
               ? restore_counts(reader, variable, STEPS, error)
               : CADRE_OK;
}

/* The checkpoint's value that the program gives the variable. */
static cadre_status take_value(
    struct restoration *restoration, cadre_variable *variable, struct cadre_error *error)
{
    struct checkpoint_reader *reader;
    CADRE_TRY(restoration_reader(restoration, &reader, error));
    cadre_status status = restore_from(reader, variable, error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "%s", restoration->path);
}

cadre_status served_restore(const struct cadre_strategy *strategy, cadre_variable *variable,
    bool *ret_restored, struct cadre_error *error)
{
    struct served_variables *all = variable->served->all;
    const char *path = strategy->environment->restore_path;
    struct restoration *restoration = strategy->state_part->restoration;
    *ret_restored = restoration_find(restoration, variable->name) != NULL;
    if (*ret_restored) {
        return take_value(restoration, variable, error);
    }
    if (path[0] == '\0' || strategy->roster.resume == 0) {
        return CADRE_OK;
    }
    cadre_status status = CADRE_OK;
    if (all->reader == NULL) {
        status = checkpoint_reader_open(strategy, path, &all->reader, error);
        if (status == CADRE_OK && strategy->ps_job != NULL) {
            restore_report(strategy, all->reader);
        }
    }
    if (status == CADRE_OK && strategy->state != STATE_RESTORES &&
        checkpoint_reader_find(all->reader, variable->name) == NULL) {
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        status = restore_from(all->reader, variable, error);
    }
    *ret_restored = status == CADRE_OK;
    return status == CADRE_OK ? CADRE_OK : restore_failed(path, status, error);
}

/* --- slots --- */

static cadre_status restore_slots(struct checkpoint_reader *reader, cadre_variable *variable,
    const struct optimizer_rule *rule, struct cadre_error *error)
{
    struct saved saved = {.reader = reader};
    char name[SAFETENSORS_NAME_BYTES];
    for (uint32_t slot = 0; slot < optimizer_slots(rule); slot++) {
        const struct request like = {.kind = REQUEST_SET_SLOT, .slot = slot};
        CADRE_TRY(
            find_entry(reader, variable, optimizer_slot_name(rule, slot), &saved.entry, error));
        CADRE_TRY(send_pieces(variable, &like, fill_saved, &saved, error));
    }
    bool counted = optimizer_counts(rule) || part_of(reader, variable, UPDATES, name) != NULL;
    return counted ? restore_counts(reader, variable, UPDATES, error) : CADRE_OK;
}

cadre_status served_restore_slots(
    cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error)
{
    const struct cadre_strategy *strategy = variable->strategy;
    struct restoration *restoration = strategy->state_part->restoration;
    char first[SAFETENSORS_NAME_BYTES];
    if (!variable->served->restored) {
        return CADRE_OK;
    }
    snprintf(first, sizeof first, "%s/%s", variable->name,
        optimizer_slots(rule) > 0 ? optimizer_slot_name(rule, 0) : UPDATES);
    if (restoration_find(restoration, variable->name) == NULL) {
        const char *path = strategy->environment->restore_path;
        struct checkpoint_reader *reader = variable->served->all->reader;
        bool may_lack = strategy->state != STATE_RESTORES || optimizer_slots(rule) == 0;
        cadre_status status = may_lack && checkpoint_reader_find(reader, first) == NULL
                                  ? CADRE_OK
                                  : restore_slots(reader, variable, rule, error);
        return status == CADRE_OK ? CADRE_OK : restore_failed(path, status, error);
    }
    struct checkpoint_reader *reader;
    if (restoration_find(restoration, first) == NULL) { /* a slot that is not in the file begins
                                                         * with zeros */
        return CADRE_OK;
    }
    CADRE_TRY(restoration_reader(restoration, &reader, error));
    cadre_status status = restore_slots(reader, variable, rule, error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "%s", restoration->path);
}
