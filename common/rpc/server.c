/* SPDX-License-Identifier: Apache-2.0
 * The server: its methods, its addresses, the slots that gRPC fills with new calls, its end. */
#include "common/rpc/server.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/address.h"
#include "common/rpc/arguments.h"
#include "common/rpc/io_hooks.h"
#include "common/rpc/server_state.h"
#include "common/rpc/tls_state.h"
#include "common/tls/resumption.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <uv.h>

#define REQUEST_SLOTS          16
#define CALLS_MAX              16384
#define STREAMS_PER_CONNECTION 512
#define METADATA_BYTES_MAX     (16 * 1024)
#define SEND_QUEUE_BYTES_MAX   (4 * 1024 * 1024)
#define LAST_STATUS_US         (100 * CADRE_US_PER_MS)
#define ABORT_TEXT             "the server is shutting down"

/* A slot that gRPC fills with one new call. */
struct rpc_request {
    struct rpc_tag tag;
    struct rpc_server *server;
    grpc_call *grpc;
    grpc_call_details details;
    grpc_metadata_array metadata;
};

/* The end of a server: what is waited for, and the callback. */
struct rpc_stop {
    struct rpc_server *server;
    struct rpc_tag tag;
    uv_timer_t timer;
    bool grpc_done, timer_closed, finished;
    bool last_status; /* the grace is over */
    rpc_loop_fn *on_gone;
    void *user;
};

static size_t or_default(size_t value, size_t fallback)
{
    return value != 0 ? value : fallback;
}

/* ---- new calls ---- */

static void post_request(struct rpc_request *request)
{
    struct rpc_server *server = request->server;
    grpc_completion_queue *queue = rpc_loop_queue(server->loop);
    grpc_call_details_init(&request->details);
    grpc_metadata_array_init(&request->metadata);
    RPC_TAG_RELEASE(&request->tag);
    grpc_call_error refused = grpc_server_request_call(server->grpc, &request->grpc,
        &request->details, &request->metadata, queue, queue, &request->tag);
    CADRE_ASSERT(refused == GRPC_CALL_OK);
    server->requests_posted++;
}

static void finish_stop(struct rpc_server *server);

static void request_done(void *owner, bool ok)
{
    struct rpc_request *request = owner;
    struct rpc_server *server = request->server;
    server->requests_posted--;
    if (!ok) { /* the server is shutting down */
        grpc_call_details_destroy(&request->details);
        grpc_metadata_array_destroy(&request->metadata);
        finish_stop(server);
        return;
    }
    struct rpc_incoming incoming = {
        .grpc = request->grpc,
        .path = request->details.method,
        .metadata = request->metadata,
    };
    grpc_slice_unref(request->details.host);
    /* The slot is posted again first: with none posted, gRPC would keep the next call to itself. */
    if (server->stop == NULL) {
        post_request(request);
    }
    rpc_server_call_open(server, &incoming);
    finish_stop(server);
}

/* ---- opening ---- */

static cadre_status check_methods(
    const struct rpc_server_options *options, struct cadre_error *error)
{
    for (size_t i = 0; i < options->method_count; i++) {
        const char *path = options->methods[i].path;
        CADRE_ASSERT(options->methods[i].ops != NULL);
        if (path[0] != '/' || strchr(path + 1, '/') == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "method \"%s\": expected \"/package.Service/Method\"", path);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(path, options->methods[j].path) == 0) {
                return cadre_error_set(
                    error, CADRE_INVALID_ARGUMENT, "method \"%s\" is in the table twice", path);
            }
        }
    }
    return CADRE_OK;
}

static struct cadre_error resumption_error;
static cadre_status resumption_status;

static void disable_resumption_once(void)
{
    resumption_status = tls_resumption_disable(NULL, &resumption_error);
}

/* Of all servers of the process, so that none of them reads what another one is changing. */
static cadre_status disable_resumption(struct cadre_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, disable_resumption_once);
    return resumption_status == CADRE_OK
               ? CADRE_OK
               : cadre_error_set(error, resumption_status, "%s", resumption_error.text);
}

