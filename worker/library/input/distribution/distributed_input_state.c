/* SPDX-License-Identifier: Apache-2.0
 * Where pipelines that are read in order stand, for checkpoints; and the long way to a step that is
 * far ahead. A state is a head (whose it is) and the position of each stream. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/library/input/distribution/distributed_input_internal.h"

/* Steps between two states: with all that are kept, more than are read ahead. */
#define STATE_STEPS 16

#define STATE_US_DEFAULT CADRE_US_PER_S

/* Taking them may cost one part in so many of the time. */
#define STATE_SHARE 20

void distributed_state_clear(struct distributed_state *state)
{
    free(state->bytes);
    *state = (struct distributed_state){0};
}

/* Under DATA the stream is the same for everybody; else it is one worker's of one layout. */
static void head_of(const struct distributed_input *input, uint64_t head[5])
{
    bool all = input->rule == &input_rule_data;
    head[0] = all ? 0 : 1;
    head[1] = all ? 0 : input->workers;
    head[2] = all ? 0 : input->worker_index;
    head[3] = all ? 0 : input->replicas;
    head[4] = all ? 0 : (uint64_t)(input->policy + 1);
}

/* --- taking them --- */

static cadre_status write_state(struct distributed_input *input, uint64_t epoch, uint64_t step,
    struct iterator_state_writer *writer, struct cadre_error *error)
{
    uint64_t head[5];
    uint32_t count = 0;
    uint64_t index = 0;
    struct element_stream *streams = input->rule->streams(input, epoch, step, &count, &index);
    head_of(input, head);
    for (size_t i = 0; i < 5; i++) {
        CADRE_TRY(iterator_state_write_number(writer, head[i], error));
    }
    CADRE_TRY(iterator_state_write_number(writer, count, error));
    for (uint32_t i = 0; i < count; i++) {
        struct iterator_state_writer own = {.limit = writer->limit};
        cadre_status status = element_stream_save(&streams[i], &own, error);
        if (status == CADRE_OK) {
            status = iterator_state_write_bytes(writer, own.bytes, own.count, error);
        }
        iterator_state_writer_clear(&own);
        CADRE_TRY(status);
    }
    return CADRE_OK;
}

static void distributed_input_state_keep(
    struct distributed_input *input, const struct distributed_state *state)
{
    pthread_mutex_lock(&input->lock);
    if (input->state_count == INPUT_STATES_MAX) {
        distributed_state_clear(&input->states[0]);
        input->state_count--;
        memmove(input->states, input->states + 1, input->state_count * sizeof input->states[0]);
    }
    input->states[input->state_count++] = *state;
    pthread_mutex_unlock(&input->lock);
}

/* Only the reading thread adds states, so it may look without the lock. */
static bool is_due(struct distributed_input *input, uint64_t epoch, uint64_t step, uint64_t now_us)
{
    uint32_t count = 0;
    uint64_t index = 0;
    struct element_stream *streams = input->rule->streams(input, epoch, step, &count, &index);
    if (count == 0 || now_us < input->state_due_us) {
        return false;
    }
    bool wanted = false;
    for (uint32_t i = 0; i < count; i++) {
        wanted = wanted || element_stream_wants_states(&streams[i]);
    }
    if (input->state_count == 0) {
        return wanted;
    }
    const struct distributed_state *last = &input->states[input->state_count - 1];
    return wanted &&
           (last->epoch != epoch || step < last->step || step - last->step >= STATE_STEPS);
}

void distributed_input_keep_state(struct distributed_input *input, uint64_t epoch, uint64_t step)
{
    if (input->state_bytes_max == 0) {
        return;
    }
    const uint64_t start_us = clock_monotonic_us();
    if (!is_due(input, epoch, step, start_us)) {
        return;
    }
    struct iterator_state_writer writer = {.limit = input->state_bytes_max};
    cadre_status status = write_state(input, epoch, step, &writer, NULL);
    const uint64_t end_us = clock_monotonic_us();
    const uint64_t apart_us = input->state_us > 0 ? input->state_us : STATE_US_DEFAULT;
    const uint64_t cost_us = (end_us - start_us) * STATE_SHARE;
    input->state_due_us = end_us + (cost_us > apart_us ? cost_us : apart_us);
    if (status != CADRE_OK) {
        /* It cannot tell, or it is too large now: what was kept before still serves. */
        iterator_state_writer_clear(&writer);
        return;
    }
    const struct distributed_state state = {
        .epoch = epoch, .step = step, .bytes = writer.bytes, .count = writer.count};
    distributed_input_state_keep(input, &state);
}

