/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/crew/progress_note.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"

#define NOTE_BYTES 8 /* the step, little-endian */
#define AT_ONCE    32

cadre_status crew_note_step(uint64_t step, struct cadre_error *error)
{
    struct crew_state *crew = crew_current();
    uint8_t bytes[NOTE_BYTES];
    if (crew == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there is no crew whose evaluator could be told of step %" PRIu64, step);
    }
    atomic_store(&crew->step, step);
    for (size_t i = 0; i < NOTE_BYTES; i++) {
        bytes[i] = (uint8_t)(step >> (8 * i));
    }
    struct request request = {.kind = REQUEST_NOTE,
        .server = 0,
        .name = PROGRESS_NOTE_NAME,
        .values = bytes,
        .rows = sizeof bytes};
    return crew->client == NULL ? CADRE_OK
                                : client_call(crew->client, &request, 1, crew_done_below(), error);
}

static cadre_status read_step(
    struct crew_state *crew, uint64_t *ret_step, struct cadre_error *error)
{
    struct request request = {.kind = REQUEST_NOTED, .server = 0, .name = PROGRESS_NOTE_NAME};
    *ret_step = 0;
    cadre_status status = client_call(crew->client, &request, 1, 0, error);
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

/* Asked for shard by shard, for none of the rows: there is no shard behind the last. */
static bool is_behind(cadre_status code)
{
    return code == CADRE_NOT_FOUND || code == CADRE_INVALID_ARGUMENT || code == CADRE_OUT_OF_RANGE;
}

static cadre_status add_pushes(
    struct crew_state *crew, uint32_t server, uint64_t *pushes, struct cadre_error *error)
{
    for (uint32_t first = 0;; first += AT_ONCE) {
        struct request requests[AT_ONCE];
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            requests[i] = (struct request){
                .kind = REQUEST_PULL, .server = server, .shard = first + i, .row_bytes = 1};
        }
        cadre_status status = client_call(crew->client, requests, AT_ONCE, 0, error);
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
    struct crew_state *crew, struct progress_note *ret_note, struct cadre_error *error)
{
    CADRE_ASSERT(crew->client != NULL);
    uint32_t servers = directory_self(crew->directory)->crew.servers;
    *ret_note = (struct progress_note){0};
    CADRE_TRY(read_step(crew, &ret_note->step, error));
    for (uint32_t server = 0; server < servers; server++) {
        CADRE_TRY(add_pushes(crew, server, &ret_note->pushes, error));
    }
    return CADRE_OK;
}
