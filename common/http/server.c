/* SPDX-License-Identifier: Apache-2.0
 * The pages of a daemon over libmicrohttpd, which waits with an epoll of its own; libuv waits for
 * that one and for its timeouts. Both daemons' metrics.c open it. */
#include "common/http/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/exposition.h"
#include "common/http/listen.h"
#include "common/http/origin.h"
#include "common/http/pacing.h"
#include "common/http/request_state.h"
#include "common/http/visits.h"

#define REQUEST_BYTES ((size_t)16 * 1024)
#define IDLE_S        5U

/* With more connections than these libmicrohttpd is run this often, so that many requests that come
 * one by one do not wake the loop each. */
#define CALM_CONNECTIONS 64
#define BUSY_RUN_MS      40

#define RUNS_MAX 16 /* of libmicrohttpd in a row: one accepts 10 connections */

#define CUT_MAX    32U /* connections that are being closed to make room */
#define TLS_SUITES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct http_server {
    struct http_options options; /* its `tls` is NULL on loopback */
    struct uv_loop_s *loop;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned handles; /* that are not closed yet */
    struct visits visits;
    struct http_requests requests;
    struct pacing pacing;
    uint64_t looked_us; /* when slow connections were last looked for */
    bool busy;          /* the timer runs libmicrohttpd, and its epoll is not watched */
    bool changed;       /* connections came or went in this run */
};

/* ---- the answer ---- */

static struct http_response *list_pages(const struct http_server *server)
{
    struct exposition out = {0};
    exposition_text(&out, "%s\n\n", server->options.program);
    for (size_t i = 0; i < server->options.page_count; i++) {
        const struct http_page *page = &server->options.pages[i];
        if (page->summary != NULL) {
            exposition_text(&out, "%-12s %s\n", page->path, page->summary);
        }
    }
    return http_response_exposition(MHD_HTTP_OK, HTTP_TYPE_TEXT, &out);
}

static bool page_has(const struct http_page *page, const char *path, const char **ret_rest)
{
    size_t length = strlen(page->path);
    bool is_folder = length > 1 && page->path[length - 1] == '/';
    if (is_folder ? strncmp(path, page->path, length) != 0 : strcmp(path, page->path) != 0) {
        return false;
    }
    *ret_rest = path + length;
    return true;
}

static const struct http_page *find_page(
    const struct http_server *server, const char *path, const char **ret_rest)
{
    for (size_t i = 0; i < server->options.page_count; i++) {
        if (page_has(&server->options.pages[i], path, ret_rest)) {
            return &server->options.pages[i];
        }
    }
    return NULL;
}

/* The handshake requests a certificate; at the first request of a connection it is checked. */
static bool is_trusted(const struct http_server *server, struct http_request *request)
{
    struct visit *visit = request->visit;
    if (visit != NULL && visit->trust == VISIT_UNCHECKED) {
        bool good =
            http_certificate_check(request->connection, server->options.refused_uri, visit->uri);
        visit->trust = good ? VISIT_TRUSTED : VISIT_REFUSED;
    }
    return visit != NULL && visit->trust == VISIT_TRUSTED;
}

static bool is_own(
    const struct http_server *server, struct http_request *request, const struct http_page *page)
{
    bool secure = server->options.tls != NULL;
    const char *host = http_request_header(request, MHD_HTTP_HEADER_HOST);
    const char *origin = http_request_header(request, MHD_HTTP_HEADER_ORIGIN);
    const char *site = http_request_header(request, "Sec-Fetch-Site");
    if (request->acts) {
        return http_origin_may_act(host, origin, site, secure);
    }
    return !page->own_only || http_origin_is_own(host, origin, site, secure);
}

