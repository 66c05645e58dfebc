/* SPDX-License-Identifier: Apache-2.0
 * Values of variables as one file of tensors, for other programs. The program calls cadre_export.
 */
#include "cadre/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/object_path.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/state/checkpoint/first_task.h"
#include "worker/library/runtime/state/create/variable_create.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/state/format/safetensors.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"

#define PIECE_BYTES ((size_t)4 << 20) /* of a variable on a device, read at a time */

/* What a tensor of the file is read from: a variable, or a streamed one. */
struct source {
    const cadre_variable *variable; /* NULL: streamed */
    uint32_t streamed;
};

struct exporting {
    const char *path; /* as the program gave it */
    const cadre_signature *signatures;
    uint32_t count;
    struct safetensors_entry *entries;
    struct source *sources; /* by entry */
    size_t entry_count;
    struct first_task first;
};

/* --- the contents --- */

static void add_variable(
    struct exporting *exporting, const cadre_variable *variable, const char *name)
{
    struct safetensors_entry *entry = &exporting->entries[exporting->entry_count];
    *entry = (struct safetensors_entry){
        .dtype = variable->dtype, .rank = variable->rank, .bytes = variable->bytes};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    memcpy(entry->dims, variable->dims, sizeof entry->dims);
    if (strcmp(name, variable->name) != 0) {
        snprintf(entry->variable, sizeof entry->variable, "%s", variable->name);
    }
    exporting->sources[exporting->entry_count++] = (struct source){.variable = variable};
}

static void add_streamed(struct exporting *exporting, const struct safetensors_entry *described,
    uint32_t i, const char *name)
{
    struct safetensors_entry *entry = &exporting->entries[exporting->entry_count];
    *entry = *described;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    if (strcmp(name, described->name) != 0) {
        memcpy(entry->variable, described->name, sizeof entry->variable);
    }
    exporting->sources[exporting->entry_count++] = (struct source){.streamed = i};
}

/* Adds all variables of the model. */
static cadre_status add_all(
    const cadre_strategy *strategy, struct exporting *exporting, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->dtype == CADRE_STRING) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "variable '%s' holds strings, which a safetensors file cannot hold; name the "
                "variables that are to be exported",
                variable->name);
        }
        if (!variable->on_read) {
            add_variable(exporting, variable, variable->name);
        }
    }
    struct streamed *streamed = strategy->state_part->streamed;
    for (uint32_t i = 0; i < streamed_count(strategy); i++) {
        if (!streamed->ops->is_part(streamed, i)) {
            struct safetensors_entry entry;
            streamed->ops->describe(streamed, i, &entry);
            add_streamed(exporting, &entry, i, entry.name);
        }
    }
    return CADRE_OK;
}

static cadre_status add_named(const cadre_strategy *strategy, struct exporting *exporting,
    const char *variable_name, const char *name, struct cadre_error *error)
{
    const cadre_variable *variable = variable_lookup(strategy, variable_name);
    if (variable != NULL && variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' holds strings, which a safetensors file cannot hold; leave it out",
            variable_name);
    }
    if (variable != NULL) {
        add_variable(exporting, variable, name);
        return CADRE_OK;
    }
    for (uint32_t i = 0; i < streamed_count(strategy); i++) {
        struct safetensors_entry entry;
        strategy->state_part->streamed->ops->describe(strategy->state_part->streamed, i, &entry);
        if (strcmp(entry.name, variable_name) == 0) {
            add_streamed(exporting, &entry, i, name);
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "there is no variable '%.127s' in this strategy that could be exported; give the name that "
        "it was created with",
        variable_name);
}

