/* SPDX-License-Identifier: Apache-2.0
 * A file that a program takes values from: opened and checked by rank 0, its list sent to all,
 * values read one by one. restore_values.c, import.c and initial_value.c use it. */
#include "worker/library/runtime/state/restore/restoration.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/checkpoint/choose.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"
#include "worker/library/runtime/state/checkpoint/first_task.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

static cadre_status no_memory(const char *path, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of tensors in %s", path);
}

/* --- the file --- */

bool restoration_is_tensors(const char *path)
{
    static const char kind[] = ".safetensors";
    size_t length = strlen(path);
    return length >= sizeof kind - 1 && strcmp(path + length - (sizeof kind - 1), kind) == 0;
}

/* Errors name the file. */
static cadre_status open_reader(
    const char *path, struct checkpoint_reader **ret_reader, struct cadre_error *error)
{
    if (restoration_is_tensors(path)) {
        return checkpoint_reader_open_tensors(path, ret_reader, error);
    }
    cadre_status status = checkpoint_reader_open(NULL, path, ret_reader, error);
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    cadre_error_wrap(error, status, "the checkpoint %s", path);
    return checkpoint_suggest_other(path, error);
}

static cadre_status restoration_failed(
    const char *path, cadre_status status, struct cadre_error *error)
{
    return restoration_is_tensors(path) ? cadre_error_wrap(error, status, "%s", path)
                                        : restore_failed(path, status, error);
}

/* Of a folder the newest whole checkpoint, every byte of which was checked; *ret_path is the
 * caller's to free. */
static cadre_status restoration_choose(
    const char *path, char **ret_path, bool *ret_verified, struct cadre_error *error)
{
    *ret_verified = checkpoint_is_folder(path);
    if (!*ret_verified) {
        *ret_path = strdup(path);
        return *ret_path == NULL ? no_memory(path, error) : CADRE_OK;
    }
    struct checkpoint_choice choice = {0};
    CADRE_TRY(checkpoint_choose(path, &choice, error));
    if (choice.note[0] != '\0') {
        show_warning("%s", choice.note);
    }
    *ret_path = choice.path;
    choice.path = NULL;
    checkpoint_choice_free(&choice);
    return CADRE_OK;
}

/* --- the list --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(
        ((const struct restored_tensor *)a)->name, ((const struct restored_tensor *)b)->name);
}

struct listing {
    struct restored_tensor *tensors;
    size_t count;
    size_t room;
    bool full; /* no memory */
};

static struct restored_tensor *restoration_add(struct listing *listing)
{
    if (listing->count == listing->room) {
        size_t room = listing->room == 0 ? 64 : listing->room * 2;
        struct restored_tensor *grown = realloc(listing->tensors, room * sizeof *grown);
        if (grown == NULL) {
            listing->full = true;
            return NULL;
        }
        listing->tensors = grown;
        listing->room = room;
    }
    struct restored_tensor *tensor = &listing->tensors[listing->count++];
    memset(tensor, 0, sizeof *tensor); /* because its bytes are sent, padding too */
    return tensor;
}

static void add_strings(void *user, const char *name, size_t count)
{
    struct restored_tensor *tensor = restoration_add(user);
    if (tensor != NULL) {
        snprintf(tensor->name, sizeof tensor->name, "%s", name);
        tensor->dtype = CADRE_STRING;
        tensor->rank = 1;
        tensor->dims[0] = (int64_t)count;
    }
}

static void add_entry(struct listing *listing, const struct safetensors_entry *entry)
{
    struct restored_tensor *tensor = restoration_add(listing);
    if (tensor != NULL) {
        const char *name = safetensors_variable(entry);
        memcpy(tensor->name, name, strlen(name) + 1);
        memcpy(tensor->tensor, entry->name, strlen(entry->name) + 1);
        tensor->dtype = entry->dtype;
        tensor->rank = entry->rank;
        memcpy(tensor->dims, entry->dims, sizeof tensor->dims);
    }
}

static cadre_status list_all(struct checkpoint_reader *reader, const char *path,
    struct listing *listing, struct cadre_error *error)
{
    const struct safetensors_list *list = checkpoint_reader_list(reader);
    for (size_t i = 0; i < list->count; i++) {
        add_entry(listing, &list->entries[i]);
    }
    CADRE_TRY(checkpoint_reader_each_strings(reader, add_strings, listing, error));
    if (listing->full) {
        return no_memory(path, error);
    }
    if (listing->count > 0) {
        qsort(listing->tensors, listing->count, sizeof *listing->tensors, by_name);
    }
    for (size_t i = 1; i < listing->count; i++) {
        if (strcmp(listing->tensors[i - 1].name, listing->tensors[i].name) == 0) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "%s holds two values of variable '%s', as tensors '%s' and '%s'", path,
                listing->tensors[i].name, listing->tensors[i - 1].tensor,
                listing->tensors[i].tensor);
        }
    }
    return CADRE_OK;
}

