/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/origin.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

/* The length of the host without its port; 0: it has no form of a host. */
static size_t host_length(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    if (host[0] == '[') {
        end = end != NULL ? end + 1 : host;
    } else {
        end = host + strcspn(host, ":");
    }
    if (*end == ':' && end[1 + strspn(end + 1, "0123456789")] != '\0') {
        return 0;
    }
    return *end == ':' || *end == '\0' ? (size_t)(end - host) : 0;
}

bool http_host_is_loopback(const char *host)
{
    static const char name[] = "localhost";
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    size_t length = host_length(host);
    if (length == sizeof name - 1 && strncasecmp(host, name, length) == 0) {
        return true;
    }
    if (length == 5 && strncmp(host, "[::1]", length) == 0) {
        return true;
    }
    if (length == 0 || length >= sizeof text) {
        return false;
    }
    memcpy(text, host, length);
    text[length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

bool http_origin_is_own(
    const char *host, const char *origin, const char *sec_fetch_site, bool secure)
{
    if (sec_fetch_site != NULL && strcmp(sec_fetch_site, "same-origin") != 0 &&
        strcmp(sec_fetch_site, "none") != 0) {
        return false;
    }
    if (origin == NULL) {
        return true;
    }
    const char *scheme = secure ? "https://" : "http://";
    return host != NULL && strncmp(origin, scheme, strlen(scheme)) == 0 &&
           strcasecmp(origin + strlen(scheme), host) == 0;
}

bool http_origin_may_act(
    const char *host, const char *origin, const char *sec_fetch_site, bool secure)
{
    bool says_so =
        origin != NULL || (sec_fetch_site != NULL && strcmp(sec_fetch_site, "same-origin") == 0);
    return says_so && http_origin_is_own(host, origin, sec_fetch_site, secure);
}
