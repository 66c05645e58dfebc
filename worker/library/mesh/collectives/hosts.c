/* SPDX-License-Identifier: Apache-2.0
 * The turns of a collective over several hosts. */
#include "worker/library/mesh/collectives/hosts.h"

#include <stdio.h>

#include "worker/library/mesh/collectives/collective.h"

#define BUFFERS 3 /* one on the wire, one in the making, one that is still copied out of */

/* Publishes the agreement of all hosts; called by the leader. */
static cadre_status hosts_publish(struct replica *replica, const struct agreement *agreement)
{
    struct group_head *head = replica->host->group.head;
    bool holds = mesh_agreement_holds(agreement);
    if (!holds) {
        mesh_agreement_explain(agreement, head->verdict_text, sizeof head->verdict_text);
    }
    atomic_store_explicit(&head->verdict, holds ? 0 : 1, memory_order_relaxed);
    return CADRE_OK;
}

static cadre_status hosts_learn(struct replica *replica)
{
    const struct group_head *head = replica->host->group.head;
    if (atomic_load_explicit(&head->verdict, memory_order_relaxed) == 0) {
        return CADRE_OK;
    }
    snprintf(replica->text, sizeof replica->text, "%.*s", (int)sizeof head->verdict_text - 1,
        head->verdict_text);
    return CADRE_INVALID_ARGUMENT;
}

/* Whether the data are sent with the agreement. */
static bool hosts_data_with_agreement(
    const struct replica *replica, const struct call *call, const struct hosts_kind *kind)
{
    const struct host_mesh *host = replica->host;
    bool fits = kind->lone_exchange && host->lone_slots &&
                call->shape.bytes <= mesh_wire_small_bytes(host) / 2; /* 16-bit types are widened */
    return kind->exchange != NULL && (call->small || fits);
}

/* Agrees with the other hosts; small data are sent with it. */
static cadre_status open_call(
    struct replica *replica, const struct call *call, const struct hosts_kind *kind, bool same)
{
    struct wire_call wire = {.sequence = replica->sequence,
        .timeout_us = call->timeout_us,
        .over = call->small,
        .agreement = {.first = mesh_agree_record(replica, call)}};
    if (!same) {
        CADRE_TRY(mesh_agree_fold(replica, call, &wire.agreement));
    }
    if (mesh_is_leader(replica)) {
        uint8_t *result = group_result(&replica->host->group, 0);
        CADRE_TRY(same && hosts_data_with_agreement(replica, call, kind)
                      ? kind->exchange(replica, call, &wire, result)
                      : mesh_wire_agree(replica->host, &wire));
        CADRE_TRY(hosts_publish(replica, &wire.agreement));
    }
    CADRE_TRY(mesh_step_carried(replica, call));
    return hosts_learn(replica);
}

static cadre_status make_chunk(struct replica *replica, const struct call *call,
    const struct hosts_kind *kind, size_t low, size_t high, unsigned turn)
{
    const struct group *group = &replica->host->group;
    bool alone = group->slot_count == 1;
    if (low >= high || (mesh_is_leader(replica) && !alone)) {
        return CADRE_OK;
    }
    if (!group_touch_begin(&replica->host->group, replica->slot)) {
        return mesh_broken(replica);
    }
    cadre_status status = kind->make(replica, call, low, high, group_result(group, turn),
        alone ? 0 : replica->slot - 1, alone ? 1 : group->slot_count - 1);
    group_touch_end(&replica->host->group, replica->slot);
    return status;
}

static void stage_chunk(struct replica *replica, const struct call *call,
    const struct hosts_kind *kind, size_t low, size_t high, unsigned parity)
{
    if (replica->staged && kind->stage != NULL && low < high) {
        kind->stage(
            replica, call, low, high, group_stage(&replica->host->group, replica->slot, parity));
    }
}

/* Three chunks are under way: c is carried, c + 1 made, c + 2 staged. */
static cadre_status run_chunks(
    struct replica *replica, const struct call *call, const struct hosts_kind *kind)
{
    const struct group *group = &replica->host->group;
    size_t cuts[4] = {0}; /* where chunks c, c + 1, c + 2 begin, and the last of them ends */
    for (unsigned i = 1; i < 4; i++) {
        cuts[i] = kind->cut(replica, call, cuts[i - 1], kind->size(replica, call));
    }
    stage_chunk(replica, call, kind, cuts[0], cuts[1], 0);
    stage_chunk(replica, call, kind, cuts[1], cuts[2], 1);
    if (replica->staged) {
        CADRE_TRY(mesh_step(replica, call));
    }
    replica->parity = 0;
    CADRE_TRY(make_chunk(replica, call, kind, cuts[0], cuts[1], 0));
    CADRE_TRY(mesh_step(replica, call));
    for (unsigned turn = 0; cuts[0] < cuts[1]; turn++) {
        uint8_t *chunk = group_result(group, turn % BUFFERS);
        stage_chunk(replica, call, kind, cuts[2], cuts[3], turn % 2);
        if (mesh_is_leader(replica)) {
            CADRE_TRY(kind->carry(replica, call, cuts[0], cuts[1], chunk));
        }
        replica->parity = (turn + 1) % 2;
        CADRE_TRY(make_chunk(replica, call, kind, cuts[1], cuts[2], (turn + 1) % BUFFERS));
        CADRE_TRY(mesh_step_carried(replica, call));
        kind->deliver(replica, call, cuts[0], cuts[1], chunk);
        cuts[0] = cuts[1];
        cuts[1] = cuts[2];
        cuts[2] = cuts[3];
        cuts[3] = kind->cut(replica, call, cuts[2], kind->size(replica, call));
    }
    return CADRE_OK;
}

cadre_status mesh_hosts_run(
    struct replica *replica, const struct call *call, const struct hosts_kind *kind, bool same)
{
    CADRE_TRY(open_call(replica, call, kind, same));
    if (!call->small && !hosts_data_with_agreement(replica, call, kind)) {
        replica->arrived_ns = trace_now(replica->mark);
        if (kind->whole != NULL && replica->host->lone_slots) {
            return kind->whole(replica, call);
        }
        CADRE_TRY(kind->prepare != NULL ? kind->prepare(replica, call) : CADRE_OK);
        return run_chunks(replica, call, kind);
    }
    if (kind->take != NULL) {
        kind->take(replica, call, group_result(&replica->host->group, 0));
    }
    return CADRE_OK;
}
