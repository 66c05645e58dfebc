/* SPDX-License-Identifier: Apache-2.0
 * Addresses of mesh listeners, as text and as socket addresses. */
#include "worker/library/mesh/connect/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

cadre_status mesh_address_from_host(
    const char *host, struct mesh_sockaddr *ret_address, struct cadre_error *error)
{
    *ret_address = (struct mesh_sockaddr){.bytes = 0};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        memcpy(&ret_address->storage, &v4, sizeof v4);
        ret_address->bytes = sizeof v4;
        return CADRE_OK;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        memcpy(&ret_address->storage, &v6, sizeof v6);
        ret_address->bytes = sizeof v6;
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "\"%.64s\" is not an IPv4 or IPv6 address; give a numeric one such as 127.0.0.1", host);
}

/* Decimal digits up to `end`, 1..65535; 0 for anything else. */
static unsigned parse_port(const char *text, const char *end)
{
    unsigned port = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text + digits != end) {
        return 0;
    }
    for (size_t i = 0; i < digits; i++) {
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* Where the port ends: at a good token, or with the text. NULL for anything else. */
static const char *find_port_end(const char *text)
{
    const char *slash = strchr(text, '/');
    if (slash == NULL) {
        return text + strlen(text);
    }
    size_t digits = strspn(slash + 1, "0123456789abcdef");
    bool good = digits == (size_t)2 * MESH_TOKEN_BYTES && slash[1 + digits] == '\0';
    return good ? slash : NULL;
}

cadre_status mesh_address_parse(
    const char *text, struct mesh_sockaddr *ret_address, struct cadre_error *error)
{
    char host[MESH_ADDRESS_BYTES];
    const char *colon = strrchr(text, ':');
    const char *end = colon != NULL ? find_port_end(colon) : NULL;
    unsigned port = end != NULL ? parse_port(colon + 1, end) : 0;
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    if (port == 0 || length == 0 || strlen(text) >= sizeof host) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "mesh address \"%.64s\" is not of the form HOST:PORT/TOKEN, such as "
            "127.0.0.1:40123/5e1c07a9d2f4",
            text);
    }
    if (text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    CADRE_TRY(mesh_address_from_host(host, ret_address, error));
    in_port_t wire = htons((uint16_t)port);
    if (ret_address->storage.ss_family == AF_INET) {
        ((struct sockaddr_in *)&ret_address->storage)->sin_port = wire;
    } else {
        ((struct sockaddr_in6 *)&ret_address->storage)->sin6_port = wire;
    }
    return CADRE_OK;
}

struct mesh_sockaddr mesh_address_local(const char *text)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct mesh_sockaddr address = {.bytes = 0};
    /* The first byte stays zero: an abstract name. */
    int length = snprintf(local.sun_path + 1, sizeof local.sun_path - 1, "cadre-mesh %s", text);
    address.bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    memcpy(&address.storage, &local, address.bytes);
    return address;
}

void mesh_address_format(const struct mesh_sockaddr *address, const uint8_t token[MESH_TOKEN_BYTES],
    char ret_text[MESH_ADDRESS_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    int length = 0;
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->storage;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        length =
            snprintf(ret_text, MESH_ADDRESS_BYTES, "%s:%u", host, (unsigned)ntohs(v4->sin_port));
    } else {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        length =
            snprintf(ret_text, MESH_ADDRESS_BYTES, "[%s]:%u", host, (unsigned)ntohs(v6->sin6_port));
    }
    if (token != NULL) {
        snprintf(ret_text + length, MESH_ADDRESS_BYTES - (size_t)length,
            "/%02x%02x%02x%02x%02x%02x", token[0], token[1], token[2], token[3], token[4],
            token[5]);
    }
}

bool mesh_address_is_loopback(const struct mesh_sockaddr *address)
{
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->storage;
        return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}
