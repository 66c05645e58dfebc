/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/ps_job/progress_note.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"

#define NOTE_BYTES 8 /* the step, little-endian */
#define AT_ONCE    32

cadre_status ps_job_publish_step(uint64_t step, struct cadre_error *error)
{
    struct ps_job_state *ps_job = ps_job_current();
    uint8_t bytes[NOTE_BYTES];
    if (ps_job == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there is no ps job whose evaluator could read step %" PRIu64, step);
    }
    atomic_store(&ps_job->step, step);
    for (size_t i = 0; i < NOTE_BYTES; i++) {
        bytes[i] = (uint8_t)(step >> (8 * i));
    }
    struct request request = {.kind = REQUEST_NOTE,
        .server = 0,
        .name = PROGRESS_NOTE_NAME,
        .values = bytes,
        .rows = sizeof bytes};
    return ps_job->client == NULL
               ? CADRE_OK
               : client_call(ps_job->client, &request, 1, ps_job_done_watermark(), error);
}

static cadre_status read_step(
    struct ps_job_state *ps_job, uint64_t *ret_step, struct cadre_error *error)
{
    struct request request = {.kind = REQUEST_FIND_NOTE, .server = 0, .name = PROGRESS_NOTE_NAME};
    *ret_step = 0;
    cadre_status status = client_call(ps_job->client, &request, 1, 0, error);
    if (status == CADRE_OK && request.ret_text_bytes != NOTE_BYTES) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "ps 0 has %zu bytes for how far the chief is, and there are %d", request.ret_text_bytes,
            NOTE_BYTES);
    }
    for (size_t i = 0; status == CADRE_OK && i < NOTE_BYTES; i++) {
        *ret_step |= (uint64_t)(uint8_t)request.ret_text[i] << (8 * i);
    }
    free(request.ret_text);
    return status == CADRE_NOT_FOUND ? CADRE_OK : status;
}

/* Shards are read one by one without rows until one is not found: the shard behind the last. */
static bool is_behind(cadre_status code)
{
    return code == CADRE_NOT_FOUND || code == CADRE_INVALID_ARGUMENT || code == CADRE_OUT_OF_RANGE;
}

static cadre_status add_pushes(
    struct ps_job_state *ps_job, uint32_t server, uint64_t *pushes, struct cadre_error *error)
{
    for (uint32_t first = 0;; first += AT_ONCE) {
        struct request requests[AT_ONCE];
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            requests[i] = (struct request){
                .kind = REQUEST_PULL, .server = server, .shard = first + i, .row_bytes = 1};
        }
        cadre_status status = client_call(ps_job->client, requests, AT_ONCE, 0, error);
        if (status != CADRE_OK && !is_behind(status)) {
            return status;
        }
        for (uint32_t i = 0; i < AT_ONCE && requests[i].code == CADRE_OK; i++) {
            *pushes += requests[i].ret_version;
        }
        if (status != CADRE_OK) {
            return CADRE_OK;
        }
    }
}

cadre_status progress_note_read(
    struct ps_job_state *ps_job, struct progress_note *ret_note, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->client != NULL);
    uint32_t servers = directory_self(ps_job->directory)->ps_job.servers;
    *ret_note = (struct progress_note){0};
    CADRE_TRY(read_step(ps_job, &ret_note->step, error));
    for (uint32_t server = 0; server < servers; server++) {
        CADRE_TRY(add_pushes(ps_job, server, &ret_note->pushes, error));
    }
    return CADRE_OK;
}