/* Into a restoration that is empty, or was filled by an attempt in which a peer was lost. */
static cadre_status open_on_replica(const cadre_strategy *strategy, struct restoration *restoration,
    const char *path, struct cadre_error *error)
{
    struct listing listing = {0};
    bool verified = false;
    restoration_close_reader(restoration);
    free(restoration->path);
    restoration->path = NULL;
    CADRE_TRY(restoration_choose(path, &restoration->path, &verified, error));
    CADRE_TRY(open_reader(restoration->path, &restoration->reader, error));
    restore_report(strategy, restoration->reader);
    cadre_status status =
        verified ? CADRE_OK : checkpoint_reader_verify(restoration->reader, error);
    if (status != CADRE_OK) {
        return restoration_failed(restoration->path, status, error);
    }
    status = list_all(restoration->reader, restoration->path, &listing, error);
    free(restoration->tensors);
    restoration->tensors = listing.tensors;
    restoration->count = listing.count;
    return status;
}

/* --- sending the list --- */

struct opening {
    struct restoration *restoration;
    const char *function;
    const char *path;
    struct first_task first;
};

/* Path, then tensors. They may be those of an attempt that others had completed (between_steps.h).
 */
struct restoration_sizes {
    uint64_t path;
    uint64_t tensors;
};

static cadre_status restoration_take(struct restoration *restoration,
    const struct restoration_sizes *sizes, const char *bytes, struct cadre_error *error)
{
    free(restoration->path);
    free(restoration->tensors);
    restoration->path = strndup(bytes, (size_t)sizes->path);
    restoration->count = (size_t)sizes->tensors / sizeof *restoration->tensors;
    restoration->tensors = malloc((size_t)sizes->tensors + 1);
    if (restoration->path == NULL || restoration->tensors == NULL) {
        restoration->count = 0;
        return no_memory("the checkpoint", error);
    }
    memcpy(restoration->tensors, bytes + sizes->path, (size_t)sizes->tensors);
    return CADRE_OK;
}

static cadre_status send_on_replica(
    cadre_strategy *strategy, uint32_t local, struct opening *opening, struct cadre_error *error)
{
    struct restoration *restoration = opening->restoration;
    bool chief = strategy->roster.rank == 0 && local == 0 && restoration->path != NULL;
    struct restoration_sizes own = {0};
    if (chief) {
        own.path = strlen(restoration->path);
        own.tensors = restoration->count * sizeof *restoration->tensors;
    }
    struct restoration_sizes sizes = own;
    struct mesh *mesh = strategy->mesh;
    const struct mesh_buffer summary = {.data = &sizes, .bytes = sizeof sizes, .dtype = MESH_U8};
    CADRE_TRY(mesh->ops->broadcast(mesh, local, 0, &summary, 1, NULL, error));
    size_t size = (size_t)(sizes.path + sizes.tensors);
    CADRE_FREE_AT_EXIT char *bytes = malloc(size + 1);
    if (bytes == NULL) {
        return no_memory(opening->path, error);
    }
    if (chief && memcmp(&sizes, &own, sizeof own) == 0) {
        memcpy(bytes, restoration->path, (size_t)sizes.path);
        if (sizes.tensors > 0) {
            memcpy(bytes + sizes.path, restoration->tensors, (size_t)sizes.tensors);
        }
    }
    const struct mesh_buffer all = {.data = bytes, .bytes = size, .dtype = MESH_U8};
    CADRE_TRY(mesh->ops->broadcast(mesh, local, 0, &all, 1, NULL, error));
    return local == 0 ? restoration_take(restoration, &sizes, bytes, error) : CADRE_OK;
}

static cadre_status open_first(cadre_strategy *strategy, void *user, struct cadre_error *error)
{
    const struct opening *opening = user;
    return open_on_replica(strategy, opening->restoration, opening->path, error);
}

static cadre_status meet_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct opening *opening = user;
    cadre_status code = CADRE_OK;
    cadre_status status = first_task_run(strategy, local, &opening->first, &code, error);
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_wrap(error, status,
            "%s('%.200s'): another task does something else; all tasks name the same file",
            opening->function, opening->path);
    }
    return status != CADRE_OK || code != CADRE_OK
               ? status
               : send_on_replica(strategy, local, opening, error);
}

