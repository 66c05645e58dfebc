/* SPDX-License-Identifier: Apache-2.0
 * Which page of a browser a request comes from, by its headers: a page of another site may neither
 * read what this host has nor act on it. No I/O. */
#ifndef CADRE_HTTP_ORIGIN_H
#define CADRE_HTTP_ORIGIN_H

#include <stdbool.h>

/* Whether the value of a Host header is a name of loopback: localhost, 127.0.0.1 or another address
 * of 127/8, [::1], each with or without a port. Another name may have been resolved to loopback by
 * the page of another site (DNS rebinding). */
bool http_host_is_loopback(const char *host);

/* Whether a request with these headers, each NULL where it has none, was made by a page of this
 * server, or by no page at all. `secure`: over TLS. */
bool http_origin_is_own(
    const char *host, const char *origin, const char *sec_fetch_site, bool secure);

/* Whether they say that a page of this server made it: what acts needs that, because no page of
 * another site can say so. */
bool http_origin_may_act(
    const char *host, const char *origin, const char *sec_fetch_site, bool secure);

#endif
