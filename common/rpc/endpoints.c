/* SPDX-License-Identifier: Apache-2.0
 * The list of addresses, and which of them is used. Used by the client library and the worker. */
#include "common/rpc/endpoints.h"

#include <stdio.h>
#include <string.h>

#include <grpc/support/alloc.h>

#include "common/pure/assert.h"
#include "common/rpc/tls_state.h"

#define SHOWN_BYTES 80

struct rpc_endpoint {
    struct rpc_address address;
    char text[RPC_ADDRESS_TEXT_BYTES]; /* as it was given */
    struct rpc_channel *channel;
};

struct rpc_endpoints {
    struct rpc_loop *loop;
    struct rpc_channel_options options;
    struct rpc_endpoint list[RPC_ENDPOINTS_MAX];
    size_t count;
    size_t used;
    bool answered; /* by the one that is used, since it was chosen or since a call on it failed */
};

/* The index of a server in the list; the count when it is not there. */
static size_t find(const struct rpc_endpoints *endpoints, const struct rpc_address *address)
{
    size_t at = 0;
    while (at < endpoints->count &&
           strcmp(endpoints->list[at].address.host_port, address->host_port) != 0) {
        at++;
    }
    return at;
}

/* ---- reading the list ---- */

static cadre_status check_listed(const struct rpc_endpoints *endpoints,
    const struct rpc_address *address, const char *text, struct cadre_error *error)
{
    if (endpoints->count == RPC_ENDPOINTS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": the list has more than %d addresses", SHOWN_BYTES, text,
            RPC_ENDPOINTS_MAX);
    }
    if (find(endpoints, address) < endpoints->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": the list names it twice", SHOWN_BYTES, text);
    }
    if (endpoints->count > 0 && endpoints->list[0].address.is_unix != address->is_unix) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": a list is of Unix sockets or of HOST:PORT, and this one begins with "
            "\"%.*s\"",
            SHOWN_BYTES, text, SHOWN_BYTES, endpoints->list[0].text);
    }
    return CADRE_OK;
}

static cadre_status add(
    struct rpc_endpoints *endpoints, const char *text, struct cadre_error *error)
{
    const struct rpc_channel_options *options = &endpoints->options;
    struct rpc_endpoint endpoint = {0};
    bool tls = options->tls != NULL;
    CADRE_TRY(rpc_address_parse(text, RPC_ADDRESS_DIAL, tls, &endpoint.address, error));
    CADRE_TRY(check_listed(endpoints, &endpoint.address, text, error));
    snprintf(endpoint.text, sizeof endpoint.text, "%s", text);
    CADRE_TRY(rpc_channel_open(endpoints->loop, text, options, &endpoint.channel, error));
    endpoints->list[endpoints->count++] = endpoint;
    for (size_t i = 0; endpoints->count > 1 && i < endpoints->count; i++) {
        rpc_channel_set_connect_wait(endpoints->list[i].channel, RPC_ENDPOINT_WAIT_US);
    }
    return CADRE_OK;
}

static cadre_status add_all(
    struct rpc_endpoints *endpoints, const char *addresses, struct cadre_error *error)
{
    const char *at = addresses;
    size_t length = strcspn(at, ",");
    if (at[length] == '\0') {
        return add(endpoints, addresses, error);
    }
    for (;; at += length + 1) {
        char text[RPC_ADDRESS_TEXT_BYTES];
        length = strcspn(at, ",");
        if (length == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "addresses \"%.*s\": one of them is empty; separate addresses by single commas",
                SHOWN_BYTES, addresses);
        }
        if (length >= sizeof text) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "address \"%.*s...\": %zu bytes, over the limit of %zu", SHOWN_BYTES, at, length,
                sizeof text - 1);
        }
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        CADRE_TRY(add(endpoints, text, error));
        if (at[length] == '\0') {
            return CADRE_OK;
        }
    }
}

cadre_status rpc_endpoints_open(struct rpc_loop *loop, const char *addresses,
    const struct rpc_channel_options *options, struct rpc_endpoints **ret_endpoints,
    struct cadre_error *error)
{
    *ret_endpoints = NULL;
    struct rpc_endpoints *endpoints = gpr_zalloc(sizeof *endpoints);
    endpoints->loop = loop;
    endpoints->options = options != NULL ? *options : (struct rpc_channel_options){0};
    rpc_tls_ref(endpoints->options.tls);
    cadre_status status = add_all(endpoints, addresses, error);
    if (status != CADRE_OK) {
        rpc_endpoints_close(endpoints);
        return status;
    }
    *ret_endpoints = endpoints;
    return CADRE_OK;
}

void rpc_endpoints_close(struct rpc_endpoints *endpoints)
{
    if (endpoints == NULL) {
        return;
    }
    for (size_t i = 0; i < endpoints->count; i++) {
        rpc_channel_close(endpoints->list[i].channel);
    }
    rpc_tls_unref(endpoints->options.tls);
    gpr_free(endpoints);
}

