/* SPDX-License-Identifier: Apache-2.0
 * What a crew needs of folders that are not there yet: each says so until its folder is. */
#include "worker/ps/server.h"
#include "worker/runtime/crew/parts.h"

#define WEAK __attribute__((weak))

typedef int absent_nothing; /* the file is empty when all are there */

#if !__has_include("worker/ps/client.c")
WEAK cadre_status client_open(
    const struct client_options *options, struct client **ret_client, struct cadre_error *error)
{
    (void)options;
    *ret_client = NULL;
    return cadre_error_set(error, CADRE_UNIMPLEMENTED, "parameter servers are not there yet");
}

WEAK void client_close(struct client *client)
{
    (void)client;
}

WEAK cadre_status client_call(struct client *client, struct request *requests, size_t count,
    uint64_t done_below, struct cadre_error *error)
{
    (void)client;
    (void)requests;
    (void)count;
    (void)done_below;
    return cadre_error_set(error, CADRE_UNIMPLEMENTED, "parameter servers are not there yet");
}
#endif

#if !__has_include("worker/ps/server.c")
WEAK cadre_status server_start(
    const struct server_options *options, struct server **ret_server, struct cadre_error *error)
{
    link_listener_close(options->listener);
    *ret_server = NULL;
    return cadre_error_set(error, CADRE_UNIMPLEMENTED, "parameter servers are not there yet");
}

WEAK cadre_status server_wait(struct server *server, struct cadre_error *error)
{
    (void)server;
    (void)error;
    return CADRE_OK;
}

WEAK void server_stop(struct server *server)
{
    (void)server;
}
#endif

#if !__has_include("worker/runtime/parameters/parameters.c")
WEAK void parameters_end(struct crew_state *crew)
{
    (void)crew;
}
#endif
