/* SPDX-License-Identifier: Apache-2.0
 * What any file of the daemon calls: answers a call, or ends the daemon. */
#include "coordinator/daemon/base/daemon.h"

#include <string.h>

void daemon_fail(struct daemon *daemon, const struct cadre_error *error)
{
    if (daemon->failed == CADRE_OK) {
        daemon->failed = error->code;
        daemon->failure = *error;
    }
    rpc_loop_stop(daemon->loop);
}

void daemon_refuse(struct daemon *daemon, const struct cadre_error *error)
{
    daemon->is_refused = daemon->is_refused || daemon->failed == CADRE_OK;
    daemon_fail(daemon, error);
}

bool daemon_is_open_to_host(const struct daemon *daemon)
{
    static const char unix_prefix[] = "unix:";
    bool tcp = false;
    for (size_t i = 0; i < daemon->options.listen.count; i++) {
        const char *address = daemon->options.listen.items[i];
        tcp = tcp || strncmp(address, unix_prefix, sizeof unix_prefix - 1) != 0;
    }
    return tcp && daemon->tls == NULL;
}

void daemon_send_packed(
    struct daemon *daemon, struct rpc_call *call, cadre_status status, struct cadre_error *error)
{
    if (status == CADRE_OK) {
        status = rpc_call_send(call, daemon->packed.bytes, daemon->packed.size, error);
    }
    if (status != CADRE_OK && status != CADRE_CANCELLED) {
        rpc_call_fail(call, error);
    }
}
