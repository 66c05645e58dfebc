/* SPDX-License-Identifier: Apache-2.0
 * One file of a job's outputs, written to a descriptor. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static cadre_status write_all(
    struct download *download, const uint8_t *bytes, size_t size, struct cadre_error *error)
{
    while (size > 0) {
        ssize_t written = write(download->fd, bytes, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return cadre_error_errno(error, errno, "cannot write output %s", download->path);
        }
        bytes += written;
        size -= (size_t)written;
        download->got_bytes += (uint64_t)written;
    }
    return CADRE_OK;
}

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
    return write_all(download, chunk.bytes, chunk.byte_count, error);
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

static cadre_status start(struct download *download, uint64_t job, struct cadre_error *error)
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
        return operation_refusal(client, then);
    }
    download->path = strdup(path);
    download->fd = fd;
    struct cadre_error error = {0};
    return operation_launch(&download->base, start(download, job, &error), &error, then);
}
