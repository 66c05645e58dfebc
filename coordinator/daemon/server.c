/* SPDX-License-Identifier: Apache-2.0
 * The table of methods and the addresses of --listen; main.c opens it. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/wire/descriptors.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/base/authorization.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/server.h"
#include "coordinator/daemon/shared/shared_ledger.h"

#define REQUEST_BYTES ((size_t)64 * 1024)
#define CHUNK_MARGIN  4096

struct method_row {
    const char *path;
    const struct rpc_server_ops *ops;
    size_t request_bytes_max;
};

static const struct method_row method_rows[] = {
    {METHOD_AGENTS_JOIN, &join_ops, LIMIT_FRAME_BYTES},
    {METHOD_AGENTS_GET_BLOB, &get_blob_ops, REQUEST_BYTES},
    {METHOD_AGENTS_MISSING_BLOBS, &missing_blobs_ops, LIMIT_SPEC_BYTES},
    {METHOD_AGENTS_PUT_BLOB, &put_blob_ops, LIMIT_BLOB_CHUNK_BYTES + CHUNK_MARGIN},
    {METHOD_AGENTS_PUT_OUTPUT, &put_output_ops, LIMIT_BLOB_CHUNK_BYTES + CHUNK_MARGIN},
    {METHOD_AGENTS_SETTLE_FILE, &settle_file_ops, REQUEST_BYTES},
    {METHOD_JOBS_SUBMIT, &submit_ops, LIMIT_SPEC_BYTES + CHUNK_MARGIN},
    {METHOD_JOBS_GET, &get_job_ops, REQUEST_BYTES},
    {METHOD_JOBS_LIST, &list_jobs_ops, REQUEST_BYTES},
    {METHOD_JOBS_WATCH, &watch_ops, REQUEST_BYTES},
    {METHOD_JOBS_LOGS, &logs_ops, REQUEST_BYTES},
    {METHOD_JOBS_CANCEL, &cancel_ops, REQUEST_BYTES},
    {METHOD_JOBS_MISSING_BLOBS, &missing_blobs_ops, LIMIT_SPEC_BYTES},
    {METHOD_JOBS_PUT_BLOB, &put_blob_ops, LIMIT_BLOB_CHUNK_BYTES + CHUNK_MARGIN},
    {METHOD_JOBS_LIST_OUTPUTS, &list_outputs_ops, REQUEST_BYTES},
    {METHOD_JOBS_GET_OUTPUT, &get_output_ops, REQUEST_BYTES},
    {METHOD_JOBS_VERIFY, &verify_ops, REQUEST_BYTES},
    {METHOD_JOBS_METRICS, &metrics_ops, REQUEST_BYTES},
    {METHOD_JOBS_HISTORY, &history_ops, REQUEST_BYTES},
    {METHOD_JOBS_TRACE, &trace_ops, REQUEST_BYTES},
    {METHOD_JOBS_CHECKPOINT, &checkpoint_ops, REQUEST_BYTES},
    {METHOD_JOBS_DRAIN, &drain_ops, REQUEST_BYTES},
    {METHOD_JOBS_LIST_WORKERS, &list_workers_ops, REQUEST_BYTES},
    {METHOD_JOBS_LOGIN, &login_ops, REQUEST_BYTES},
    {METHOD_JOBS_VERSION, &version_ops, REQUEST_BYTES},
    {METHOD_COORDINATORS_LEADER, &leader_ops, REQUEST_BYTES},
    {METHOD_COORDINATORS_LIST, &list_coordinators_ops, REQUEST_BYTES},
};

#define METHODS (sizeof method_rows / sizeof method_rows[0])

const char *server_method(size_t i)
{
    return i < METHODS ? method_rows[i].path : NULL;
}

static enum method_shape shape_of(const char *path)
{
#define SHAPE(method, method_shape)                                                                \
    if (strcmp(path, method) == 0) {                                                               \
        return method_shape;                                                                       \
    }
    METHOD_TABLE(SHAPE)
#undef SHAPE
    return METHOD_UNARY;
}

static void fill_methods(struct daemon *daemon, struct rpc_method *methods)
{
    for (size_t i = 0; i < METHODS; i++) {
        enum method_shape shape = shape_of(method_rows[i].path);
        methods[i] = (struct rpc_method){.path = method_rows[i].path,
            .client_streams = shape == METHOD_CLIENT_STREAM || shape == METHOD_BOTH_STREAM,
            .server_streams = shape == METHOD_SERVER_STREAM || shape == METHOD_BOTH_STREAM,
            .request_bytes_max = method_rows[i].request_bytes_max,
            .ops = method_rows[i].ops,
            .user = daemon};
    }
    rpc_health_methods(daemon->health, methods + METHODS);
    rpc_reflection_methods(daemon->reflection, methods + METHODS + RPC_HEALTH_METHODS);
}

static cadre_status find_group(const char *name, gid_t *ret_gid, struct cadre_error *error)
{
    errno = 0;
    const struct group *group = getgrnam(name);
    if (group == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "--group %s: there is no such group on this host: create it or name another", name);
    }
    *ret_gid = group->gr_gid;
    return CADRE_OK;
}

/* The name in its certificate, else that of its host. */
static void name_self(struct daemon *daemon)
{
    char host[LIMIT_NAME_BYTES] = "localhost";
    gethostname(host, sizeof host - 1);
    snprintf(daemon->name, sizeof daemon->name, "%s",
        daemon->tls != NULL ? rpc_tls_material(daemon->tls)->identity.name : host);
}

