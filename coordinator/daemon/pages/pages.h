/* SPDX-License-Identifier: Apache-2.0
 * The pages of --http for people: "/", "/assets/" and "/api/". */
#ifndef CADRE_COORDINATOR_PAGES_PAGES_H
#define CADRE_COORDINATOR_PAGES_PAGES_H

#include "common/http/request.h"

struct daemon;

/* "/": the file index.html of the assets. `user` of each: the daemon. */
void asset_serve_index(void *user, struct http_request *request);
/* "/assets/": a file of the assets. */
void asset_serve(void *user, struct http_request *request);

/* "/api/": a route of the table in api.c. */
void api_serve(void *user, struct http_request *request);
/* What the server refuses of it, as JSON. */
struct http_response *api_refuse(unsigned status, const struct cadre_error *error);
/* Releases the answers that are kept: the server is closed, a job was
 * forgotten, or something was changed. */
void api_forget(struct daemon *daemon);

#endif
