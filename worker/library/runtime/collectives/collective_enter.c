/* SPDX-License-Identifier: Apache-2.0
 * How a collective of a replica gets its index in the step. */
#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_queue.h"

cadre_status collective_enter(cadre_replica *replica, const struct step_call *call,
    struct step_note *ret_note, struct cadre_error *error)
{
    CADRE_ASSERT(replica->active);
    struct step_call own = *call;
    if (own.timeout_us == 0) {
        own.timeout_us = collective_options_timeout_us(replica->strategy);
    }
    collective_queue_wait(replica);
    cadre_status status = step_collective_begin(replica, &own, ret_note, error);
    if (status == CADRE_OK) {
        status = step_admit(replica->strategy, replica->local, error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
    }
    return status;
}

cadre_status collective_meet_in_step(cadre_replica *replica, const struct step_call *call,
    const struct mesh_buffer *buffers, size_t count, struct cadre_error *error)
{
    struct step_note note;
    CADRE_TRY(collective_enter(replica, call, &note, error));
    cadre_status status =
        collective_sum_noted(replica->strategy, replica->local, buffers, count, &note.mesh, error);
    return step_collective_end(replica, status, error);
}