static cadre_status add_signatures(
    const cadre_strategy *strategy, struct exporting *exporting, struct cadre_error *error)
{
    for (uint32_t i = 0; i < exporting->count; i++) {
        const cadre_signature *signature = &exporting->signatures[i];
        const char *variable = signature->variable != NULL ? signature->variable : signature->name;
        CADRE_TRY(name_check("tensor of an export", signature->name, error));
        for (size_t before = 0; before < exporting->entry_count; before++) {
            if (strcmp(exporting->entries[before].name, signature->name) == 0) {
                return cadre_error_set(error, CADRE_ALREADY_EXISTS,
                    "two of the tensors that are to be exported are called '%s'; give each a name "
                    "of its own",
                    signature->name);
            }
        }
        CADRE_TRY(add_named(strategy, exporting, variable, signature->name, error));
    }
    return CADRE_OK;
}

static cadre_status export_collect(
    const cadre_strategy *strategy, struct exporting *exporting, struct cadre_error *error)
{
    size_t room = exporting->count > 0
                      ? exporting->count
                      : (size_t)strategy->variables->count + streamed_count(strategy);
    exporting->entries = calloc(room + 1, sizeof *exporting->entries);
    exporting->sources = calloc(room + 1, sizeof *exporting->sources);
    if (exporting->entries == NULL || exporting->sources == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu tensors", room);
    }
    return exporting->count > 0 ? add_signatures(strategy, exporting, error)
                                : add_all(strategy, exporting, error);
}

/* --- writing it --- */

static cadre_status export_sink(
    void *user, const void *bytes, size_t size, struct cadre_error *error)
{
    return checkpoint_file_add(user, bytes, size, error);
}

static cadre_status write_variable(
    const cadre_variable *variable, struct checkpoint_file *file, struct cadre_error *error)
{
    const struct variable_component *component =
        variable->on_read ? &variable->total : &variable->components[0];
    if (component->device == NULL) {
        return checkpoint_file_add(file, component->value, variable->bytes, error);
    }
    CADRE_FREE_AT_EXIT char *piece = malloc(PIECE_BYTES);
    if (piece == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to read variable '%s'", variable->name);
    }
    for (size_t at = 0; at < variable->bytes; at += PIECE_BYTES) {
        size_t left = variable->bytes - at;
        size_t size = left < PIECE_BYTES ? left : PIECE_BYTES;
        CADRE_TRY(variable_to_host(variable, component, at, piece, size, error));
        CADRE_TRY(checkpoint_file_add(file, piece, size, error));
    }
    return CADRE_OK;
}

static cadre_status write_tensors(cadre_strategy *strategy, const struct exporting *exporting,
    struct checkpoint_file *file, struct cadre_error *error)
{
    const struct safetensors_entry *entry = NULL;
    struct streamed *streamed = strategy->state_part->streamed;
    while ((entry = safetensors_next(exporting->entries, exporting->entry_count, entry)) != NULL) {
        const struct source *source = &exporting->sources[entry - exporting->entries];
        CADRE_TRY(source->variable != NULL
                      ? write_variable(source->variable, file, error)
                      : streamed->ops->read(streamed, source->streamed, export_sink, file, error));
    }
    return CADRE_OK;
}

static cadre_status write_file(cadre_strategy *strategy, struct exporting *exporting,
    struct checkpoint_file *file, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *header = NULL;
    size_t size = 0;
    safetensors_set_offsets(exporting->entries, exporting->entry_count);
    CADRE_TRY(safetensors_header(exporting->entries, exporting->entry_count,
        strategy_position(strategy), &header, &size, error));
    CADRE_TRY(checkpoint_file_add(file, header, size, error));
    CADRE_TRY(write_tensors(strategy, exporting, file, error));
    CADRE_TRY(checkpoint_file_settle(file, error));
    return checkpoint_file_end(file, error);
}

