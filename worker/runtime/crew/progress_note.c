/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/crew/progress_note.h"

#include <inttypes.h>
#include <stdlib.h>

#define NOTE_BYTES 16 /* both numbers, little-endian */

static void put(uint8_t *at, uint64_t value)
{
    for (size_t i = 0; i < 8; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get(const uint8_t *at)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

cadre_status progress_note_write(
    struct crew_state *crew, const struct progress_note *note, struct cadre_error *error)
{
    uint8_t bytes[NOTE_BYTES];
    put(bytes, note->step);
    put(bytes + 8, note->done);
    struct request request = {.kind = REQUEST_NOTE,
        .server = 0,
        .name = PROGRESS_NOTE_NAME,
        .values = bytes,
        .rows = sizeof bytes};
    return client_call(crew->client, &request, 1, note->done, error);
}

cadre_status progress_note_read(
    struct crew_state *crew, struct progress_note *ret_note, struct cadre_error *error)
{
    struct request request = {.kind = REQUEST_NOTED, .server = 0, .name = PROGRESS_NOTE_NAME};
    *ret_note = (struct progress_note){0};
    cadre_status status = client_call(crew->client, &request, 1, 0, error);
    if (status == CADRE_OK && request.ret_text_bytes != NOTE_BYTES) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "ps 0 has %zu bytes for how far the chief is, and there are %d", request.ret_text_bytes,
            NOTE_BYTES);
    } else if (status == CADRE_OK) {
        ret_note->step = get((const uint8_t *)request.ret_text);
        ret_note->done = get((const uint8_t *)request.ret_text + 8);
    }
    free(request.ret_text);
    return status == CADRE_NOT_FOUND ? CADRE_OK : status;
}

cadre_status crew_note_step(uint64_t step, struct cadre_error *error)
{
    struct crew_state *crew = crew_current();
    if (crew == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there is no crew whose evaluator could be told of step %" PRIu64, step);
    }
    const struct progress_note note = {.step = step, .done = crew_done_below()};
    atomic_store(&crew->step, step);
    return crew->client == NULL ? CADRE_OK : progress_note_write(crew, &note, error);
}
