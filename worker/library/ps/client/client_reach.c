/* SPDX-License-Identifier: Apache-2.0
 * Finds and connects to a server: at the address in the directory, in any incarnation, as long as
 * its memory has the nonce that was seen first. Called by client.c. */
#include <inttypes.h>
#include <stdio.h>

#include "worker/library/ps/client/client_internal.h"

#define CONNECT_US     CADRE_US_PER_S /* then the directory is looked up again */
#define PAUSE_FIRST_US (2 * CADRE_US_PER_MS)

bool client_is_reachable(const struct exchange *exchange)
{
    struct directory_member member;
    directory_lookup(exchange->client->options.directory, ROLE_SERVER, exchange->server, &member);
    return member.here && member.incarnation == link_peer(exchange->link)->incarnation;
}

bool client_is_replaced(const struct exchange *exchange)
{
    struct directory_member member;
    directory_lookup(exchange->client->options.directory, ROLE_SERVER, exchange->server, &member);
    return member.here && member.incarnation > link_peer(exchange->link)->incarnation;
}

static cadre_status make_terms(
    const struct client *client, struct link_terms *ret_terms, struct cadre_error *error)
{
    const struct directory_self *self = directory_self(client->options.directory);
    *ret_terms = (struct link_terms){
        .slot = self->slot, .incarnation = self->incarnation, .ps_job = self->ps_job};
    for (size_t i = 0; i < LINK_PROGRAM_BYTES; i++) {
        ret_terms->program[i] = client->options.program[i];
    }
    return directory_await_key(
        client->options.directory, CLIENT_POLL_US, &ret_terms->generation, ret_terms->key, error);
}

/* The server's nonce must be the first one that was seen of it; another one means that its
 * variables are lost. */
static cadre_status check_nonce(struct exchange *exchange, const struct link *link, uint64_t nonce)
{
    struct client *client = exchange->client;
    struct client_server *server = &client->servers[exchange->server];
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&client->lock);
    if (!server->known) {
        server->known = true;
        server->nonce = nonce;
    } else if (server->nonce != nonce && client->lost.code == CADRE_OK) {
        (void)cadre_error_set(&client->lost, CADRE_DATA_LOSS,
            "%s was started again and lost its memory, and no backup had it: its variables are "
            "lost; start again from the newest checkpoint",
            link_peer_name(link));
        atomic_store(&client->look, true);
    }
    status = client->lost.code;
    pthread_mutex_unlock(&client->lock);
    return status;
}

static cadre_status client_reach_greet(
    struct exchange *exchange, struct link *link, struct cadre_error *error)
{
    struct frame frame = {.kind = FRAME_HELLO};
    CADRE_TRY(link_send(link, &frame, NULL, 0, error));
    CADRE_TRY(link_receive(link, CONNECT_US, &frame, error));
    if (frame.kind != FRAME_ANSWER || frame.bytes != 0 || frame.code != CADRE_OK) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "%s does not serve", link_peer_name(link));
    }
    link_set_patience(link, CLIENT_POLL_US);
    return check_nonce(exchange, link, frame.args[ANSWER_VERSION]);
}

/* One attempt. */
static cadre_status try_server(
    struct exchange *exchange, const struct directory_member *member, struct cadre_error *error)
{
    struct client *client = exchange->client;
    struct link_terms terms;
    struct link *link = NULL;
    char who[LINK_NAME_BYTES];
    CADRE_TRY(make_terms(client, &terms, error));
    link_slot_name(&terms.ps_job, member->slot, who);
    CADRE_TRY(link_connect(&terms, who, member->address, member->slot, CONNECT_US, &link, error));
    cadre_status status = client_reach_greet(exchange, link, error);
    if (status != CADRE_OK) {
        link_free(link);
        return status;
    }
    pthread_mutex_lock(&client->lock);
    exchange->link = link;
    bool closing = client->closing;
    pthread_mutex_unlock(&client->lock);
    if (closing) {
        link_shutdown(link);
    }
    return CADRE_OK;
}

static cadre_status give_up(const struct exchange *exchange, const struct directory_member *member,
    const struct cadre_error *last, struct cadre_error *error)
{
    char where[LIMIT_ADDRESS_BYTES + 8] = "";
    if (member->address[0] != '\0') {
        snprintf(where, sizeof where, " on %s", member->address);
    }
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "ps %" PRIu32 "%s could not be reached for %" PRIu64 " s: %s", exchange->server, where,
        exchange->client->options.wait_timeout_us / CADRE_US_PER_S,
        last->code != CADRE_OK ? last->text : "the coordinator says that it is not here");
}

cadre_status client_reach(struct exchange *exchange, struct cadre_error *error)
{
    const struct client_options *options = &exchange->client->options;
    uint64_t began_us = clock_monotonic_us();
    uint64_t pause_us = PAUSE_FIRST_US;
    struct cadre_error last = {0};
    struct directory_member member;
    for (;;) {
        CADRE_TRY(client_check(exchange->client, error));
        /* Read before the directory is looked up: a change after this ends the wait. */
        uint64_t seen = directory_await_change(options->directory, UINT64_MAX, 0);
        directory_lookup(options->directory, ROLE_SERVER, exchange->server, &member);
        if (member.here) {
            cadre_status status = try_server(exchange, &member, &last);
            if (status == CADRE_OK) {
                return CADRE_OK;
            }
            CADRE_TRY(client_check(exchange->client, error));
            if (status == CADRE_FAILED_PRECONDITION) {
                return cadre_error_set(error, status, "%s", last.text);
            }
        }
        uint64_t waited_us = clock_monotonic_us() - began_us;
        if (waited_us >= options->wait_timeout_us) {
            return give_up(exchange, &member, &last, error);
        }
        uint64_t left_us = options->wait_timeout_us - waited_us;
        directory_await_change(options->directory, seen, left_us < pause_us ? left_us : pause_us);
        pause_us = pause_us * 2 < CLIENT_POLL_US ? pause_us * 2 : CLIENT_POLL_US;
    }
}
