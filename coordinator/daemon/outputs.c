/* SPDX-License-Identifier: Apache-2.0
 * Jobs.ListOutputs: the checkpoints that are kept, and what tasks left in their output folders. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/artifacts.h"

struct listing {
    struct daemon *daemon;
    struct job_id job;
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

static void list_file(struct listing *listing, char *path, uint64_t bytes)
{
    if (path == NULL || listing->count == LIMIT_OUTPUTS_LISTED) {
        listing->more = true;
        free(path);
        return;
    }
    listing->items[listing->count++] = (struct output_info){.path = path, .size_bytes = bytes};
}

static void list_artifact(void *user, const char *name, uint64_t bytes)
{
    char *path = NULL;
    list_file(user, asprintf(&path, "%s%s", ARTIFACTS_FOLDER, name) >= 0 ? path : NULL, bytes);
}

/* One that refers to a checkpoint that is not kept any more is not there. Takes the path over. */
static void list_reference(struct listing *listing, const char *root, char *path)
{
    CADRE_FREE_AT_EXIT char *whole = NULL;
    CADRE_FREE_AT_EXIT char *name = NULL;
    struct artifact_file file = {0};
    struct cadre_error error = {0};
    whole = asprintf(&whole, "%s/%s", root, path) >= 0 ? whole : NULL;
    name = whole != NULL ? artifacts_reference(whole) : NULL;
    if (name != NULL &&
        artifacts_find(listing->daemon, listing->job, name, &file, &error) == CADRE_OK) {
        list_file(listing, path, file.bytes);
    } else {
        free(path);
    }
    artifact_file_free(&file);
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
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            free(path); /* it went meanwhile */
        } else if (S_ISDIR(status.st_mode)) {
            walk(listing, root, path);
            free(path);
        } else if (S_ISLNK(status.st_mode)) {
            list_reference(listing, root, path);
        } else {
            list_file(listing, path, (uint64_t)status.st_size);
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
        status = cadre_error_set(&error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`",
            (unsigned long long)request.id.n);
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
    listing->daemon = daemon;
    listing->job = request.id;
    artifacts_each(daemon, request.id, list_artifact, listing);
    walk(listing, outputs, "");
    qsort(listing->items, listing->count, sizeof listing->items[0], by_path);
    struct list_outputs_response response = {
        .outputs = listing->items, .count = listing->count, .more = listing->more};
    DAEMON_SEND(daemon, call, list_outputs_response, &response);
    listing_free(listing);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops list_outputs_ops = {.on_message = list_outputs_message};