/* The status with which the server refuses a request itself, with the reason; 0: it does not. */
static unsigned check_request(const struct http_server *server, struct http_request *request,
    const struct http_page *page, const char *method, struct cadre_error *error)
{
    bool secure = server->options.tls != NULL;
    const char *host = http_request_header(request, MHD_HTTP_HEADER_HOST);
    if (secure && !is_trusted(server, request)) {
        cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "Show a certificate of the cluster's CA, of the role viewer.");
        return MHD_HTTP_FORBIDDEN;
    }
    if (!secure && host != NULL && !http_host_is_loopback(host)) {
        cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "This is not the host %.100s: ask at localhost or 127.0.0.1.", host);
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 &&
        !(request->acts && page != NULL && page->acts)) {
        cadre_error_set(error, CADRE_UNIMPLEMENTED, "Only GET and HEAD.");
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    if (request->refused.code != CADRE_OK) {
        *error = request->refused;
        return MHD_HTTP_BAD_REQUEST;
    }
    if (page != NULL && !is_own(server, request, page)) {
        cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "A page of another site asks: only this server's own page may.");
        return MHD_HTTP_FORBIDDEN;
    }
    if (request->body_bytes > HTTP_BODY_MAX) {
        cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "The body is longer than %d bytes.", HTTP_BODY_MAX);
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    return 0;
}

static struct http_response *refuse(
    const struct http_page *page, unsigned status, const struct cadre_error *error)
{
    return page != NULL && page->refuse != NULL ? page->refuse(status, error)
                                                : http_response_text(status, true, error->text);
}

static void serve(
    const struct http_server *server, struct http_request *request, const char *method)
{
    struct cadre_error error = {0};
    const char *path = request->target.path;
    const struct http_page *page = find_page(server, path, &request->rest);
    unsigned status = check_request(server, request, page, method, &error);
    request->asked = true;
    if (status != 0) {
        http_answer(request, refuse(page, status, &error));
    } else if (page != NULL) {
        page->serve(server->options.user, request);
    } else if (strcmp(path, "/pages") == 0 || strcmp(path, "/") == 0) {
        http_answer(request, list_pages(server));
    } else {
        http_answer(request, http_response_text(MHD_HTTP_NOT_FOUND, true,
                                 "There is no such page: /pages lists them."));
    }
}

/* The request line is there, and nothing more. */
static void *on_target(void *user, const char *target, struct MHD_Connection *connection)
{
    struct http_server *server = user;
    struct http_request *request = http_request_new(&server->requests, connection, target);
    if (request != NULL) {
        visit_touch(&server->visits, request->visit, clock_monotonic_us());
    }
    return request;
}

/* Called with the headers, then with the end of the request, and once more when a request that
 * waited is answered. An answer to the headers alone would close the connection. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
    const char *method, const char *version, const char *upload, size_t *upload_size,
    void **context)
{
    (void)connection;
    (void)path;
    (void)version;
    struct http_server *server = user;
    struct http_request *request = *context;
    if (request == NULL) {
        return MHD_NO; /* no memory: the connection is closed */
    }
    if (!request->has_headers) {
        request->has_headers = true;
        request->acts = strcmp(method, "POST") == 0;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        bool good = http_request_add_body(request, upload, *upload_size);
        *upload_size = 0;
        return good ? MHD_YES : MHD_NO;
    }
    if (!request->answered) {
        serve(server, request, method);
    }
    return http_request_go_on(request, &server->visits);
}

static void on_request_end(void *user, struct MHD_Connection *connection, void **context,
    enum MHD_RequestTerminationCode code)
{
    (void)connection;
    (void)code;
    struct http_server *server = user;
    struct http_request *request = *context;
    if (request != NULL) {
        visit_touch(&server->visits, request->visit, clock_monotonic_us());
        http_request_end(request);
        *context = NULL;
    }
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
    enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = user;
    server->changed = true;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info != NULL ? visits_add(&server->visits, info->connect_fd,
                                      clock_monotonic_us(), HTTP_CONNECTIONS_MAX)
                                : NULL;
        return;
    }
    visits_remove(&server->visits, *context);
}

