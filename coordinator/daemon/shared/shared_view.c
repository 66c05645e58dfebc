/* SPDX-License-Identifier: Apache-2.0
 * What people are shown of a coordinator of several. */
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/daemon/shared/shared_state.h"

void shared_ledger_show(const struct daemon *daemon, struct replica_view *ret_view)
{
    replica_show(daemon->shared->replica, ret_view);
}

const char *shared_ledger_trouble(const struct daemon *daemon)
{
    const struct shared_ledger *shared = daemon->shared;
    if (shared == NULL || shared->refused[0] != '\0') {
        return shared != NULL ? shared->refused : "";
    }
    struct replica_view view;
    replica_show(shared->replica, &view);
    const char *waiting = shared_members_waiting(shared->members);
    if (view.failure[0] == '\0' && waiting[0] != '\0') {
        return waiting;
    }
    bool behind = view.core.state == LEADERSHIP_FOLLOWER && view.core.has_store &&
                  view.core.applied.index + 1 < view.core.head.first;
    if (view.failure[0] == '\0' && behind) {
        return "the log in etcd begins behind this coordinator's ledger: it waits for the newest "
               "snapshot in the folder of --contents";
    }
    return view.failure;
}

/* The name and addresses of the one that leads now; "": none is known to. */
static void name_leader(const struct replica_view *view, struct leader_response *ret_response)
{
    bool known =
        view->leader != NULL && view->leader->leader.term > 0 && !view->leader->leader.left;
    ret_response->leader = known ? view->leader->name : "";
    ret_response->leader_addresses = known ? view->leader->addresses : "";
}

static const char *state_name(enum leadership_state state)
{
    static const char *const names[] = {[LEADERSHIP_FOLLOWER] = COORDINATOR_FOLLOWER,
        [LEADERSHIP_CANDIDATE] = COORDINATOR_CANDIDATE,
        [LEADERSHIP_CATCHING_UP] = COORDINATOR_CATCHING_UP,
        [LEADERSHIP_LEADING] = COORDINATOR_LEADING,
        [LEADERSHIP_SUSPENDED] = COORDINATOR_SUSPENDED,
        [LEADERSHIP_LEAVING] = COORDINATOR_LEAVING,
        [LEADERSHIP_REFUSED] = COORDINATOR_REFUSED};
    bool known = (size_t)state < CADRE_COUNT_OF(names) && names[state] != NULL;
    return known ? names[state] : COORDINATOR_LEAVING;
}

void shared_ledger_describe(const struct daemon *daemon, struct leader_response *ret_response)
{
    const struct shared_ledger *shared = daemon->shared;
    const char *advertised = daemon->options.ha.advertise;
    struct replica_view view;
    replica_show(shared->replica, &view);
    uint64_t now_us = clock_boot_us();
    uint64_t until_us = replica_may_send_until_us(shared->replica);
    bool leads = daemon->engine != NULL && now_us < until_us;
    *ret_response =
        (struct leader_response){.self = {.name = shared->name,
                                     .addresses = advertised != NULL ? advertised : shared->own,
                                     .state = state_name(view.core.state),
                                     .text = shared_ledger_trouble(daemon),
                                     .leads = leads,
                                     .applied = view.applied,
                                     .head = view.core.head.index,
                                     .version = CADRE_VERSION,
                                     .process = shared_members_process(shared->members),
                                     .format_max = ledger_format_newest(),
                                     .written_us = clock_wall_us()},
            .may_lead_us = leads ? until_us - now_us : 0};
    name_leader(&view, ret_response);
    if (view.core.leader.term > 0) {
        ret_response->self.term = (struct term){.cluster = shared->known.cluster_id.low,
            .start = view.core.leader.term,
            .nonce = view.core.leader.nonce.low};
        ret_response->self.since_us = view.leader != NULL ? view.leader->since_us : 0;
    }
}

size_t shared_ledger_list(
    const struct daemon *daemon, struct coordinator_info ret_infos[LIMIT_COORDINATORS])
{
    struct leader_response own;
    shared_ledger_describe(daemon, &own);
    return shared_members_list(
        daemon->shared->members, &own.self, own.leader, daemon->arena, ret_infos);
}
