/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_submit: asks which contents are missing, uploads those one after the other,
 * submits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/client/state.h"
#include "common/client/submission.h"
#include "common/wire/methods.h"

/* So many are on the way at a time: some are read from disk while others are sent. A coordinator
 * has room for 6 MiB of unfinished ones from all clients with the same certificate. */
#define CHUNK_BYTES ((size_t)256 * 1024)
#define CHUNKS_SENT 4

enum submit_stage { STAGE_MISSING, STAGE_UPLOAD, STAGE_SUBMIT };

struct submit {
    struct operation base;
    struct submission submission;
    enum submit_stage stage;
    bool sent; /* the job itself, at least once: it may have been accepted */
    cadre_submitted *ret_submitted;
    cadre_submitted answer;
    void (*on_upload)(const cadre_upload *upload, void *user);
    void *user;
    cadre_upload upload;
    size_t next; /* content to look at */
    /* The content that is uploaded now. */
    const struct content *content;
    int fd;
    uint64_t left_bytes;
    bool header_sent;
    struct sha256_stream *hash;
    uint8_t *chunk;
};

static void close_content(struct submit *submit)
{
    if (submit->fd >= 0) {
        close(submit->fd);
        submit->fd = -1;
    }
    sha256_close(submit->hash);
    submit->hash = NULL;
    submit->content = NULL;
}

/* ---- which are missing ---- */

static cadre_status ask_missing(struct submit *submit, struct cadre_error *error)
{
    const struct operation_call call = {.path = METHOD_JOBS_MISSING_BLOBS, .has_timeout = true};
    size_t count = submit->submission.content_count;
    uint8_t(*hashes)[LIMIT_SHA256_BYTES] = calloc(count, sizeof *hashes);
    if (hashes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to prepare a job");
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(hashes[i], submit->submission.contents[i].hash.bytes, LIMIT_SHA256_BYTES);
    }
    const struct blob_list list = {
        .sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])hashes, .count = count};
    cadre_status status = wire_pack_blob_list(&list, &submit->base.client->packed, error);
    free(hashes);
    return status == CADRE_OK ? operation_send(&submit->base, &call, error) : status;
}

static void mark_missing(struct submit *submit, const uint8_t hash[LIMIT_SHA256_BYTES])
{
    for (size_t i = 0; i < submit->submission.content_count; i++) {
        struct content *content = &submit->submission.contents[i];
        if (!content->missing && memcmp(content->hash.bytes, hash, LIMIT_SHA256_BYTES) == 0) {
            content->missing = true;
            submit->upload.files++;
            submit->upload.total_bytes += content->size_bytes;
        }
    }
}

/* ---- uploading one ---- */

static cadre_status client_changed(const struct submit *submit, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_ABORTED,
        "file %s changed while it was being uploaded: submit again when nothing writes to it",
        submit->content->path);
}

static cadre_status read_chunk(struct submit *submit, size_t want, struct cadre_error *error)
{
    size_t have = 0;
    while (have < want) {
        ssize_t got = read(submit->fd, submit->chunk + have, want - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return cadre_error_errno(error, errno, "cannot read %s", submit->content->path);
        }
        if (got == 0) {
            return client_changed(submit, error);
        }
        have += (size_t)got;
    }
    return sha256_add(submit->hash, submit->chunk, want, error);
}

static cadre_status check_content(struct submit *submit, struct cadre_error *error)
{
    struct sha256 made;
    CADRE_TRY(sha256_finish(submit->hash, &made, error));
    return sha256_equal(&made, &submit->content->hash) ? CADRE_OK : client_changed(submit, error);
}

static cadre_status send_chunk(struct submit *submit, struct cadre_error *error)
{
    struct wire_buffer *packed = &submit->base.client->packed;
    size_t want = submit->left_bytes < CHUNK_BYTES ? (size_t)submit->left_bytes : CHUNK_BYTES;
    CADRE_TRY(read_chunk(submit, want, error));
    struct blob_chunk chunk = {.has_header = !submit->header_sent,
        .size_bytes = submit->content->size_bytes,
        .bytes = submit->chunk,
        .byte_count = want};
    memcpy(chunk.sha256, submit->content->hash.bytes, LIMIT_SHA256_BYTES);
    submit->left_bytes -= want;
    if (submit->left_bytes == 0) {
        CADRE_TRY(check_content(submit, error));
    }
    wire_buffer_clear(packed);
    CADRE_TRY(wire_pack_blob_chunk(&chunk, packed, error));
    cadre_status status = rpc_call_send(submit->base.call, packed->bytes, packed->size, error);
    submit->header_sent = true;
    submit->upload.sent_bytes += want;
    return status == CADRE_CANCELLED ? CADRE_OK
                                     : status; /* the coordinator ended it, with the reason */
}