/* ---- the loop ---- */

static void on_timer(uv_timer_t *timer);
static void on_ready(uv_poll_t *poll, int status, int events);

static void watch_epoll(struct http_server *server, bool busy)
{
    if (busy && !server->busy) {
        uv_poll_stop(&server->poll);
    } else if (!busy && server->busy) {
        uv_poll_start(&server->poll, UV_READABLE, on_ready);
    }
    server->busy = busy;
}

/* All that clients ask for. Connections beyond those that one run accepts, or that became free in
 * it, are offered only by the next. */
static void serve_clients(struct http_server *server)
{
    server->changed = true;
    for (unsigned i = 0; i < RUNS_MAX && server->changed; i++) {
        server->changed = false;
        (void)MHD_run(server->daemon);
    }
}

static void http_server_run(struct http_server *server)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t began_us = clock_thread_cpu_us();
    if (now_us - server->looked_us >= CADRE_US_PER_S) {
        server->looked_us = now_us;
        visits_cut(&server->visits, now_us, HTTP_REQUEST_MAX_US);
    }
    serve_clients(server);
    uint64_t used_us = clock_thread_cpu_us() - began_us;
    uint64_t held_us = pacing_charge(&server->pacing, now_us, used_us);
    watch_epoll(server, held_us > 0 || server->visits.count > CALM_CONNECTIONS);
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    bool waits = MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES;
    uint64_t longest_ms = server->busy ? BUSY_RUN_MS : CADRE_US_PER_S / CADRE_US_PER_MS;
    if ((server->busy || server->visits.count > 0) && (!waits || wait_ms > longest_ms)) {
        waits = true;
        wait_ms = longest_ms;
    }
    if (wait_ms < held_us / CADRE_US_PER_MS) {
        wait_ms = held_us / CADRE_US_PER_MS;
    }
    if (waits) {
        uv_timer_start(&server->timer, on_timer, wait_ms, 0);
    } else {
        uv_timer_stop(&server->timer);
    }
}

static void on_timer(uv_timer_t *timer)
{
    http_server_run(timer->data);
}

/* Not at once: a page may answer from wherever it is. A busy server's timer is running. */
static void on_answer(void *user)
{
    struct http_server *server = user;
    if (!server->busy) {
        uv_timer_start(&server->timer, on_timer, 0, 0);
    }
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    http_server_run(poll->data);
}

__attribute__((format(printf, 2, 0))) static void on_fault(
    void *user, const char *format, va_list arguments)
{
    (void)user;
    char text[256];
    if (log_enabled(LOG_LEVEL_DEBUG)) {
        vsnprintf(text, sizeof text, format, arguments);
        log_event(LOG_LEVEL_DEBUG, "http", text, LOG_END);
    }
}

/* ---- open and close ---- */

static cadre_status http_server_start(struct http_server *server, int fd, struct cadre_error *error)
{
    const struct tls_material *tls = server->options.tls;
    struct MHD_OptionItem tls_items[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, tls != NULL ? tls->cert_pem : NULL},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, tls != NULL ? tls->key_pem : NULL},
        {MHD_OPTION_HTTPS_MEM_TRUST, 0, tls != NULL ? tls->ca_pem : NULL},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_SUITES}, {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none = {MHD_OPTION_END, 0, NULL};
    unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
                     (tls != NULL ? MHD_USE_TLS : 0U);
    /* Off loopback one address does not get all connections. */
    unsigned by_address = tls != NULL ? HTTP_CONNECTIONS_MAX / 2 : 0;
    /* The logger comes first: later options may already log. */
    server->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, server,
        MHD_OPTION_EXTERNAL_LOGGER, on_fault, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX + CUT_MAX,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, by_address, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        REQUEST_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
        MHD_OPTION_NOTIFY_COMPLETED, on_request_end, server, MHD_OPTION_ARRAY,
        tls != NULL ? tls_items : &none, MHD_OPTION_END);
    if (server->daemon != NULL) {
        return CADRE_OK;
    }
    close(fd);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        tls != NULL ? "--http %s: the TLS certificate, key or CA cannot be used; see "
                      "--log-level debug"
                    : "--http %s: the HTTP server does not start; see --log-level debug",
        server->options.address);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;
    if (--server->handles == 0) {
        free(server);
    }
}

