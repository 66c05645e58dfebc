/* SPDX-License-Identifier: Apache-2.0
 * Files that go out over a server stream: Agents.GetBlob and Jobs.GetOutput; and Jobs.ListOutputs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/daemon.h"

#define CHUNK_BYTES ((size_t)512 * 1024)

struct transmit {
    struct daemon *daemon;
    int fd;
    uint64_t left_bytes;
};

/* The next chunk; on_drained asks for the one after it, so a slow reader costs one chunk of memory.
 */
static void pump(struct rpc_call *call, struct transmit *transmit)
{
    if (transmit->left_bytes == 0) {
        rpc_call_finish(call, CADRE_OK, "");
        return;
    }
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT uint8_t *bytes = malloc(CHUNK_BYTES);
    size_t want = transmit->left_bytes < CHUNK_BYTES ? (size_t)transmit->left_bytes : CHUNK_BYTES;
    ssize_t got = bytes != NULL ? read(transmit->fd, bytes, want) : -1;
    if (got <= 0) {
        cadre_error_set(&error, CADRE_DATA_LOSS,
            "the coordinator's file ended %" PRIu64 " bytes early", transmit->left_bytes);
        rpc_call_fail(call, &error);
        return;
    }
    transmit->left_bytes -= (uint64_t)got;
    struct blob_chunk chunk = {.bytes = bytes, .byte_count = (size_t)got};
    DAEMON_SEND(transmit->daemon, call, blob_chunk, &chunk);
}

static void transmit_drained(struct rpc_call *call, void *user)
{
    (void)user;
    if (rpc_call_user(call) != NULL) {
        pump(call, rpc_call_user(call));
    }
}

static void transmit_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct transmit *transmit = rpc_call_user(call);
    if (transmit != NULL) {
        close(transmit->fd);
        free(transmit);
    }
}

static cadre_status begin(struct daemon *daemon, struct rpc_call *call, const char *path,
    const uint8_t sha256[LIMIT_SHA256_BYTES], struct cadre_error *error)
{
    struct transmit *transmit = calloc(1, sizeof *transmit);
    if (transmit == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a download");
    }
    transmit->daemon = daemon;
    cadre_status status = file_open_regular(path, &transmit->fd, &transmit->left_bytes, error);
    if (status != CADRE_OK) {
        free(transmit);
        return status;
    }
    rpc_call_set_user(call, transmit);
    struct blob_chunk header = {.has_header = true, .size_bytes = transmit->left_bytes};
    memcpy(header.sha256, sha256, LIMIT_SHA256_BYTES);
    DAEMON_SEND(daemon, call, blob_chunk, &header);
    return CADRE_OK;
}

static void get_blob_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct get_blob_request request;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_get_blob_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK) {
        CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, request.sha256);
        status = path != NULL ? begin(daemon, call, path, request.sha256, &error)
                              : cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
                                    "the coordinator has no memory for a download");
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

const struct rpc_server_ops get_blob_ops = {
    .on_message = get_blob_message, .on_drained = transmit_drained, .on_closed = transmit_closed};

static cadre_status no_job(struct job_id job, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_NOT_FOUND, "there is no job %" PRIu64 ": see `cadre jobs`", job.n);
}

static void get_output_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct get_output_request request;
    static const uint8_t unknown[LIMIT_SHA256_BYTES];
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_get_output_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK && engine_job_spec(daemon->engine, request.id) == NULL) {
        status = no_job(request.id, &error);
    }
    if (status == CADRE_OK) {
        CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, request.id);
        CADRE_FREE_AT_EXIT char *path = NULL;
        if (outputs == NULL || asprintf(&path, "%s/%s", outputs, request.path) < 0) {
            path = NULL;
            status = cadre_error_set(
                &error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a download");
        } else if (begin(daemon, call, path, unknown, &error) != CADRE_OK) {
            status = cadre_error_set(&error, CADRE_NOT_FOUND,
                "job %" PRIu64 " left no file %s: see `cadre get %" PRIu64 " --list`", request.id.n,
                request.path, request.id.n);
        }
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

const struct rpc_server_ops get_output_ops = {
    .on_message = get_output_message, .on_drained = transmit_drained, .on_closed = transmit_closed};

/* ---- Jobs.ListOutputs ---- */

struct listing {
    struct output_info items[LIMIT_OUTPUTS_LISTED];
    size_t count;
    bool more;
};

static void listing_free(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free((void *)(uintptr_t)listing->items[i].path);
    }
    free(listing);
}

static void walk(struct listing *listing, const char *root, const char *below)
{
    CADRE_FREE_AT_EXIT char *folder_path = NULL;
    if (asprintf(&folder_path, "%s/%s", root, below) < 0) {
        folder_path = NULL;
        return;
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(folder_path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct stat status;
        char *path = NULL;
        if (entry->d_name[0] == '.' &&
            (entry->d_name[1] == '\0' || strcmp(entry->d_name, "..") == 0)) {
            continue;
        }
        if (asprintf(&path, "%s%s%s", below, below[0] != '\0' ? "/" : "", entry->d_name) < 0) {
            return;
        }
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(status.st_mode)) {
            walk(listing, root, path);
            free(path);
        } else if (listing->count == LIMIT_OUTPUTS_LISTED) {
            listing->more = true;
            free(path);
        } else {
            listing->items[listing->count++] =
                (struct output_info){.path = path, .size_bytes = (uint64_t)status.st_size};
        }
    }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct output_info *)a)->path, ((const struct output_info *)b)->path);
}

static void list_outputs_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct job_request request;
    wire_arena_reset(daemon->arena);
    cadre_status status = wire_unpack_job_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK && engine_job_spec(daemon->engine, request.id) == NULL) {
        status = no_job(request.id, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, request.id);
    struct listing *listing = calloc(1, sizeof *listing);
    if (outputs == NULL || listing == NULL) {
        free(listing);
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
        return;
    }
    walk(listing, outputs, "");
    qsort(listing->items, listing->count, sizeof listing->items[0], by_path);
    struct list_outputs_response response = {
        .outputs = listing->items, .count = listing->count, .more = listing->more};
    DAEMON_SEND(daemon, call, list_outputs_response, &response);
    listing_free(listing);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops list_outputs_ops = {.on_message = list_outputs_message};
