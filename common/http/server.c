/* SPDX-License-Identifier: Apache-2.0
 * The pages of a daemon over libmicrohttpd, which waits with an epoll of its own; libuv waits for
 * that one and for its timeouts. Both daemons' metrics.c open it. */
#include "common/http/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/listen.h"

#define REQUEST_BYTES ((size_t)8 * 1024)
#define IDLE_S        5U
#define TLS_SUITES    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* From accept to close. */
struct visit {
    struct visit *next;
    int fd;
    uint64_t since_us;
};

struct http_server {
    struct http_options options; /* its `tls` is NULL on loopback */
    struct uv_loop_s *loop;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned handles; /* that are not closed yet */
    struct visit *visits;
    bool closed_some; /* connections, in this run */
};

/* ---- the answer ---- */

static enum MHD_Result http_server_reply(
    struct MHD_Connection *connection, unsigned status, const char *type, struct exposition *body)
{
    const char *text = body->text != NULL ? body->text : "";
    struct MHD_Response *response = NULL;
    if (!body->failed) {
        response = MHD_create_response_from_buffer(
            body->size, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    }
    exposition_free(body);
    if (response == NULL) {
        return MHD_NO; /* no memory: the connection is closed */
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static unsigned show_root(const struct http_server *server, struct exposition *out)
{
    exposition_text(out, "%s\n\n", server->options.program);
    for (size_t i = 0; i < server->options.page_count; i++) {
        const struct http_page *page = &server->options.pages[i];
        exposition_text(out, "%-12s %s\n", page->path, page->summary);
    }
    return MHD_HTTP_OK;
}

static const struct http_page *find_page(const struct http_server *server, const char *path)
{
    for (size_t i = 0; i < server->options.page_count; i++) {
        if (strcmp(server->options.pages[i].path, path) == 0) {
            return &server->options.pages[i];
        }
    }
    return NULL;
}

/* Whether the URI of the client's certificate begins with `prefix`. */
static bool is_refused(gnutls_session_t session, const char *prefix)
{
    unsigned count = 0;
    gnutls_x509_crt_t cert = NULL;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
    bool refused = true;
    if (shown == NULL || count == 0 || gnutls_x509_crt_init(&cert) != 0) {
        return true;
    }
    if (gnutls_x509_crt_import(cert, shown, GNUTLS_X509_FMT_DER) == 0) {
        refused = false;
        int type = 0;
        for (unsigned i = 0; type >= 0; i++) {
            char uri[512] = {0};
            size_t size = sizeof uri - 1;
            type = gnutls_x509_crt_get_subject_alt_name(cert, i, uri, &size, NULL);
            refused = refused || type == GNUTLS_E_SHORT_MEMORY_BUFFER ||
                      (type == GNUTLS_SAN_URI && strncmp(uri, prefix, strlen(prefix)) == 0);
        }
    }
    gnutls_x509_crt_deinit(cert);
    return refused;
}

/* The handshake requests a certificate; here it is checked. */
static bool is_trusted(const struct http_server *server, struct MHD_Connection *connection)
{
    const char *prefix = server->options.refused_uri;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned faults = 0;
    return info != NULL &&
           gnutls_certificate_verify_peers(info->tls_session, &purpose, 1, &faults) == 0 &&
           faults == 0 && (prefix == NULL || !is_refused(info->tls_session, prefix));
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
    const char *method, const char *version, const char *upload, size_t *upload_size,
    void **request)
{
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)request;
    const struct http_server *server = user;
    struct exposition body = {0};
    unsigned status = MHD_HTTP_NOT_FOUND;
    const char *type = HTTP_TYPE_TEXT;
    const struct http_page *page = find_page(server, path);
    if (server->options.tls != NULL && !is_trusted(server, connection)) {
        status = MHD_HTTP_FORBIDDEN;
        exposition_text(&body, "Show a certificate of the cluster's CA, of the role viewer.\n");
    } else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        status = MHD_HTTP_METHOD_NOT_ALLOWED;
        exposition_text(&body, "Only GET and HEAD.\n");
    } else if (page != NULL) {
        type = page->type;
        status = page->show(server->options.user, &body);
    } else if (strcmp(path, "/") == 0) {
        status = show_root(server, &body);
    } else {
        exposition_text(&body, "There is no such page: / lists them.\n");
    }
    return http_server_reply(connection, status, type, &body);
}

/* ---- connections that last too long ---- */

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
    enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = user;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct visit *visit = calloc(1, sizeof *visit);
        *context = visit;
        if (visit != NULL && info != NULL) {
            *visit = (struct visit){
                .next = server->visits, .fd = info->connect_fd, .since_us = clock_monotonic_us()};
            server->visits = visit;
        }
        return;
    }
    server->closed_some = true;
    struct visit **at = &server->visits;
    while (*at != NULL && *at != *context) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        struct visit *gone = *at;
        *at = gone->next;
        free(gone);
    }
}

static void close_slow_connections(struct http_server *server)
{
    uint64_t now_us = clock_monotonic_us();
    for (const struct visit *visit = server->visits; visit != NULL; visit = visit->next) {
        if (now_us - visit->since_us > HTTP_REQUEST_MAX_US) {
            (void)shutdown(visit->fd, SHUT_RDWR);
        }
    }
}

/* ---- the loop ---- */

static void on_timer(uv_timer_t *timer);

static void http_server_run(struct http_server *server)
{
    do { /* a connection that became free is offered only by the next run */
        server->closed_some = false;
        (void)MHD_run(server->daemon);
    } while (server->closed_some);
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    bool waits = MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES;
    if (server->visits != NULL && (!waits || wait_ms > CADRE_US_PER_S / CADRE_US_PER_MS)) {
        waits = true;
        wait_ms = CADRE_US_PER_S / CADRE_US_PER_MS;
    }
    if (waits) {
        uv_timer_start(&server->timer, on_timer, wait_ms, 0);
    } else {
        uv_timer_stop(&server->timer);
    }
}

static void on_timer(uv_timer_t *timer)
{
    close_slow_connections(timer->data);
    http_server_run(timer->data);
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
    unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | (tls != NULL ? MHD_USE_TLS : 0U);
    /* The logger comes first: later options may already log. */
    server->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER,
            on_fault, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
            (unsigned)HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES,
            MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
            server, MHD_OPTION_ARRAY, tls != NULL ? tls_items : &none, MHD_OPTION_END);
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
