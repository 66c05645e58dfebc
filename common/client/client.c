/* SPDX-License-Identifier: Apache-2.0
 * Opening, closing and driving a client: the part of cadre/client.h that is about no job. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/client/state.h"

#define TIMEOUT_US      (30 * CADRE_US_PER_S)
#define WAIT_TIMEOUT_US (60 * CADRE_US_PER_S)

/* The shortest run of the loop that handles all that is ready. */
#define GLANCE_US CADRE_US_PER_MS

static const char *choose_address(const cadre_client_options *options)
{
    const char *environment = getenv("CADRE_COORDINATOR");
    if (options->address != NULL && options->address[0] != '\0') {
        return options->address;
    }
    return environment != NULL && environment[0] != '\0' ? environment
                                                         : CADRE_CLIENT_ADDRESS_DEFAULT;
}

/* rpc_tls_open() copies what it is given. */
static char *choose_text(const char *option, const char *variable)
{
    const char *value = option != NULL ? option : getenv(variable);
    return (char *)(uintptr_t)value;
}

static cadre_status open_tls(
    struct cadre_client *client, const cadre_client_options *options, struct cadre_error *error)
{
    bool named = options->tls_dir != NULL || options->tls_cert != NULL ||
                 options->tls_key != NULL || options->tls_ca != NULL;
    if (strncmp(client->address, "unix:", 5) == 0 && !named) {
        return CADRE_OK; /* the environment's are for other coordinators, perhaps of other users */
    }
    struct rpc_tls_options tls = {.dir = choose_text(options->tls_dir, "CADRE_TLS_DIR"),
        .cert = choose_text(options->tls_cert, "CADRE_TLS_CERT"),
        .key = choose_text(options->tls_key, "CADRE_TLS_KEY"),
        .ca = choose_text(options->tls_ca, "CADRE_TLS_CA")};
    return rpc_tls_open(client->loop, &tls, TLS_ROLE_NONE, NULL, NULL, &client->tls, error);
}

static cadre_status open_client(
    struct cadre_client *client, const cadre_client_options *options, struct cadre_error *error)
{
    client->timeout_us = options->timeout_us != 0 ? options->timeout_us : TIMEOUT_US;
    client->wait_timeout_us =
        options->wait_timeout_us != 0 ? options->wait_timeout_us : WAIT_TIMEOUT_US;
    client->stale_age_us = options->stale_age_us;
    client->on_outage = options->on_outage;
    client->user = options->user;
    client->idle = true;
    client->poll_fd = -1;
    client->timer_fd = -1;
    client->address = strdup(choose_address(options));
    client->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (client->address == NULL || client->arena == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a client");
    }
    CADRE_TRY(rpc_loop_open(&client->loop, error));
    CADRE_TRY(open_tls(client, options, error));
    const struct rpc_channel_options channel_options = {.tls = client->tls};
    return rpc_endpoints_open(
        client->loop, client->address, &channel_options, &client->endpoints, error);
}

/* Whether a coordinator is there. Of several none may lead: what is asked next waits for that,
 * unless it is what each of them answers. */
static cadre_status ask_version(struct cadre_client *client)
{
    cadre_coordinator_version *version = NULL;
    client->connecting = true;
    cadre_status status = cadre_client_version(client, &version, NULL);
    client->connecting = false;
    cadre_result_release(version);
    if (status == CADRE_UNAVAILABLE && client->leaderless) {
        client->request_ids = true; /* as of every version that can be one of several */
        client->objects = true;     /* likewise */
        return CADRE_OK;
    }
    return status;
}

