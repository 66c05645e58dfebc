/* SPDX-License-Identifier: Apache-2.0
 * Inside common/http only: a response to a connection of libmicrohttpd. */
#ifndef CADRE_HTTP_RESPONSE_QUEUE_H
#define CADRE_HTTP_RESPONSE_QUEUE_H

#include <microhttpd.h>

#include "common/http/response.h"

/* The response is still the caller's; NULL, or no memory: the connection is to be closed. */
enum MHD_Result http_response_queue(
    const struct http_response *response, struct MHD_Connection *connection);

#endif
