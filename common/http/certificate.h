/* SPDX-License-Identifier: Apache-2.0
 * Inside common/http only: the certificate that a client showed in its handshake. */
#ifndef CADRE_HTTP_CERTIFICATE_H
#define CADRE_HTTP_CERTIFICATE_H

#include <stdbool.h>

#include <microhttpd.h>

#define HTTP_URI_BYTES 512

/* Whether it is one of the cluster's CA, whose URI does not begin with `refused` (NULL: any may);
 * ret_uri is its first URI, "" where it has none. */
bool http_certificate_check(
    struct MHD_Connection *connection, const char *refused, char ret_uri[HTTP_URI_BYTES]);

#endif