cadre_status cadre_client_connect(const cadre_client_options *options, cadre_client **ret_client)
{
    static const cadre_client_options defaults;
    struct cadre_error error = {0};
    *ret_client = NULL;
    struct cadre_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for a client");
        return cadre_error_publish(&error);
    }
    cadre_status status = open_client(client, options != NULL ? options : &defaults, &error);
    if (status != CADRE_OK) {
        cadre_client_release(client);
        return cadre_error_publish(&error);
    }
    status = ask_version(client);
    if (status != CADRE_OK) {
        cadre_client_release(client); /* keeps the message of the call */
        return status;
    }
    *ret_client = client;
    return CADRE_OK;
}

const char *cadre_client_address(const cadre_client *client)
{
    return rpc_endpoints_address(client->endpoints);
}

static bool is_waiting(const struct cadre_client *client)
{
    const struct operation *at = client->operations;
    while (at != NULL && at->restart_us == 0) {
        at = at->next;
    }
    return at != NULL;
}

/* An operation that waits between two calls has no call whose end would end it: restarted now, each
 * ends with CANCELLED because the client is closing. */
static void end_waiting(struct cadre_client *client)
{
    while (is_waiting(client)) {
        for (struct operation *at = client->operations; at != NULL; at = at->next) {
            at->restart_us = at->restart_us != 0 ? 1 : 0;
        }
        const bool once = true;
        (void)client_drive(client, &once, 0);
    }
}

void cadre_client_release(cadre_client *client)
{
    if (client == NULL) {
        return;
    }
    client->closing = true;
    client->driving = true; /* callbacks from in here must not block either */
    if (client->loop != NULL) {
        end_waiting(client);
        client->driving = true;
        rpc_endpoints_close(client->endpoints);
        rpc_tls_close(client->tls);
        rpc_loop_close(client->loop);
    }
    if (client->poll_fd >= 0) {
        close(client->poll_fd);
        close(client->timer_fd);
    }
    wire_buffer_free(&client->packed);
    wire_arena_free(client->arena);
    free(client->version);
    free(client->address);
    free(client);
}

cadre_status cadre_client_run(cadre_client *client, uint64_t timeout_us)
{
    if (client->driving) {
        struct cadre_error error;
        cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_client_run was called from inside a callback of the same client");
        return cadre_error_publish(&error);
    }
    uint64_t now_us = clock_monotonic_us();
    uint64_t wait_us = timeout_us < GLANCE_US ? GLANCE_US : timeout_us;
    uint64_t deadline_us =
        wait_us < CADRE_TIME_NEVER - now_us ? now_us + wait_us : CADRE_TIME_NEVER;
    return client_drive(client, &client->idle, deadline_us);
}

/* ---- for a program that polls ---- */

static bool poll_add(int poll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd >= 0 && epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* One descriptor for two: received messages, and the timer after which a lost coordinator is tried
 * again. */
static cadre_status open_poll(struct cadre_client *client, struct cadre_error *error)
{
    int loop_fd = -1;
    CADRE_TRY(rpc_loop_fd(client->loop, &loop_fd, error));
    int poll_fd = epoll_create1(EPOLL_CLOEXEC);
    int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (poll_fd < 0 || !poll_add(poll_fd, timer_fd) || !poll_add(poll_fd, loop_fd)) {
        cadre_status status = cadre_error_errno(error, errno, "client: no descriptor to poll");
        if (poll_fd >= 0) {
            close(poll_fd);
        }
        if (timer_fd >= 0) {
            close(timer_fd);
        }
        return status;
    }
    client->poll_fd = poll_fd;
    client->timer_fd = timer_fd;
    return CADRE_OK;
}

cadre_status cadre_client_fd(cadre_client *client, int *ret_fd)
{
    struct cadre_error error = {0};
    if (client->poll_fd < 0 && open_poll(client, &error) != CADRE_OK) {
        *ret_fd = -1;
        return cadre_error_publish(&error);
    }
    client_arm_timer(client);
    *ret_fd = client->poll_fd;
    return CADRE_OK;
}

void cadre_client_wake(cadre_client *client)
{
    atomic_store(&client->woken, true);
    rpc_loop_stop(client->loop);
}
