/* SPDX-License-Identifier: Apache-2.0
 * Reads the state that a plain program goes on from, which the worker, `cadre run` or its user has
 * put where CADRE_RESTORE says. The program calls it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/choose.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/plain/plain_state.h"

/* "model, optimizer": what the task of `rank` gave. */
static void name_pieces(
    const struct checkpoint_reader *reader, uint32_t rank, char *text, size_t size)
{
    char suffix[16];
    const struct safetensors_list *list = checkpoint_reader_list(reader);
    size_t length = 0;
    snprintf(suffix, sizeof suffix, "/%u", rank);
    text[0] = '\0';
    for (size_t i = 0; i < list->count && length < size; i++) {
        const char *name = list->entries[i].name;
        const char *slash = strrchr(name, '/');
        if (slash != NULL && strcmp(slash, suffix) == 0) {
            length += (size_t)snprintf(text + length, size - length, "%s%.*s",
                length > 0 ? ", " : "", (int)(slash - name), name);
        }
    }
}

static cadre_status find_part(struct checkpoint_reader *reader, const char *name, uint32_t rank,
    const struct safetensors_entry **ret_entry, struct cadre_error *error)
{
    uint32_t tasks = manifest_plain_tasks(checkpoint_reader_manifest(reader));
    char full[SAFETENSORS_NAME_BYTES];
    char names[256];
    CADRE_TRY(name_check("state", name, error));
    if (rank >= tasks) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the state is of %u task%s, and rank %u was named; give 0 to %u", tasks,
            tasks == 1 ? "" : "s", rank, tasks - 1);
    }
    snprintf(full, sizeof full, "%s/%u", name, rank);
    *ret_entry = checkpoint_reader_find(reader, full);
    if (*ret_entry != NULL) {
        return CADRE_OK;
    }
    name_pieces(reader, rank, names, sizeof names);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the state has no part %s of rank %u, which gave: %s", name, rank,
        names[0] != '\0' ? names : "nothing");
}

/* The state that this task was started with. NOT_FOUND is that there is none, and nothing else. */
static cadre_status open_reader(
    const struct plain *plain, struct checkpoint_reader **ret_reader, struct cadre_error *error)
{
    const char *path = plain->environment->restore_path;
    uint64_t resume = plain->roster.resume;
    *ret_reader = NULL;
    if (path[0] == '\0') {
        return resume == 0 ? cadre_error_set(error, CADRE_NOT_FOUND,
                                 "the job has saved no state: it begins from the start")
                           : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                                 "the job goes on from state %" PRIu64
                                 ", and CADRE_RESTORE does not name it",
                                 resume);
    }
    cadre_status status = checkpoint_reader_open(NULL, path, ret_reader, error);
    if (status != CADRE_OK) {
        cadre_error_wrap(error, status == CADRE_NOT_FOUND ? CADRE_DATA_LOSS : status,
            "the state %s cannot be read", path);
        return checkpoint_suggest_other(path, error);
    }
    struct manifest_content *content = checkpoint_reader_manifest(*ret_reader);
    if (manifest_plain_tasks(content) == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s is the checkpoint of a program with a strategy, and this one is a plain program; "
            "go on from one of its own",
            path);
    }
    return manifest_position(content) == resume
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "the state %s is number %" PRIu64 ", and the job goes on from number %" PRIu64,
                     path, manifest_position(content), resume);
}

static cadre_status open_state(const char *function, const char *name, uint32_t rank,
    struct cadre_plain_state **ret_state, struct cadre_error *error)
{
    struct plain *plain = NULL;
    struct cadre_plain_state *state = NULL;
    *ret_state = NULL;
    CADRE_TRY(plain_state_new(&state, error));
    cadre_status status = plain_enter(function, &plain, error);
    if (status == CADRE_OK) {
        status = open_reader(plain, &state->reader, error);
        plain_leave(plain);
    }
    if (status == CADRE_OK && name != NULL) {
        status = find_part(state->reader, name, rank, &state->entry, error);
    }
    if (status != CADRE_OK) {
        cadre_plain_state_close(state);
        return status;
    }
    *ret_state = state;
    return CADRE_OK;
}