cadre_status rpc_server_open(struct rpc_loop *loop, const struct rpc_server_options *options,
    struct rpc_server **ret_server, struct cadre_error *error)
{
    *ret_server = NULL;
    CADRE_TRY(check_methods(options, error));
    if (options->tls != NULL) {
        CADRE_TRY(disable_resumption(error));
    }
    struct rpc_server *server = gpr_zalloc(sizeof *server);
    server->loop = loop;
    server->method_count = options->method_count;
    server->methods = gpr_malloc(options->method_count * sizeof *server->methods + 1);
    server->calls_max = or_default(options->calls_max, CALLS_MAX);
    server->on_finish = options->on_finish;
    server->on_finish_user = options->on_finish_user;
    server->on_call_end = options->on_call_end;
    server->on_call_end_user = options->on_call_end_user;
    server->send_queue_bytes_max = or_default(options->send_queue_bytes_max, SEND_QUEUE_BYTES_MAX);
    server->authorize = options->authorize;
    server->authorize_user = options->authorize_user;
    server->tls = options->tls;
    rpc_tls_ref(server->tls);
    if (server->tls != NULL) {
        server->handshake_log = rpc_handshake_log_open(loop, server->tls);
    }
    size_t message_bytes_max = 0;
    for (size_t i = 0; i < options->method_count; i++) {
        const struct rpc_method *method = &options->methods[i];
        server->methods[i] = *method;
        if (method->request_bytes_max > message_bytes_max) {
            message_bytes_max = method->request_bytes_max;
        }
    }
    rpc_io_hooks_limit(message_bytes_max);
    rpc_accept_reserve_fd();
    struct rpc_arguments arguments;
    rpc_arguments_server(&arguments, &options->keepalive, message_bytes_max,
        or_default(options->metadata_bytes_max, METADATA_BYTES_MAX),
        or_default(options->streams_per_connection_max, STREAMS_PER_CONNECTION));
    server->grpc = grpc_server_create(&arguments.args, NULL);
    grpc_server_register_completion_queue(server->grpc, rpc_loop_queue(loop), NULL);
    rpc_loop_count(loop, 1, 1);
    *ret_server = server;
    return CADRE_OK;
}

/* gRPC writes the reason of a failed bind to its log only; a second bind here finds it. */
static cadre_status explain_bind(
    const struct rpc_address *address, const char *text, struct cadre_error *error)
{
    const struct sockaddr *to = (const struct sockaddr *)&address->socket_address;
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = fd < 0 ? errno : 0;
    int on = 1;
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, to, address->socket_address_bytes) != 0) {
            failed = errno;
        } else if (address->is_unix) {
            unlink(address->path);
        }
        close(fd);
    }
    if (failed == EADDRINUSE) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "address %s: port %d is in use; stop the other server or choose another port", text,
            address->port);
    }
    if (failed != 0) {
        return cadre_error_errno(error, failed, "address %s: cannot listen there", text);
    }
    return cadre_error_set(
        error, CADRE_UNAVAILABLE, "address %s: it was taken at that moment; try again", text);
}

/* A client that may open a Unix socket needs no certificate. */
static grpc_server_credentials *credentials_of(
    struct rpc_server *server, const struct rpc_address *address)
{
    if (address->is_unix || server->tls == NULL) {
        return grpc_insecure_server_credentials_create();
    }
    struct rpc_tls_port *port = gpr_zalloc(sizeof *port);
    *port = (struct rpc_tls_port){.next = server->tls_ports, .tls = server->tls};
    server->tls_ports = port;
    return rpc_tls_server_credentials(port);
}

cadre_status rpc_server_listen(struct rpc_server *server, const char *address_text,
    const struct rpc_socket_access *access, int *ret_port, struct cadre_error *error)
{
    CADRE_ASSERT(!server->started && server->stop == NULL);
    struct rpc_address address;
    struct rpc_socket_file socket_file;
    CADRE_TRY(
        rpc_address_parse(address_text, RPC_ADDRESS_LISTEN, server->tls != NULL, &address, error));
    if (address.is_unix) {
        CADRE_TRY(rpc_socket_file_begin(&socket_file, &address, error));
    }
    grpc_server_credentials *credentials = credentials_of(server, &address);
    int port = grpc_server_add_http2_port(server->grpc, address.host_port, credentials);
    grpc_server_credentials_release(credentials);
    cadre_status status = CADRE_OK;
    if (port == 0) {
        status = explain_bind(&address, address_text, error);
    }
    if (address.is_unix) {
        cadre_status access_status = rpc_socket_file_end(&socket_file, port != 0, access, error);
        status = status == CADRE_OK ? access_status : status;
        if (port != 0) {
            struct rpc_socket_file *kept = gpr_malloc(sizeof *kept);
            *kept = socket_file;
            kept->next = server->socket_files;
            server->socket_files = kept;
        }
    }
    if (!address.is_unix) {
        rpc_handshake_log_add_port(server->handshake_log, port);
    }
    if (ret_port != NULL) {
        *ret_port = address.is_unix ? 0 : port;
    }
    return status;
}

void rpc_server_start(struct rpc_server *server)
{
    CADRE_ASSERT(!server->started && server->stop == NULL);
    server->started = true;
    grpc_server_start(server->grpc);
    server->requests = gpr_zalloc(REQUEST_SLOTS * sizeof *server->requests);
    for (size_t i = 0; i < REQUEST_SLOTS; i++) {
        struct rpc_request *request = &server->requests[i];
        request->server = server;
        request->tag = (struct rpc_tag){.complete = request_done, .owner = request};
        post_request(request);
    }
}

