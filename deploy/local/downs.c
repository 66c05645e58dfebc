/* SPDX-License-Identifier: Apache-2.0
 * The queue of messages to the agent, packed as on a stream. */
#include <stdlib.h>

#include "deploy/local/local_state.h"

cadre_status local_queue_down(
    struct local *local, const struct agent_down *down, struct cadre_error *error)
{
    struct packed_down *packed = calloc(1, sizeof *packed);
    if (packed == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a message to the tasks");
    }
    cadre_status status = wire_pack_agent_down(down, &packed->bytes, error);
    if (status != CADRE_OK) {
        wire_buffer_free(&packed->bytes);
        free(packed);
        return status;
    }
    *local->downs_tail = packed;
    local->downs_tail = &packed->next;
    return CADRE_OK;
}
