/* SPDX-License-Identifier: Apache-2.0
 * One file of a job's outputs, written to a descriptor. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/client/state.h"
#include "common/wire/methods.h"

struct download {
    struct operation base;
    char *path;
    int fd;
    bool has_size;
    uint64_t size_bytes;
    uint64_t got_bytes;
};

static cadre_status download_message(
    struct operation *operation, const void *data, size_t length, struct cadre_error *error)
{
    struct download *download = (struct download *)operation;
    struct blob_chunk chunk;
    CADRE_TRY(wire_unpack_blob_chunk(data, length, operation->client->arena, &chunk, error));
    if (chunk.has_header == download->has_size) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "output %s came without its size, or with two: fetch it again", download->path);
    }
    if (chunk.has_header) {
        download->has_size = true;
        download->size_bytes = chunk.size_bytes;
    }
    CADRE_TRY(file_write_all(download->fd, download->path, chunk.bytes, chunk.byte_count, error));
    download->got_bytes += chunk.byte_count;
    return CADRE_OK;
}

static cadre_status download_ended(
    struct operation *operation, cadre_status status, struct cadre_error *error)
{
    const struct download *download = (struct download *)operation;
    if (status == CADRE_OK &&
        (!download->has_size || download->got_bytes != download->size_bytes)) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "output %s ended after %" PRIu64 " of %" PRIu64 " bytes: fetch it again",
            download->path, download->got_bytes, download->size_bytes);
    }
    return status;
}

static void download_release(struct operation *operation)
{
    struct download *download = (struct download *)operation;
    free(download->path);
    operation_free(operation);
}

static const struct operation_kind download_kind = {
    .message = download_message, .call_ended = download_ended, .release = download_release};

static cadre_status download_start(
    struct download *download, uint64_t job, struct cadre_error *error)
{
    const struct operation_call call = {.path = METHOD_JOBS_GET_OUTPUT, .server_streams = true};
    const struct get_output_request request = {.id = {job}, .path = download->path};
    if (download->path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to fetch an output");
    }
    CADRE_TRY(wire_pack_get_output_request(&request, &download->base.client->packed, error));
    return operation_send(&download->base, &call, error);
}

cadre_status cadre_client_get_output(
    cadre_client *client, uint64_t job, const char *path, int fd, const cadre_then *then)
{
    struct download *download = operation_new(client, &download_kind, sizeof *download, then);
    if (download == NULL) {
        return operation_new_status(client, then);
    }
    download->path = strdup(path != NULL ? path : "");
    download->fd = fd;
    struct cadre_error error = {0};
    return operation_launch(&download->base, download_start(download, job, &error), &error, then);
}
