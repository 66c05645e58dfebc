/* SPDX-License-Identifier: Apache-2.0
 * The methods of cadre.v1.Coordinators: which coordinator leads, and which there are. */
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/base/methods.h"

static void leader_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct daemon *daemon = user;
    struct leader_response response;
    listing_leader(daemon, &response);
    DAEMON_SEND(daemon, call, leader_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops leader_ops = {.on_message = leader_message};

static void coordinators_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct daemon *daemon = user;
    struct leader_response leader;
    listing_leader(daemon, &leader);
    const struct list_coordinators_response response = {.coordinators = &leader.self, .count = 1};
    DAEMON_SEND(daemon, call, list_coordinators_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops list_coordinators_ops = {.on_message = coordinators_message};
