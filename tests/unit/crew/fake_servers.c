/* SPDX-License-Identifier: Apache-2.0
 * Servers and their clients as a crew begins and ends them; of what they do only notes. */
#include <stdlib.h>
#include <string.h>

#include "worker/ps/client.h"
#include "worker/ps/server.h"

struct client {
    struct directory *directory;
};

struct server {
    struct link_listener *listener;
};

static struct {
    char bytes[64];
    size_t count;
} note;

cadre_status client_open(
    const struct client_options *options, struct client **ret_client, struct cadre_error *error)
{
    (void)error;
    *ret_client = malloc(sizeof **ret_client);
    (*ret_client)->directory = options->directory;
    return CADRE_OK;
}

void client_close(struct client *client)
{
    free(client);
}

cadre_status client_call(struct client *client, struct request *requests, size_t count,
    uint64_t done_below, struct cadre_error *error)
{
    (void)client;
    (void)count;
    (void)done_below;
    if (requests->kind == REQUEST_NOTE) {
        memcpy(note.bytes, requests->values, requests->rows);
        note.count = requests->rows;
        return CADRE_OK;
    }
    if (requests->kind == REQUEST_PULL) {
        return requests->code = cadre_error_set(error, CADRE_NOT_FOUND, "there is no shard");
    }
    if (note.count == 0) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "there is no note");
    }
    requests->ret_text = malloc(note.count);
    memcpy(requests->ret_text, note.bytes, note.count);
    requests->ret_text_bytes = note.count;
    return CADRE_OK;
}

cadre_status server_start(
    const struct server_options *options, struct server **ret_server, struct cadre_error *error)
{
    (void)error;
    *ret_server = malloc(sizeof **ret_server);
    (*ret_server)->listener = options->listener;
    return CADRE_OK;
}

cadre_status server_wait(struct server *server, struct cadre_error *error)
{
    (void)server;
    (void)error;
    return CADRE_OK;
}

void server_stop(struct server *server)
{
    if (server != NULL) {
        link_listener_close(server->listener);
        free(server);
    }
}
