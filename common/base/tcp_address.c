/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX        65535
#define PORT_DIGITS_MAX 5
#define LOOPBACK_TOP    127

/* Digits only, so that "+1", " 1" and "1x" are refused. */
static bool parse_port(const char *text, int *ret_port)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > PORT_DIGITS_MAX || text[digits] != '\0') {
        return false;
    }
    long port = strtol(text, NULL, 10);
    *ret_port = (int)port;
    return port <= PORT_MAX;
}

static void fill_v4(struct tcp_address *address, struct in_addr v4)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_addr = v4, .sin_port = htons((in_port_t)address->port)};
    memcpy(&address->socket_address, &in, sizeof in);
    address->socket_address_bytes = sizeof in;
}

static void fill_v6(struct tcp_address *address, const struct in6_addr *v6)
{
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_addr = *v6, .sin6_port = htons((in_port_t)address->port)};
    memcpy(&address->socket_address, &in6, sizeof in6);
    address->socket_address_bytes = sizeof in6;
}

/* Fills the socket address of the host and returns its scope. */
static enum tcp_scope find_scope(struct tcp_address *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (address->bracketed && inet_pton(AF_INET6, address->host, &v6) == 1) {
        fill_v6(address, &v6);
        return IN6_IS_ADDR_LOOPBACK(&v6)      ? TCP_SCOPE_LOOPBACK
               : IN6_IS_ADDR_UNSPECIFIED(&v6) ? TCP_SCOPE_ANY
                                              : TCP_SCOPE_REMOTE;
    }
    if (!address->bracketed && inet_pton(AF_INET, address->host, &v4) == 1) {
        fill_v4(address, v4);
        return ntohl(v4.s_addr) >> 24 == LOOPBACK_TOP ? TCP_SCOPE_LOOPBACK
               : v4.s_addr == INADDR_ANY              ? TCP_SCOPE_ANY
                                                      : TCP_SCOPE_REMOTE;
    }
    return TCP_SCOPE_NAME;
}

bool tcp_address_parse(const char *text, struct tcp_address *ret_address)
{
    *ret_address = (struct tcp_address){.bracketed = text[0] == '['};
    bool bracketed = ret_address->bracketed;
    const char *host = bracketed ? text + 1 : text;
    const char *host_end = bracketed ? strchr(host, ']') : strrchr(host, ':');
    const char *colon = host_end != NULL && bracketed ? host_end + 1 : host_end;
    if (colon == NULL || *colon != ':' || !parse_port(colon + 1, &ret_address->port) ||
        (size_t)(host_end - host) >= sizeof ret_address->host) {
        return false;
    }
    memcpy(ret_address->host, host, (size_t)(host_end - host));
    if (!bracketed && strcmp(ret_address->host, "localhost") == 0) {
        ret_address->is_localhost = true;
        snprintf(ret_address->host, sizeof ret_address->host, "127.0.0.1");
    }
    ret_address->scope = find_scope(ret_address);
    return true;
}