void http_server_close(struct http_server *server)
{
    if (server == NULL) {
        return;
    }
    uv_poll_stop(&server->poll);
    for (struct http_request *request = server->requests.first; request != NULL;
         request = request->next) {
        http_request_give_up(request); /* libmicrohttpd closes no suspended connection */
    }
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
    }
    server->daemon = NULL;
    uv_close((uv_handle_t *)&server->poll, on_handle_closed);
    uv_close((uv_handle_t *)&server->timer, on_handle_closed);
}

/* The socket is the server's from here on. */
static cadre_status open_on(struct uv_loop_s *loop, const struct http_options *options, int fd,
    struct http_server **ret_server, struct cadre_error *error)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        close(fd);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the HTTP server");
    }
    server->options = *options;
    server->loop = loop;
    server->requests = (struct http_requests){.on_answer = on_answer, .user = server};
    cadre_status status = http_server_start(server, fd, error);
    const union MHD_DaemonInfo *info =
        status == CADRE_OK ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (status == CADRE_OK &&
        (info == NULL || uv_poll_init(loop, &server->poll, info->epoll_fd) != 0)) {
        MHD_stop_daemon(server->daemon);
        status = cadre_error_set(error, CADRE_UNAVAILABLE,
            "--http %s: its epoll descriptor cannot be watched", options->address);
    }
    if (status != CADRE_OK) {
        free(server);
        return status;
    }
    uv_timer_init(loop, &server->timer);
    server->handles = 2;
    server->poll.data = server;
    server->timer.data = server;
    uv_poll_start(&server->poll, UV_READABLE, on_ready);
    *ret_server = server;
    return CADRE_OK;
}

cadre_status http_server_open(struct uv_loop_s *loop, const struct http_options *options,
    struct http_server **ret_server, int *ret_port, struct cadre_error *error)
{
    struct http_options used = *options;
    bool loopback = false;
    int fd = -1;
    int port = 0;
    CADRE_TRY(http_listen(options->address, options->tls != NULL, &fd, &port, &loopback, error));
    used.tls = loopback ? NULL : options->tls;
    CADRE_TRY(open_on(loop, &used, fd, ret_server, error));
    log_event(LOG_LEVEL_INFO, "http", "listening", LOG_STR("address", options->address),
        LOG_U64("port", (uint64_t)port));
    if (ret_port != NULL) {
        *ret_port = port;
    }
    return CADRE_OK;
}

uint32_t http_server_poll_ms(const struct http_server *server)
{
    return server != NULL ? pacing_poll_ms(server->visits.count) : HTTP_POLL_MS;
}

void http_server_reload_tls(struct http_server **server, const struct tls_material *tls)
{
    struct http_server *old = *server;
    if (old == NULL || old->options.tls == NULL) {
        return;
    }
    struct http_options options = old->options;
    struct cadre_error error = {0};
    options.tls = tls;
    int fd = MHD_quiesce_daemon(old->daemon);
    *server = NULL;
    cadre_status status =
        fd >= 0 ? open_on(old->loop, &options, fd, server, &error)
                : cadre_error_set(&error, CADRE_UNAVAILABLE,
                      "--http %s: the HTTP server does not give its socket back", options.address);
    if (status != CADRE_OK) {
        log_event(LOG_LEVEL_ERROR, "http", "the pages are not served any more",
            LOG_STR("reason", error.text));
    }
    http_server_close(old);
}