/* A large one takes long. Not before the beginning of the program, nor after its end. */
static void report_reading(struct cadre_plain_state *state)
{
    const struct plain *plain = plain_current();
    if (plain != NULL) {
        checkpoint_reader_report(
            state->reader, plain->task, plain->environment->by_hand, state->entry->bytes);
    } else {
        checkpoint_reader_report_nothing(state->reader);
    }
}

static cadre_status read_part(
    struct cadre_plain_state *state, void *into, size_t size, struct cadre_error *error)
{
    CADRE_ASSERT(size <= state->entry->bytes - state->read);
    report_reading(state);
    CADRE_TRY(checkpoint_reader_read(state->reader, state->entry, state->read, into, size, error));
    state->read += size;
    return CADRE_OK;
}

/* --- public --- */

cadre_status cadre_plain_saved_tasks(uint32_t *ret_tasks)
{
    struct cadre_error error = {0};
    struct cadre_plain_state *state = NULL;
    cadre_status status = argument_require(ret_tasks, __func__, "ret_tasks", &error);
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    *ret_tasks = 0;
    status = open_state(__func__, NULL, 0, &state, &error);
    if (status == CADRE_OK) {
        *ret_tasks = manifest_plain_tasks(checkpoint_reader_manifest(state->reader));
    }
    cadre_plain_state_close(state);
    return api_return(status == CADRE_NOT_FOUND ? CADRE_OK : status, &error);
}

cadre_status cadre_plain_state_open(
    const char *name, uint32_t rank, cadre_plain_state **ret_state, uint64_t *ret_size)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(name, __func__, "name", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_state, __func__, "ret_state", &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(ret_size, __func__, "ret_size", &error);
    }
    if (status == CADRE_OK) {
        status = open_state(__func__, name, rank, ret_state, &error);
    }
    if (status == CADRE_OK) {
        *ret_size = (*ret_state)->entry->bytes;
    }
    return api_return(status, &error);
}

cadre_status cadre_plain_state_read(
    cadre_plain_state *state, void *into, size_t size, size_t *ret_read)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(state, __func__, "state", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_read, __func__, "ret_read", &error);
    }
    if (status == CADRE_OK && size > 0) {
        status = argument_require(into, __func__, "into", &error);
    }
    if (status == CADRE_OK && state->entry == NULL) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "%s was called with a state that is to be saved; open one by cadre_plain_state_open",
            __func__);
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    size_t left = state->entry->bytes - state->read;
    size_t count = size < left ? size : left;
    status = read_part(state, into, count, &error);
    *ret_read = status == CADRE_OK ? count : 0;
    return api_return(status, &error);
}

static cadre_status load(
    const char *name, uint32_t rank, void **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    struct cadre_plain_state *state = NULL;
    CADRE_TRY(open_state("cadre_plain_load", name, rank, &state, error));
    size_t size = state->entry->bytes;
    void *bytes = malloc(size + (size == 0));
    cadre_status status = CADRE_OK;
    if (bytes == NULL) {
        status = cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the %zu bytes of %s", size, name);
    } else {
        status = read_part(state, bytes, size, error);
    }
    cadre_plain_state_close(state);
    if (status != CADRE_OK) {
        free(bytes);
        return status;
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return CADRE_OK;
}

cadre_status cadre_plain_load(const char *name, uint32_t rank, void **ret_bytes, size_t *ret_size)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(name, __func__, "name", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_bytes, __func__, "ret_bytes", &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(ret_size, __func__, "ret_size", &error);
    }
    if (status == CADRE_OK) {
        status = load(name, rank, ret_bytes, ret_size, &error);
    }
    return api_return(status, &error);
}