/* ---- the end ---- */

/* First the calls are ended with their status; a call that remains a moment after that (a client
 * that does not read) is cut with its connection. Aborting at once would close the connection
 * before the status is sent. */
static void grace_over(uv_timer_t *timer)
{
    struct rpc_stop *stop = timer->data;
    struct rpc_server *server = stop->server;
    if (stop->last_status) {
        grpc_server_cancel_all_calls(server->grpc);
        return;
    }
    stop->last_status = true;
    for (struct rpc_server_call *call = server->calls; call != NULL;
         call = rpc_server_call_next(call)) {
        struct rpc_call *base = rpc_server_call_base(call);
        rpc_call_drop_queue(base);
        rpc_call_finish(base, CADRE_UNAVAILABLE, "the server is shutting down");
    }
    uv_timer_start(timer, grace_over, LAST_STATUS_US / CADRE_US_PER_MS, 0);
}

static void remove_socket_files(struct rpc_server *server)
{
    while (server->socket_files != NULL) {
        struct rpc_socket_file *socket_file = server->socket_files;
        server->socket_files = socket_file->next;
        rpc_socket_file_remove(socket_file);
        gpr_free(socket_file);
    }
}

static void timer_closed(uv_handle_t *handle)
{
    struct rpc_stop *stop = handle->data;
    struct rpc_server *server = stop->server;
    struct rpc_loop *loop = server->loop;
    rpc_loop_fn *on_gone = stop->on_gone;
    void *user = stop->user;
    grpc_server_destroy(server->grpc);
    remove_socket_files(server);
    while (server->tls_ports != NULL) {
        struct rpc_tls_port *port = server->tls_ports;
        server->tls_ports = port->next;
        gpr_free(port);
    }
    rpc_handshake_log_close(server->handshake_log);
    rpc_tls_unref(server->tls);
    gpr_free(server->requests);
    gpr_free(server->methods);
    gpr_free(stop);
    gpr_free(server);
    if (on_gone != NULL) {
        on_gone(user);
    }
    rpc_loop_count(loop, 0, -1);
}

/* Ends the server once nothing of it is outstanding. When the last call has ended, a connection
 * that remains is that of an idle client which does not read its socket: the rest of the grace
 * is not waited for. */
static void finish_stop(struct rpc_server *server)
{
    struct rpc_stop *stop = server->stop;
    if (stop == NULL || stop->finished || server->call_count > 0) {
        return;
    }
    if (!stop->grpc_done && !stop->last_status) {
        stop->last_status = true;
        uv_timer_start(&stop->timer, grace_over, LAST_STATUS_US / CADRE_US_PER_MS, 0);
    }
    if (!stop->grpc_done || server->requests_posted > 0) {
        return;
    }
    stop->finished = true;
    uv_close((uv_handle_t *)&stop->timer, timer_closed);
}

static void shutdown_done(void *owner, bool ok)
{
    struct rpc_server *server = owner;
    (void)ok;
    server->stop->grpc_done = true;
    finish_stop(server);
}

void rpc_server_call_freed(struct rpc_server *server)
{
    finish_stop(server);
}

void rpc_server_shutdown(
    struct rpc_server *server, uint64_t grace_us, rpc_loop_fn *on_gone, void *user)
{
    CADRE_ASSERT(server->stop == NULL);
    struct rpc_stop *stop = gpr_zalloc(sizeof *stop);
    server->stop = stop;
    stop->server = server;
    stop->on_gone = on_gone;
    stop->user = user;
    stop->tag = (struct rpc_tag){.complete = shutdown_done, .owner = server};
    int failed = uv_timer_init(rpc_loop_uv(server->loop), &stop->timer);
    CADRE_ASSERT(failed == 0);
    stop->timer.data = stop;
    uint64_t grace_ms = (grace_us + CADRE_US_PER_MS - 1) / CADRE_US_PER_MS;
    uv_update_time(rpc_loop_uv(server->loop));
    uv_timer_start(&stop->timer, grace_over, grace_ms, 0);

    RPC_TAG_RELEASE(&stop->tag);
    grpc_server_shutdown_and_notify(server->grpc, rpc_loop_queue(server->loop), &stop->tag);
    struct rpc_server_call *next = NULL;
    for (struct rpc_server_call *call = server->calls; call != NULL; call = next) {
        next = rpc_server_call_next(call);
        rpc_server_call_notify_shutdown(call);
    }
    finish_stop(server);
    rpc_loop_count(server->loop, -1, 0);
}

void rpc_server_close(struct rpc_server *server)
{
    if (server != NULL) {
        rpc_server_shutdown(server, 0, NULL, NULL);
    }
}

size_t rpc_server_call_count(const struct rpc_server *server)
{
    return server->call_count;
}