/* What does not fit is left out. */
static void add_address(struct daemon *daemon, const char *address)
{
    size_t length = strlen(daemon->addresses);
    size_t comma = length > 0 ? 1 : 0;
    size_t more = strlen(address);
    if (length + comma + more < sizeof daemon->addresses) {
        memcpy(daemon->addresses + length, ",", comma);
        memcpy(daemon->addresses + length + comma, address, more + 1);
    }
}

static cadre_status listen_all(struct daemon *daemon, FILE *ready, struct cadre_error *error)
{
    struct rpc_socket_access access = {.group_may_connect = daemon->options.group != NULL};
    if (daemon->options.group != NULL) {
        CADRE_TRY(find_group(daemon->options.group, &access.group, error));
    }
    for (size_t i = 0; i < daemon->options.listen.count; i++) {
        const char *address = daemon->options.listen.items[i];
        int port = 0;
        CADRE_TRY(rpc_server_listen(daemon->server, address, &access, &port, error));
        size_t host = port != 0 ? (size_t)(strrchr(address, ':') - address) : strlen(address);
        char shown[512];
        if (port != 0) {
            snprintf(shown, sizeof shown, "%.*s:%d", (int)host, address, port);
        } else {
            snprintf(shown, sizeof shown, "%s", address);
        }
        log_event(LOG_LEVEL_INFO, "server", "listening", LOG_STR("address", shown));
        if (port != 0 && daemon->tls == NULL) {
            log_event(LOG_LEVEL_WARNING, "server",
                "every process of this host, tasks too, may do everything at this address; to "
                "change that, give --tls-dir or listen at a Unix socket only",
                LOG_STR("address", shown));
        }
        fprintf(ready, "%s\n", shown);
        add_address(daemon, shown);
    }
    return CADRE_OK;
}

static cadre_status may_call(
    struct rpc_call *call, const char *method, void *user, struct cadre_error *error)
{
    cadre_status status = authorize(rpc_call_identity(call), method, error);
    if (status == CADRE_OK) {
        return shared_ledger_admit(user, call, method, error);
    }
    log_event(LOG_LEVEL_WARNING, "server", "a call is denied", LOG_STR("peer", rpc_call_peer(call)),
        LOG_STR("reason", error->text));
    return status;
}

static void on_finish(struct rpc_call *call, const char *path, void *user)
{
    shared_ledger_mark(user, call, path);
}

static cadre_status open_server(struct daemon *daemon,
    void (*on_call_end)(void *user, const char *path, cadre_status status),
    struct cadre_error *error)
{
    daemon->health = rpc_health_open();
    if (daemon->health == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the health service");
    }
    CADRE_TRY(
        rpc_reflection_open(wire_descriptors, wire_descriptors_size, &daemon->reflection, error));
    struct rpc_method methods[METHODS + RPC_HEALTH_METHODS + RPC_REFLECTION_METHODS];
    fill_methods(daemon, methods);
    struct rpc_server_options options = {.methods = methods,
        .method_count = sizeof methods / sizeof methods[0],
        .send_queue_bytes_max = (size_t)4 * LIMIT_FRAME_BYTES,
        .tls = daemon->tls,
        .authorize = may_call,
        .authorize_user = daemon,
        .on_finish = on_finish,
        .on_finish_user = daemon,
        .on_call_end = on_call_end,
        .on_call_end_user = daemon};
    return rpc_server_open(daemon->loop, &options, &daemon->server, error);
}

cadre_status server_open(struct daemon *daemon,
    void (*on_call_end)(void *user, const char *path, cadre_status status),
    struct cadre_error *error)
{
    name_self(daemon);
    CADRE_TRY(open_server(daemon, on_call_end, error));
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    FILE *ready = open_memstream(&text, &size);
    if (ready == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start the server");
    }
    cadre_status status = listen_all(daemon, ready, error);
    fclose(ready);
    CADRE_TRY(status);
    rpc_server_start(daemon->server);
    CADRE_TRY(rpc_health_set(daemon->health, "", true, error));
    CADRE_TRY(rpc_health_set(daemon->health, METHOD_SERVICE_JOBS, false, error));
    CADRE_TRY(rpc_health_set(daemon->health, METHOD_SERVICE_AGENTS, false, error));
    CADRE_TRY(rpc_health_set(daemon->health, METHOD_SERVICE_COORDINATORS, true, error));
    if (daemon->options.ready_file == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(file_write_atomic(daemon->options.ready_file, text, size, 0644, error));
    daemon->ready_file_written = true;
    return CADRE_OK;
}

cadre_status server_note_serving(struct daemon *daemon, struct cadre_error *error)
{
    CADRE_TRY(rpc_health_set(daemon->health, METHOD_SERVICE_JOBS,
        !daemon->disk.low && !daemon->disk.held && !daemon->disk.away, error));
    return rpc_health_set(daemon->health, METHOD_SERVICE_AGENTS, true, error);
}
