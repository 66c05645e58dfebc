/* SPDX-License-Identifier: Apache-2.0
 * States of plain programs, as the program calls them: to be saved, whole or piece by piece. */
#include "worker/library/runtime/plain/plain_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/program/program.h"

/* --- parts --- */

static cadre_status add_part(
    struct cadre_plain_state *state, const char *name, struct cadre_error *error)
{
    for (uint32_t i = 0; i < state->part_count; i++) {
        if (strcmp(state->pieces[i].name, name) == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the part %s was ended by the part %s; write all of one part before the next", name,
                state->pieces[state->part_count - 1].name);
        }
    }
    if (state->part_count == PLAIN_PIECES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the part %s would be number %d; a task gives at most %d to a state", name,
            PLAIN_PIECES_MAX + 1, PLAIN_PIECES_MAX);
    }
    if (state->part_count == state->part_room) {
        uint32_t room = state->part_room * 2 + 4;
        struct plain_part *pieces = realloc(state->pieces, room * sizeof *pieces);
        if (pieces == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for the part %s of a state", name);
        }
        state->pieces = pieces;
        state->part_room = room;
    }
    struct plain_part *part = &state->pieces[state->part_count++];
    *part = (struct plain_part){.offset = state->file_bytes};
    snprintf(part->name, sizeof part->name, "%s", name);
    return CADRE_OK;
}

/* A file of this task alone, which goes with it: it has no name. */
static cadre_status open_file(struct cadre_plain_state *state, struct cadre_error *error)
{
    const char *folder = program_environment()->output_folder;
    char path[ENVIRONMENT_FOLDER_BYTES + 32];
    snprintf(path, sizeof path, "%s/.cadre-state.XXXXXX", folder);
    state->fd = mkostemp(path, O_CLOEXEC);
    if (state->fd < 0) {
        return cadre_error_errno(
            error, errno, "cannot make a file for a state in the folder %s", folder);
    }
    unlink(path);
    return CADRE_OK;
}

static cadre_status append(struct cadre_plain_state *state, struct plain_part *part,
    const char *bytes, size_t size, struct cadre_error *error)
{
    if (state->fd < 0) {
        CADRE_TRY(open_file(state, error));
    }
    for (size_t done = 0; done < size;) {
        ssize_t count = pwrite(state->fd, bytes + done, size - done, (off_t)state->file_bytes);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return cadre_error_errno(error, errno, "cannot write the part %s of a state to %s",
                part->name, program_environment()->output_folder);
        }
        done += (size_t)count;
        state->file_bytes += (size_t)count;
        part->bytes += (size_t)count;
    }
    return CADRE_OK;
}

static cadre_status write_part(struct cadre_plain_state *state, const char *name, const void *bytes,
    size_t size, struct cadre_error *error)
{
    CADRE_TRY(name_check("part of a state", name, error));
    if (size > 0) {
        CADRE_TRY(argument_require(bytes, "cadre_plain_state_write", "bytes", error));
    }
    uint32_t count = state->part_count;
    if (count == 0 || strcmp(state->pieces[count - 1].name, name) != 0) {
        CADRE_TRY(add_part(state, name, error));
    }
    return append(state, &state->pieces[state->part_count - 1], bytes, size, error);
}

/* --- public --- */

cadre_status plain_state_new(struct cadre_plain_state **ret_state, struct cadre_error *error)
{
    *ret_state = calloc(1, sizeof **ret_state);
    if (*ret_state == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a state");
    }
    (*ret_state)->fd = -1;
    return CADRE_OK;
}

cadre_status cadre_plain_state_begin(cadre_plain_state **ret_state)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_state, __func__, "ret_state", &error);
    if (status == CADRE_OK) {
        *ret_state = NULL;
        status = plain_state_new(ret_state, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_plain_state_write(
    cadre_plain_state *state, const char *name, const void *bytes, size_t size)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(state, __func__, "state", &error);
    if (status == CADRE_OK && state->reader != NULL) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "%s was called with a state that is read; begin one by cadre_plain_state_begin",
            __func__);
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    if (state->failure.code != CADRE_OK) {
        error = state->failure; /* it is not whole any more */
        return api_return(error.code, &error);
    }
    status = write_part(state, name, bytes, size, &error);
    state->failure = error;
    return api_return(status, &error);
}

static cadre_status commit(
    const char *function, struct cadre_plain_state *state, struct cadre_error *error)
{
    struct plain *plain = NULL;
    CADRE_TRY(plain_enter(function, &plain, error));
    if (state != NULL && state->reader != NULL) {
        cadre_error_set(&state->failure, CADRE_FAILED_PRECONDITION,
            "%s was called with a state that is read", function);
    }
    cadre_status status = plain_save_all(plain, state, error);
    plain_leave(plain);
    return status;
}

cadre_status cadre_plain_state_commit(cadre_plain_state *state)
{
    struct cadre_error error = {0};
    cadre_status status = commit(__func__, state, &error);
    cadre_plain_state_close(state);
    return api_return(status, &error);
}

cadre_status cadre_plain_save(const char *name, const void *bytes, size_t size)
{
    struct cadre_error error = {0};
    struct plain_part part = {.bytes = size, .memory = bytes};
    struct cadre_plain_state state = {.pieces = &part, .part_count = 1, .fd = -1};
    if (name_check("state", name, &state.failure) == CADRE_OK && size > 0) {
        (void)argument_require(bytes, __func__, "bytes", &state.failure);
    }
    if (state.failure.code == CADRE_OK) {
        snprintf(part.name, sizeof part.name, "%s", name);
    }
    return api_return(commit(__func__, &state, &error), &error);
}

void cadre_plain_state_close(cadre_plain_state *state)
{
    if (state != NULL) {
        if (state->reader != NULL && plain_current() == NULL) {
            checkpoint_reader_report_nothing(state->reader); /* the task is gone */
        }
        checkpoint_reader_close(state->reader);
        if (state->fd >= 0) {
            close(state->fd);
        }
        free(state->pieces);
        free(state);
    }
}