static cadre_status open_by_all(
    cadre_strategy *strategy, struct opening *opening, struct cadre_error *error)
{
    char what[STRATEGY_CALL_TEXT_BYTES];
    snprintf(what, sizeof what, "%s('%.100s')", opening->function, opening->path);
    CADRE_TRY(strategy_between_steps(strategy, what, meet_on_replica, opening, error));
    return first_task_result(&opening->first, error);
}

cadre_status restoration_open(struct cadre_strategy *strategy, const char *function,
    const char *path, struct restoration **ret_restoration, struct cadre_error *error)
{
    *ret_restoration = NULL;
    struct restoration *restoration = calloc(1, sizeof *restoration);
    if (restoration == NULL) {
        return no_memory(path, error);
    }
    struct opening opening = {.restoration = restoration,
        .function = function,
        .path = path,
        .first = {.function = open_first,
            .user = &opening,
            .key = collective_key_text(collective_key(0, UINT64_MAX - 4), path)}};
    cadre_status status = strategy->state == STATE_WARM
                              ? open_on_replica(strategy, restoration, path, error)
                              : open_by_all(strategy, &opening, error);
    if (status != CADRE_OK) {
        restoration_close(restoration);
        return status;
    }
    *ret_restoration = restoration;
    return CADRE_OK;
}

void restoration_close_reader(struct restoration *restoration)
{
    if (restoration != NULL) {
        checkpoint_reader_close(restoration->reader);
        restoration->reader = NULL;
    }
}

void restoration_close(struct restoration *restoration)
{
    if (restoration != NULL) {
        restoration_close_reader(restoration);
        free(restoration->path);
        free(restoration->tensors);
        free(restoration->report);
        free(restoration);
    }
}

/* --- one value --- */

const struct restored_tensor *restoration_find(
    const struct restoration *restoration, const char *name)
{
    struct restored_tensor key;
    if (restoration == NULL || restoration->count == 0 || strlen(name) >= sizeof key.name) {
        return NULL;
    }
    memcpy(key.name, name, strlen(name) + 1);
    return bsearch(&key, restoration->tensors, restoration->count, sizeof key, by_name);
}

static bool is_alike(const struct restored_tensor *held, const struct state_tensor *tensor)
{
    if (held->dtype != tensor->dtype) {
        return false;
    }
    if (tensor->counts) {
        return held->rank == 1 && held->dims[0] > 0;
    }
    if (held->dtype == CADRE_STRING) {
        int64_t count = 1;
        for (uint32_t i = 0; i < tensor->rank; i++) {
            count *= tensor->dims[i];
        }
        return held->dims[0] == count;
    }
    return held->rank == tensor->rank &&
           memcmp(held->dims, tensor->dims, held->rank * sizeof held->dims[0]) == 0;
}

cadre_status restoration_fits(const struct restoration *restoration,
    const struct state_tensor *tensor, struct cadre_error *error)
{
    const struct restored_tensor *held = restoration_find(restoration, tensor->name);
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    if (held == NULL || is_alike(held, tensor)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s holds '%s' as %s, and the program makes it as %s: make it as the file holds it, or "
        "name another file",
        restoration->path, tensor->name, tensor_shape_text(held->dtype, held->rank, held->dims, is),
        tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, wanted));
}

/* Opened again where it is not open: at another chief, or after restoration_close_reader. */
cadre_status restoration_reader(struct restoration *restoration,
    struct checkpoint_reader **ret_reader, struct cadre_error *error)
{
    cadre_status status = restoration->reader != NULL
                              ? CADRE_OK
                              : open_reader(restoration->path, &restoration->reader, error);
    *ret_reader = restoration->reader;
    return status;
}

cadre_status restoration_read(struct restoration *restoration, const struct state_tensor *tensor,
    void *into, struct cadre_error *error)
{
    const struct safetensors_entry *entry = NULL;
    struct checkpoint_reader *reader;
    CADRE_ASSERT(restoration_find(restoration, tensor->name) != NULL);
    CADRE_TRY(restoration_reader(restoration, &reader, error));
    cadre_status status = restore_entry(reader, tensor, &entry, error);
    if (status == CADRE_OK) {
        status = restore_read(reader, entry, tensor, into, error);
    }
    return status == CADRE_OK ? CADRE_OK : restoration_failed(restoration->path, status, error);
}

cadre_status restoration_strings(struct restoration *restoration, const cadre_variable *variable,
    cadre_tensor **ret_strings, struct cadre_error *error)
{
    struct checkpoint_reader *reader;
    *ret_strings = NULL;
    CADRE_TRY(restoration_reader(restoration, &reader, error));
    cadre_status status = checkpoint_reader_strings(reader, variable, ret_strings, error);
    return status == CADRE_OK ? CADRE_OK : restoration_failed(restoration->path, status, error);
}
