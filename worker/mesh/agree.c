/* SPDX-License-Identifier: Apache-2.0
 * Comparing calls, and the sentence about the first two that differ. */
#include "worker/mesh/agree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mesh_agree_local(struct host_mesh *host)
{
    struct verdict *verdict = &host->verdict;
    const struct call *first = host->slots[0].call;
    *verdict = (struct verdict){.mismatch = false};
    host->shape = first->shape;
    for (uint32_t i = 0; i < host->local_count && !verdict->mismatch; i++) {
        const struct call *call = host->slots[i].call;
        uint32_t replica = host->first_replica + i;
        if (call->problem != NULL) {
            snprintf(verdict->text, sizeof verdict->text,
                "collective %" PRIu64 ": replica %" PRIu32 " called %s with %s", host->sequence,
                replica, mesh_kind_name(call->shape.kind), call->problem);
            verdict->mismatch = true;
        } else if (mesh_call_shape_equal(&call->shape, &first->shape)) {
            continue;
        } else if (call->note != NULL && first->note != NULL) {
            snprintf(verdict->text, sizeof verdict->text, "%s, %s", first->note, call->note);
            verdict->mismatch = true;
        } else {
            char who_a[64];
            char who_b[32];
            snprintf(who_a, sizeof who_a, "collective %" PRIu64 ": replica %" PRIu32,
                host->sequence, host->first_replica);
            snprintf(who_b, sizeof who_b, "replica %" PRIu32, replica);
            mesh_call_shape_compare(
                who_a, &first->shape, who_b, &call->shape, verdict->text, sizeof verdict->text);
            verdict->mismatch = true;
        }
    }
}

/* What rank `rank` was called with, its own task included. */
static const struct call_shape *shape_of(const struct host_mesh *host, uint32_t rank)
{
    return rank == host->rank ? &host->shape : &host->peers[rank].frame.shape;
}

/* The problem inside the task of `rank`; false when it has none. */
static bool take_problem(struct host_mesh *host, uint32_t rank)
{
    struct verdict *verdict = &host->verdict;
    if (rank == host->rank) {
        return verdict->mismatch;
    }
    const struct peer *peer = &host->peers[rank];
    if (peer->frame.type != FRAME_PROBLEM) {
        return false;
    }
    size_t length = peer->frame.inline_bytes;
    memcpy(verdict->text, peer->inlined, length);
    verdict->text[length] = '\0';
    verdict->mismatch = true;
    return true;
}

void mesh_agree_tasks(struct host_mesh *host)
{
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        if (take_problem(host, rank)) {
            return;
        }
    }
    for (uint32_t rank = 1; rank < host->task_count; rank++) {
        if (!mesh_call_shape_equal(shape_of(host, rank), shape_of(host, 0))) {
            char who_a[64];
            char who_b[64];
            snprintf(
                who_a, sizeof who_a, "collective %" PRIu64 ": the task of rank 0", host->sequence);
            snprintf(who_b, sizeof who_b, "the task of rank %" PRIu32, rank);
            mesh_call_shape_compare(who_a, shape_of(host, 0), who_b, shape_of(host, rank),
                host->verdict.text, sizeof host->verdict.text);
            host->verdict.mismatch = true;
            return;
        }
    }
}