/* A relative path is in the folder of the program's outputs. */
static cadre_status export_target(const cadre_strategy *strategy, const char *path,
    char **ret_folder, const char **ret_name, struct cadre_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *outputs = strategy->environment->output_folder;
    int length = slash == NULL ? 0 : (int)(slash - path);
    bool is_whole = path[0] == '/' || object_path_is(path);
    int made = is_whole        ? asprintf(ret_folder, "%.*s", length == 0 ? 1 : length, path)
               : slash == NULL ? asprintf(ret_folder, "%s", outputs)
                               : asprintf(ret_folder, "%s/%.*s", outputs, length, path);
    *ret_name = slash == NULL ? path : slash + 1;
    if (made < 0) {
        *ret_folder = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    return CADRE_OK;
}

static cadre_status export_first(cadre_strategy *strategy, void *user, struct cadre_error *error)
{
    struct exporting *exporting = user;
    struct checkpoint_file file;
    CADRE_FREE_AT_EXIT char *folder = NULL;
    const char *name = NULL;
    CADRE_TRY(export_target(strategy, exporting->path, &folder, &name, error));
    cadre_status status = checkpoint_file_begin(&file, folder, name, error);
    if (status == CADRE_OK) {
        status = write_file(strategy, exporting, &file, error);
    }
    checkpoint_file_drop(&file);
    return status == CADRE_OK
               ? CADRE_OK
               : cadre_error_wrap(error, status, "cadre_export to '%.200s'", exporting->path);
}

static cadre_status export_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct exporting *exporting = user;
    cadre_status code = CADRE_OK;
    return first_task_run(strategy, local, &exporting->first, &code, error);
}

static uint64_t export_key(const cadre_strategy *strategy, const struct exporting *exporting)
{
    uint64_t key = collective_key(strategy_position(strategy), UINT64_MAX - 5);
    key = collective_key_text(key, exporting->path);
    for (size_t i = 0; i < exporting->entry_count; i++) {
        key = collective_key_text(key, exporting->entries[i].name);
        key = collective_key_text(key, exporting->entries[i].variable);
    }
    return key;
}

static cadre_status check_path(const char *path, struct cadre_error *error)
{
    static const char kind[] = ".safetensors";
    size_t length = strlen(path);
    size_t tail = sizeof kind - 1;
    bool named =
        length > tail && strcmp(path + length - tail, kind) == 0 && path[length - tail - 1] != '/';
    const char *fault = !named                 ? NULL
                        : object_path_is(path) ? object_path_fault(path)
                                               : object_folder_fault(path);
    if (fault != NULL) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "cadre_export to '%.200s', which %s", path, fault);
    }
    return named ? CADRE_OK
                 : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                       "cadre_export writes a file of tensors, and '%.200s' does not end with "
                       "%s; call it 'model.safetensors'",
                       path, kind);
}

static cadre_status export_all(
    cadre_strategy *strategy, struct exporting *exporting, struct cadre_error *error)
{
    char what[STRATEGY_CALL_TEXT_BYTES];
    CADRE_TRY(check_path(exporting->path, error));
    CADRE_TRY(sync_restore(strategy, error)); /* before a first step */
    if (strategy_is_warm(strategy) || strategy_is_catching_up(strategy)) {
        return CADRE_OK; /* it has nothing that others lack */
    }
    CADRE_TRY(export_collect(strategy, exporting, error));
    exporting->first = (struct first_task){
        .function = export_first, .user = exporting, .key = export_key(strategy, exporting)};
    snprintf(what, sizeof what, "cadre_export('%.100s')", exporting->path);
    CADRE_TRY(strategy_between_steps(strategy, what, export_on_replica, exporting, error));
    return first_task_result(&exporting->first, error);
}

/* --- public --- */

cadre_status cadre_export(
    cadre_strategy *strategy, const char *path, const cadre_signature *signatures, uint32_t count)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    struct exporting exporting = {.path = path, .signatures = signatures, .count = count};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = argument_require(path, __func__, "path", &error);
    }
    if (status == CADRE_OK) {
        status = variable_require_kept(strategy, __func__, &error);
    }
    if (status == CADRE_OK && count > 0) {
        status = argument_require(signatures, __func__, "signatures", &error);
    }
    if (status == CADRE_OK) {
        status = export_all(strategy, &exporting, &error);
    }
    free(exporting.entries);
    free(exporting.sources);
    return api_return(status, &error);
}
