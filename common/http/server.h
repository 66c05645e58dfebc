/* SPDX-License-Identifier: Apache-2.0
 * A small HTTP server on a libuv loop, for people and monitors that look at a daemon: a few
 * pages, no thread of its own. The only home of libmicrohttpd.
 *
 * Limits: 16 KiB of request, HTTP_BODY_MAX of its body, HTTP_REQUEST_MAX_US for a request from its
 * accept, or the answer before, to the last byte of its answer, 5 s of silence between two
 * requests. With more than HTTP_CONNECTIONS_MAX connections the one that waits longest is closed,
 * so that none of them keeps a monitor out. A client that does not read is not waited for.
 *
 * CPU: all requests together take less than 1% of a core from the loop's thread, beyond a burst;
 * then they wait, 1 s at most, whatever clients ask for and however many they are.
 *
 * Browsers: a request that names another host than this one is refused on loopback (421), and one
 * of another site's page where a page says so (403); a POST that does not say that it is of a page
 * of this server is refused everywhere. */
#ifndef CADRE_HTTP_SERVER_H
#define CADRE_HTTP_SERVER_H

#include "common/base/error.h"
#include "common/http/request.h"
#include "common/tls/material.h"

#define HTTP_CONNECTIONS_MAX 512
#define HTTP_BODY_MAX        4096
#define HTTP_REQUEST_MAX_US  ((uint64_t)10 * 1000 * 1000)
#define HTTP_POLL_MS         1000 /* between two polls of a browser, with few connections */

struct uv_loop_s;
struct http_server;

struct http_page {
    /* "/metrics"; one that ends with "/" stands for all below it, too, except "/" itself. */
    const char *path;
    const char *summary; /* its description on the list of pages; NULL: it is not listed */
    /* Answers the request, at once or later. On the loop's thread. */
    void (*serve)(void *user, struct http_request *request);
    /* The answer where the server refuses a request to this page; NULL: a line of text. */
    struct http_response *(*refuse)(unsigned status, const struct cadre_error *error);
    bool own_only; /* no page of another site may ask for it */
    bool acts;     /* it takes POST, too, from this server's own pages; else GET and HEAD only */
};

struct http_options {
    const char *address; /* 127.0.0.1:PORT, [::1]:PORT, localhost:PORT; others only with TLS */
    const char *program; /* heads the list of pages: "/pages", and "/" where no page is "/" */
    const struct http_page *pages; /* outlive the server */
    size_t page_count;
    void *user;
    /* NULL: none; read during the call. Off loopback every connection is TLS, and each client has
     * to show a certificate of its CA; loopback is plain HTTP for probes and scrapers of this host.
     */
    const struct tls_material *tls;
    const char *refused_uri; /* with TLS: whose certificate's URI begins so is refused; or NULL */
};

/* Serves when it returns OK, and logs the address; *ret_port (may be NULL) is the port, also when
 * it was chosen (0). INVALID_ARGUMENT: no address, one off this host without TLS, or TLS files that
 * are none; ALREADY_EXISTS: the port is taken. */
cadre_status http_server_open(struct uv_loop_s *loop, const struct http_options *options,
    struct http_server **ret_server, int *ret_port, struct cadre_error *error);

/* How long a browser that polls should wait between two polls, with as many connections as there
 * are now; NULL: as with few. */
uint32_t http_server_poll_ms(const struct http_server *server);

/* Other files of TLS from here on, at the same address; never from a page. On loopback nothing
 * changes, else open answers are cut off. With files that cannot be used no page is served any
 * more: that is logged, and *server is NULL, as it may be before. */
void http_server_reload_tls(struct http_server **server, const struct tls_material *tls);

/* Closes it; the loop must turn once more to close its handles. NULL is allowed. */
void http_server_close(struct http_server *server);

#endif