static cadre_status client_pump(struct submit *submit, struct cadre_error *error)
{
    bool last = submit->header_sent && submit->left_bytes == 0;
    for (int i = 0; i < CHUNKS_SENT && !last; i++) {
        CADRE_TRY(send_chunk(submit, error));
        last = submit->left_bytes == 0;
    }
    if (submit->on_upload != NULL) {
        submit->on_upload(&submit->upload, submit->user);
    }
    if (last) {
        rpc_call_half_close(submit->base.call);
    }
    return CADRE_OK;
}

static cadre_status start_upload(
    struct submit *submit, const struct content *content, struct cadre_error *error)
{
    const struct operation_call call = {.path = METHOD_JOBS_PUT_BLOB, .client_streams = true};
    submit->content = content;
    submit->left_bytes = content->size_bytes;
    submit->header_sent = false;
    submit->upload.path = content->path;
    uint64_t size_bytes = 0;
    cadre_status status = file_open_regular(content->path, &submit->fd, &size_bytes, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(
            error, CADRE_ABORTED, "it changed while the job was being submitted");
    }
    if (size_bytes != content->size_bytes) {
        return client_changed(submit, error);
    }
    CADRE_TRY(sha256_open(&submit->hash, error));
    CADRE_TRY(operation_call(&submit->base, &call, error));
    status = client_pump(submit, error);
    if (status != CADRE_OK) {
        submit->base.failed = true;
        submit->base.error = *error;
        submit->base.error.code = status;
        rpc_call_cancel(submit->base.call);
    }
    return CADRE_OK;
}

/* ---- from stage to stage ---- */

static cadre_status start_submit(struct submit *submit, struct cadre_error *error)
{
    const struct operation_call call = {.path = METHOD_JOBS_SUBMIT, .has_timeout = true};
    struct wire_buffer *packed = &submit->base.client->packed;
    submit->stage = STAGE_SUBMIT;
    submit->sent = true;
    wire_buffer_clear(packed);
    if (!wire_buffer_reserve(packed, submit->submission.spec.size)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to submit a job");
    }
    memcpy(packed->bytes, submit->submission.spec.bytes, submit->submission.spec.size);
    packed->size = submit->submission.spec.size;
    CADRE_TRY(operation_send(&submit->base, &call, error));
    submit->base.repeats = submit->base.kind->restart != NULL;
    return CADRE_OK;
}

/* The next missing content, or the job itself when there is none. */
static cadre_status start_next(struct submit *submit, struct cadre_error *error)
{
    close_content(submit);
    while (submit->next < submit->submission.content_count) {
        const struct content *content = &submit->submission.contents[submit->next++];
        if (content->missing) {
            submit->stage = STAGE_UPLOAD;
            return start_upload(submit, content, error);
        }
    }
    return start_submit(submit, error);
}

static cadre_status submit_message(
    struct operation *operation, const void *data, size_t length, struct cadre_error *error)
{
    struct submit *submit = (struct submit *)operation;
    struct wire_arena *arena = operation->client->arena;
    if (submit->stage == STAGE_MISSING) {
        struct blob_list missing;
        CADRE_TRY(wire_unpack_blob_list(data, length, arena, &missing, error));
        for (size_t i = 0; i < missing.count; i++) {
            mark_missing(submit, missing.sha256[i]);
        }
    } else if (submit->stage == STAGE_SUBMIT) {
        struct submit_response response;
        CADRE_TRY(wire_unpack_submit_response(data, length, arena, &response, error));
        submit->answer =
            (cadre_submitted){.job = response.id.n, .queued_before = response.queued_before};
        snprintf(submit->answer.note, sizeof submit->answer.note, "%s", response.note);
    }
    return CADRE_OK;
}