cadre_status distributed_input_save(struct distributed_input *input, uint64_t epoch, uint64_t step,
    struct distributed_state *ret_state, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    *ret_state = (struct distributed_state){0};
    pthread_mutex_lock(&input->lock);
    const struct distributed_state *found = NULL;
    for (uint32_t i = 0; i < input->state_count; i++) {
        const struct distributed_state *state = &input->states[i];
        bool serves = state->epoch == epoch && state->step <= step;
        found = serves && (found == NULL || found->step <= state->step) ? state : found;
    }
    uint8_t *bytes = found != NULL ? malloc(found->count) : NULL;
    if (found == NULL) {
        status = cadre_error_set(error, CADRE_NOT_FOUND,
            "dataset '%s': no position was kept before step %" PRIu64 " of epoch %" PRIu64,
            input->name, step, epoch);
    } else if (bytes == NULL) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "dataset '%s': no memory for a position of %zu bytes", input->name, found->count);
    } else {
        *ret_state = *found;
        ret_state->bytes = bytes;
        memcpy(bytes, found->bytes, found->count);
    }
    pthread_mutex_unlock(&input->lock);
    return status;
}

/* --- giving them back --- */

static cadre_status check_head(const struct distributed_input *input,
    struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t head[5];
    head_of(input, head);
    for (size_t i = 0; i < 5; i++) {
        uint64_t number = 0;
        CADRE_TRY(iterator_state_read_number(reader, &number, error));
        if (number != head[i]) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the position is of a pipeline that was divided in another way");
        }
    }
    return CADRE_OK;
}

static cadre_status distributed_input_state_restore(struct distributed_input *input,
    const struct distributed_state *state, struct cadre_error *error)
{
    struct iterator_state_reader reader = {.bytes = state->bytes, .count = state->count};
    uint32_t count = 0;
    uint64_t index = 0;
    uint64_t saved = 0;
    struct element_stream *streams =
        input->rule->streams(input, state->epoch, state->step, &count, &index);
    CADRE_TRY(check_head(input, &reader, error));
    CADRE_TRY(iterator_state_read_number(&reader, &saved, error));
    if (saved != count || count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the position is of %" PRIu64 " pipelines, and %" PRIu32 " can take one", saved, count);
    }
    const struct element_position position = {.index = index, .epoch = state->epoch};
    /* Each stream takes its own or none; some of them may be ahead of the others then, which costs
     * reading and changes nothing. */
    for (uint32_t i = 0; i < count; i++) {
        const void *bytes = NULL;
        size_t byte_count = 0;
        CADRE_TRY(iterator_state_read_bytes(&reader, &bytes, &byte_count, error));
        CADRE_TRY(element_stream_restore(&streams[i], position, bytes, byte_count, error));
    }
    return CADRE_OK;
}

cadre_status distributed_input_restore(struct distributed_input *input,
    const struct distributed_state *state, struct cadre_error *error)
{
    cadre_status status = distributed_input_state_restore(input, state, error);
    return status == CADRE_OK
               ? CADRE_OK
               : cadre_error_wrap(error, status,
                     "dataset '%s', position before step %" PRIu64 " of epoch %" PRIu64,
                     input->name, state->step, state->epoch);
}

/* --- on the way --- */

void distributed_input_cancel(struct distributed_input *input, bool cancelled)
{
    atomic_store(&input->replay.cancelled, cancelled);
}

bool distributed_input_replayed(
    const struct distributed_input *input, uint64_t *ret_done, uint64_t *ret_wanted)
{
    *ret_wanted = atomic_load(&input->replay.wanted);
    *ret_done = atomic_load(&input->replay.done);
    if (*ret_done > *ret_wanted) { /* the next way has begun in between */
        *ret_done = *ret_wanted;
    }
    return *ret_wanted > 0;
}
