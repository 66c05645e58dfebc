/* SPDX-License-Identifier: Apache-2.0
 * The parser of etcd's address. Programs call it for an option's value, before etcd_open(). */
#include "common/etcd/address.h"

#include <stdio.h>
#include <string.h>

#include "common/base/tcp_address.h"

#define SHOWN_BYTES 80

static const char scheme[] = "etcd://";

/* "localhost" and 127.0.0.1 are one place. */
static bool is_there(const struct etcd_address *address, const struct rpc_address *endpoint)
{
    for (size_t i = 0; i < address->endpoint_count; i++) {
        struct rpc_address other;
        if (rpc_address_parse(address->endpoints[i], RPC_ADDRESS_DIAL, true, &other, NULL) ==
                CADRE_OK &&
            strcmp(other.host_port, endpoint->host_port) == 0) {
            return true;
        }
    }
    return false;
}

static cadre_status parse_endpoint(
    const char *text, bool tls, struct etcd_address *address, struct cadre_error *error)
{
    struct rpc_address parsed;
    struct tcp_address tcp;
    if (text[0] == '\0') {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "an endpoint is empty: expected HOST:PORT between the commas");
    }
    if (strchr(text, '@') != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "endpoint %zu has a user in it: user and password are options of their own",
            address->endpoint_count + 1);
    }
    if (!tcp_address_parse(text, &tcp) || tcp.port == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "endpoint \"%.*s\": expected HOST:PORT; etcd's usual port for clients is 2379",
            SHOWN_BYTES, text);
    }
    if (!tls && tcp.scope != TCP_SCOPE_LOOPBACK) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "endpoint \"%.*s\" is not a loopback address: connections between machines need TLS; "
            "give the file of etcd's CA (--ha-ca)",
            SHOWN_BYTES, text);
    }
    CADRE_TRY(rpc_address_parse(text, RPC_ADDRESS_DIAL, tls, &parsed, error));
    if (is_there(address, &parsed)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "endpoint \"%.*s\" is there twice: name each member of the cluster once", SHOWN_BYTES,
            text);
    }
    char *endpoint = address->endpoints[address->endpoint_count++];
    memcpy(endpoint, parsed.host_port, sizeof parsed.host_port);
    if (parsed.is_localhost) { /* its certificate is to have this name */
        snprintf(endpoint, sizeof parsed.host_port, "localhost:%d", parsed.port);
    }
    return CADRE_OK;
}

static cadre_status parse_endpoints(const char *list, size_t length, bool tls,
    struct etcd_address *address, struct cadre_error *error)
{
    for (size_t at = 0; at <= length;) {
        char one[RPC_ADDRESS_TEXT_BYTES];
        const char *comma = memchr(list + at, ',', length - at);
        size_t bytes = comma != NULL ? (size_t)(comma - list) - at : length - at;
        if (address->endpoint_count == ETCD_ENDPOINTS_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "more than %d endpoints: name the members of one cluster, three or five",
                ETCD_ENDPOINTS_MAX);
        }
        if (bytes >= sizeof one) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "endpoint %zu has %zu characters; at most %zu", address->endpoint_count + 1, bytes,
                sizeof one - 1);
        }
        memcpy(one, list + at, bytes);
        one[bytes] = '\0';
        CADRE_TRY(parse_endpoint(one, tls, address, error));
        at += bytes + 1;
    }
    return CADRE_OK;
}

static cadre_status check_prefix_part(const char *part, size_t length, struct cadre_error *error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    if (length == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the prefix has an empty part: expected names with one slash between them");
    }
    if (strspn(part, allowed) < length) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the prefix has a character other than letters, digits, '-', '_', '.' and '/'");
    }
    if ((length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.')) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the prefix has the part \"%.*s\": etcd's keys have no folders, write the whole name",
            (int)length, part);
    }
    return CADRE_OK;
}

static cadre_status parse_prefix(
    const char *prefix, struct etcd_address *address, struct cadre_error *error)
{
    size_t length = strlen(prefix);
    if (length >= sizeof address->prefix) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the prefix has %zu characters; at most %zu", length, sizeof address->prefix - 1);
    }
    for (size_t at = 0; at <= length;) {
        size_t part = strcspn(prefix + at, "/");
        CADRE_TRY(check_prefix_part(prefix + at, part, error));
        at += part + 1;
    }
    memcpy(address->prefix, prefix, length + 1);
    return CADRE_OK;
}

static cadre_status parse_rest(
    const char *rest, bool tls, struct etcd_address *address, struct cadre_error *error)
{
    const char *slash = strchr(rest, '/');
    if (slash == NULL || slash[1] == '\0') {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the prefix of the keys is missing: end with /NAME, a name of this cluster of Cadre");
    }
    CADRE_TRY(parse_endpoints(rest, (size_t)(slash - rest), tls, address, error));
    return parse_prefix(slash + 1, address, error);
}

cadre_status etcd_address_parse(
    const char *text, bool tls, struct etcd_address *ret_address, struct cadre_error *error)
{
    *ret_address = (struct etcd_address){0};
    if (strncmp(text, scheme, sizeof scheme - 1) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": expected etcd://HOST:PORT,HOST:PORT/PREFIX", SHOWN_BYTES, text);
    }
    if (strlen(text) > ETCD_ADDRESS_BYTES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s...\": more than %d characters", SHOWN_BYTES, text,
            ETCD_ADDRESS_BYTES_MAX);
    }
    cadre_status status = parse_rest(text + sizeof scheme - 1, tls, ret_address, error);
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    /* One with '@' may have a password in it, which belongs into no message. */
    return strchr(text, '@') != NULL
               ? cadre_error_wrap(error, status, "address etcd://...")
               : cadre_error_wrap(error, status, "address \"%.*s\"", SHOWN_BYTES, text);
}