static cadre_status submit_drained(struct operation *operation, struct cadre_error *error)
{
    struct submit *submit = (struct submit *)operation;
    bool sending =
        submit->stage == STAGE_UPLOAD && !(submit->header_sent && submit->left_bytes == 0);
    return sending ? client_pump(submit, error) : CADRE_OK;
}

/* The coordinator is back, or another one is asked. What was uploaded may be lost with the host on
 * which it was, but the job itself was only sent when all of it was there. */
static cadre_status submit_restart(struct operation *operation, struct cadre_error *error)
{
    struct submit *submit = (struct submit *)operation;
    if (submit->stage == STAGE_SUBMIT) {
        return start_submit(submit, error);
    }
    close_content(submit);
    for (size_t i = 0; i < submit->submission.content_count; i++) {
        submit->submission.contents[i].missing = false;
    }
    submit->next = 0;
    submit->upload = (cadre_upload){0};
    submit->stage = STAGE_MISSING;
    return ask_missing(submit, error);
}

/* No coordinator answered, and for how long it was tried again is over. */
static cadre_status submit_lost(
    const struct submit *submit, cadre_status status, struct cadre_error *error)
{
    const struct cadre_client *client = submit->base.client;
    if (submit->sent) {
        return cadre_error_set(error, status,
            "the coordinator at %s went away before it answered: whether it has taken the job "
            "shows in `cadre jobs`, look there before you submit again",
            client->address);
    }
    if (submit->base.kind->restart != NULL) {
        return cadre_error_set(error, status,
            "the coordinator at %s did not come back within %llu s: the job was not submitted, "
            "submit it again later",
            client->address, (unsigned long long)(client->wait_timeout_us / CADRE_US_PER_S));
    }
    return status;
}

static cadre_status submit_ended(
    struct operation *operation, cadre_status status, struct cadre_error *error)
{
    struct submit *submit = (struct submit *)operation;
    if (status == CADRE_UNAVAILABLE || status == CADRE_DEADLINE_EXCEEDED) {
        return submit_lost(submit, status, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (submit->stage == STAGE_SUBMIT) {
        if (submit->ret_submitted != NULL) {
            *submit->ret_submitted = submit->answer;
        }
        return CADRE_OK;
    }
    if (submit->stage == STAGE_UPLOAD) {
        submit->upload.file++;
    }
    status = start_next(submit, error);
    return status == CADRE_OK ? CADRE_PENDING : status;
}

static void submit_release(struct operation *operation)
{
    struct submit *submit = (struct submit *)operation;
    close_content(submit);
    submission_close(&submit->submission);
    free(submit->chunk);
    operation_free(operation);
}

static const struct operation_kind submit_kind = {.message = submit_message,
    .drained = submit_drained,
    .call_ended = submit_ended,
    .restart = submit_restart,
    .release = submit_release};

/* At a coordinator that would make a second job of a repetition. */
static const struct operation_kind submit_once_kind = {.message = submit_message,
    .drained = submit_drained,
    .call_ended = submit_ended,
    .release = submit_release};

static cadre_status client_start(
    struct submit *submit, const cadre_submit_options *options, struct cadre_error *error)
{
    submit->chunk = malloc(CHUNK_BYTES);
    if (submit->chunk == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to prepare a job");
    }
    CADRE_TRY(submission_open(options, &submit->submission, error));
    if (submit->submission.unknown != NULL && !submit->base.client->objects) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the coordinator at %s has version %s, which knows %s: upgrade the coordinator",
            rpc_endpoints_address(submit->base.client->endpoints), submit->base.client->version,
            submit->submission.unknown);
    }
    return ask_missing(submit, error);
}

cadre_status cadre_client_submit(cadre_client *client, const cadre_submit_options *options,
    cadre_submitted *ret_submitted, const cadre_then *then)
{
    const struct operation_kind *kind = client->request_ids ? &submit_kind : &submit_once_kind;
    struct submit *submit = operation_new(client, kind, sizeof *submit, then);
    if (submit == NULL) {
        return operation_new_status(client, then);
    }
    submit->fd = -1;
    submit->ret_submitted = ret_submitted;
    submit->on_upload = options->on_upload;
    submit->user = options->user;
    struct cadre_error error = {0};
    return operation_launch(&submit->base, client_start(submit, options, &error), &error, then);
}
