/* SPDX-License-Identifier: Apache-2.0
 * The methods of cadre.v1.Coordinators: which coordinator leads, and which there are. */
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/shared/shared_ledger.h"

/* Of a coordinator that shares no ledger, itself. */
static void describe(struct daemon *daemon, struct leader_response *ret_response)
{
    if (daemon->shared != NULL) {
        shared_ledger_describe(daemon, ret_response);
    } else {
        listing_leader(daemon, ret_response);
    }
}

static void leader_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct daemon *daemon = user;
    struct leader_response response;
    describe(daemon, &response);
    DAEMON_SEND(daemon, call, leader_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops leader_ops = {.on_message = leader_message};

static void coordinators_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct daemon *daemon = user;
    struct coordinator_info infos[LIMIT_COORDINATORS];
    struct list_coordinators_response response = {.coordinators = infos, .count = 1};
    wire_arena_reset(daemon->arena);
    if (daemon->shared != NULL) {
        response.count = shared_ledger_list(daemon, infos);
    } else {
        struct leader_response leader;
        listing_leader(daemon, &leader);
        infos[0] = leader.self;
    }
    DAEMON_SEND(daemon, call, list_coordinators_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops list_coordinators_ops = {.on_message = coordinators_message};