/* ---- which one is used ---- */

struct rpc_channel *rpc_endpoints_channel(const struct rpc_endpoints *endpoints)
{
    return endpoints->list[endpoints->used].channel;
}

const char *rpc_endpoints_address(const struct rpc_endpoints *endpoints)
{
    return endpoints->list[endpoints->used].text;
}

size_t rpc_endpoints_count(const struct rpc_endpoints *endpoints)
{
    return endpoints->count;
}

struct rpc_channel *rpc_endpoints_channel_at(const struct rpc_endpoints *endpoints, size_t at)
{
    CADRE_ASSERT(at < endpoints->count);
    return endpoints->list[at].channel;
}

void rpc_endpoints_use(struct rpc_endpoints *endpoints, size_t at)
{
    CADRE_ASSERT(at < endpoints->count);
    endpoints->used = at;
    endpoints->answered = false;
}

static size_t index_of(const struct rpc_endpoints *endpoints, const struct rpc_channel *channel)
{
    size_t at = 0;
    while (at < endpoints->count && endpoints->list[at].channel != channel) {
        at++;
    }
    CADRE_ASSERT(at < endpoints->count);
    return at;
}

void rpc_endpoints_answered(struct rpc_endpoints *endpoints, const struct rpc_channel *channel)
{
    endpoints->used = index_of(endpoints, channel);
    endpoints->answered = true;
}

/* The index of the leader that the server named; the count: it named none that can be used. */
static size_t leader_named(struct rpc_endpoints *endpoints, const struct rpc_call *call)
{
    char text[RPC_ADDRESS_TEXT_BYTES];
    struct rpc_address address;
    size_t length = 0;
    const char *value = rpc_call_trailer(call, RPC_LEADER_KEY, &length);
    if (value == NULL || length == 0 || length >= sizeof text) {
        return endpoints->count;
    }
    snprintf(text, sizeof text, "%.*s", (int)length, value);
    bool tls = endpoints->options.tls != NULL;
    if (rpc_address_parse(text, RPC_ADDRESS_DIAL, tls, &address, NULL) != CADRE_OK) {
        return endpoints->count;
    }
    size_t at = find(endpoints, &address);
    if (at == endpoints->count) {
        (void)add(endpoints, text, NULL);
    }
    return at;
}

/* Whether the attempt has to do with one of several servers, and which of them knew no leader. */
static void note_answer(struct rpc_attempt *attempt, size_t failed, const struct rpc_call *call)
{
    size_t length = 0;
    uint32_t bit = UINT32_C(1) << failed;
    if (rpc_call_trailer(call, RPC_LEADER_KEY, &length) != NULL) {
        attempt->awaited = true;
        attempt->undecided |= length == 0 ? bit & ~attempt->failed : 0;
    }
}

static bool has_failed(const struct rpc_attempt *attempt, size_t at)
{
    return (attempt->failed & (UINT32_C(1) << at)) != 0;
}

/* Whether the leader that was named may answer now. Each that knew no leader is asked once more. */
static bool may_lead(struct rpc_attempt *attempt, size_t leader)
{
    uint32_t bit = UINT32_C(1) << leader;
    bool may = (attempt->failed & bit & ~attempt->undecided) == 0;
    attempt->undecided &= ~bit;
    return may;
}

bool rpc_endpoints_failed(struct rpc_endpoints *endpoints, struct rpc_attempt *attempt,
    const struct rpc_channel *channel, const struct rpc_call *call)
{
    size_t failed = index_of(endpoints, channel);
    note_answer(attempt, failed, call);
    size_t leader = leader_named(endpoints, call);
    bool named = leader < endpoints->count && leader != failed;
    bool fresh = failed == endpoints->used && endpoints->answered && !attempt->again;
    if (fresh && endpoints->count > 1 && !named) {
        endpoints->answered = false;
        attempt->again = true;
        return true;
    }
    if (leader == failed && !attempt->itself) {
        attempt->itself = true;
        rpc_endpoints_use(endpoints, failed);
        return true;
    }
    attempt->failed |= UINT32_C(1) << failed;
    if (named && may_lead(attempt, leader)) {
        rpc_endpoints_use(endpoints, leader);
        return true;
    }
    if (!has_failed(attempt, endpoints->used)) {
        return true; /* another call has moved on meanwhile */
    }
    for (size_t i = 1; i <= endpoints->count; i++) {
        size_t next = (failed + i) % endpoints->count;
        if (!has_failed(attempt, next)) {
            rpc_endpoints_use(endpoints, next);
            return true;
        }
    }
    rpc_endpoints_use(endpoints, (failed + 1) % endpoints->count);
    *attempt = (struct rpc_attempt){.awaited = attempt->awaited};
    return false;
}
