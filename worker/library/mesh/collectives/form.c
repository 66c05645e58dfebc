/* SPDX-License-Identifier: Apache-2.0
 * The connector's side of forming, and the steps of the whole. host.c opens it in form_post and
 * polls it in form_test; listener.c has the acceptor's side. */
#include "worker/library/mesh/collectives/form.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "worker/library/mesh/connect/address.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/connect/handshake.h"
#include "worker/library/mesh/connect/links.h"
#include "worker/library/mesh/connect/listener.h"
#include "worker/library/mesh/wire/wire_state.h"

#define RETRY_FIRST_US UINT64_C(1000)
#define RETRY_MAX_US   UINT64_C(200000)
#define LOOK_AGAIN_US  UINT64_C(1000000) /* unproven connections time out without an event */

enum caller_state {
    CALLER_PAUSED,
    CALLER_CONNECTING,
    CALLER_GREETED,
    CALLER_AUTHENTICATED,
    CALLER_DONE
};

/* The connection to one lower rank. */
struct caller {
    enum caller_state state;
    uint32_t rank;
    bool local; /* over its Unix socket */
    int fd;
    struct mesh_sockaddr address;
    uint64_t retry_us; /* when PAUSED */
    uint64_t pause_us;
    size_t got;
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t welcome[HANDSHAKE_MAC_BYTES];
    const char *refusal; /* of the last try, for the message about who is missing */
};

struct forming {
    int epoll_fd;
    int timer_fd;
    uint32_t caller_count;
    struct caller *callers;
    char refusal[LISTENER_REFUSAL_BYTES];
};

static cadre_status form_watch(struct forming *forming, int fd, struct cadre_error *error)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(forming->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return cadre_error_errno(error, errno, "watch a descriptor of a forming mesh");
    }
    return CADRE_OK;
}

/* Whether the tasks of this rank and of another one are to be connected that way. */
static bool form_connects(const struct host_mesh *host, uint32_t rank, bool local)
{
    enum topology_connection way = mesh_topology_connection(&host->topology, host->rank, rank);
    return way == (local ? TOPOLOGY_LINK : TOPOLOGY_WIRE);
}

static cadre_status add_caller(
    struct host_mesh *host, uint32_t rank, bool local, struct cadre_error *error)
{
    struct forming *forming = host->forming;
    struct caller *caller = &forming->callers[forming->caller_count++];
    const char *address = host->members[rank].address;
    *caller = (struct caller){.rank = rank, .local = local, .fd = -1, .pause_us = RETRY_FIRST_US};
    cadre_status status = mesh_address_parse(address, &caller->address, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(
            error, status, "the task of rank %" PRIu32, host_number(host, rank));
    }
    if (local) {
        caller->address = mesh_address_local(address);
    }
    return CADRE_OK;
}

cadre_status mesh_form_open(struct host_mesh *host, struct cadre_error *error)
{
    struct forming *forming = calloc(1, sizeof *forming);
    if (forming == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to form a mesh");
    }
    host->forming = forming;
    forming->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    forming->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    forming->callers = calloc((size_t)host->rank * 2 + 1, sizeof *forming->callers);
    if (forming->callers == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to form a mesh");
    }
    if (forming->epoll_fd < 0 || forming->timer_fd < 0) {
        return cadre_error_errno(error, errno, "open the descriptors of a forming mesh");
    }
    for (uint32_t rank = 0; rank < host->rank; rank++) {
        if (form_connects(host, rank, true)) {
            CADRE_TRY(add_caller(host, rank, true, error));
        }
        if (form_connects(host, rank, false)) {
            CADRE_TRY(add_caller(host, rank, false, error));
        }
    }
    CADRE_TRY(form_watch(forming, forming->timer_fd, error));
    CADRE_TRY(form_watch(forming, host->fault.event_fd, error));
    CADRE_TRY(form_watch(forming, mesh_listener_fd(host->listener), error));
    /* The first step is due at once: unproven connections of this generation may be waiting
     * already. */
    struct itimerspec at_once = {.it_value.tv_nsec = 1};
    timerfd_settime(forming->timer_fd, 0, &at_once, NULL);
    return CADRE_OK;
}

void mesh_form_close(struct forming *forming)
{
    if (forming == NULL) {
        return;
    }
    for (uint32_t i = 0; i < forming->caller_count; i++) {
        if (forming->callers[i].fd >= 0) {
            close(forming->callers[i].fd);
        }
    }
    if (forming->epoll_fd >= 0) {
        close(forming->epoll_fd);
    }
    if (forming->timer_fd >= 0) {
        close(forming->timer_fd);
    }
    free(forming->callers);
    free(forming);
}

/* A second connection to a host replaces the first; -1: none. */
static void connect_host(struct host_mesh *host, uint32_t other, int fd)
{
    struct wire_peer *peer = &host->wire->peers[other];
    if (peer->fd >= 0) {
        close(peer->fd);
    }
    peer->fd = fd;
}

void mesh_form_drop(struct host_mesh *host)
{
    for (uint32_t i = 0; host->wire != NULL && i < host->wire->host_count; i++) {
        connect_host(host, i, -1);
    }
    for (uint32_t i = 0; i < host->forming->caller_count; i++) {
        struct caller *caller = &host->forming->callers[i];
        if (caller->fd >= 0) {
            close(caller->fd);
            caller->fd = -1;
        }
    }
    for (uint32_t i = 0; i < host->links.count; i++) {
        mesh_link_connect(&host->links.items[i], -1);
    }
}

int mesh_form_watch_fd(const struct host_mesh *host)
{
    return host->forming->epoll_fd;
}

/* Whether this task needs no more from the task of `rank`. */
static bool is_there(const struct host_mesh *host, uint32_t rank)
{
    const struct link *link = mesh_links_find(&host->links, rank);
    if (link != NULL) {
        return link->given && link->got;
    }
    return !form_connects(host, rank, false) ||
           host->wire->peers[host->topology.task_hosts[rank]].fd >= 0;
}

uint32_t mesh_form_missing(const struct host_mesh *host)
{
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        if (!is_there(host, rank)) {
            return rank;
        }
    }
    return UINT32_MAX;
}

static void pause_caller(struct caller *caller, uint64_t now_us, const char *refusal)
{
    if (caller->fd >= 0) {
        close(caller->fd); /* also takes it out of the epoll set */
        caller->fd = -1;
    }
    caller->state = CALLER_PAUSED;
    caller->refusal = refusal;
    caller->retry_us = now_us + caller->pause_us;
    caller->pause_us = caller->pause_us * 2 < RETRY_MAX_US ? caller->pause_us * 2 : RETRY_MAX_US;
}

static void watch_caller(struct forming *forming, struct caller *caller, uint32_t events, int verb)
{
    struct epoll_event event = {.events = events};
    (void)epoll_ctl(forming->epoll_fd, verb, caller->fd, &event);
}

/* A refusal by the system, which no waiting changes. */
static cadre_status unix_socket_refused(
    struct host_mesh *host, const struct caller *caller, int errnum)
{
    return mesh_fault_raise(host, CADRE_PERMISSION_DENIED,
        "this system does not allow tasks of one host to connect over a Unix socket (to the task "
        "of rank %" PRIu32 ": %s); allow it, or give each task an address of its own",
        host_number(host, caller->rank), strerrordesc_np(errnum));
}

static cadre_status start_call(struct host_mesh *host, struct caller *caller, uint64_t now_us)
{
    caller->fd =
        socket(caller->address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (caller->fd < 0) {
        return mesh_fault_raise(host, cadre_status_from_errno(errno),
            "no socket for the connection to the task of rank %" PRIu32
            " (errno %d); raise the limit on open files (ulimit -n)",
            host_number(host, caller->rank), errno);
    }
    caller->got = 0;
    caller->state = CALLER_CONNECTING;
    const struct sockaddr *address = (const struct sockaddr *)&caller->address.storage;
    if (caller->local && fault_point("mesh.connect_local")) {
        return unix_socket_refused(host, caller, EACCES);
    }
    if (!caller->local) {
        mesh_listener_tune(caller->fd, &caller->address);
    }
    if (connect(caller->fd, address, caller->address.bytes) != 0 && errno != EINPROGRESS) {
        if (caller->local && (errno == EACCES || errno == EPERM)) {
            return unix_socket_refused(host, caller, errno);
        }
        pause_caller(caller, now_us, strerrordesc_np(errno));
        return CADRE_OK;
    }
    watch_caller(host->forming, caller, EPOLLOUT, EPOLL_CTL_ADD);
    return CADRE_OK;
}

/* A connection to a free ephemeral port of this host can by chance be connected to itself. */
static bool connected_to_itself(int fd)
{
    struct mesh_sockaddr own = {.bytes = sizeof own.storage};
    struct mesh_sockaddr peer = {.bytes = sizeof peer.storage};
    return getsockname(fd, (struct sockaddr *)&own.storage, &own.bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer.storage, &peer.bytes) == 0 &&
           own.bytes == peer.bytes && memcmp(&own.storage, &peer.storage, own.bytes) == 0;
}

static void form_greet(struct host_mesh *host, struct caller *caller, uint64_t now_us)
{
    int errnum = 0;
    socklen_t size = sizeof errnum;
    struct mesh_sockaddr peer = {.bytes = sizeof peer.storage};
    if (getsockopt(caller->fd, SOL_SOCKET, SO_ERROR, &errnum, &size) != 0 || errnum != 0) {
        pause_caller(caller, now_us, strerrordesc_np(errnum));
        return;
    }
    if (getpeername(caller->fd, (struct sockaddr *)&peer.storage, &peer.bytes) != 0) {
        return; /* not connected yet */
    }
    if (!caller->local && connected_to_itself(caller->fd)) {
        pause_caller(caller, now_us, "no process listens there");
        return;
    }
    struct handshake_hello hello = {
        .generation = host->generation,
        .nonce = host->nonce,
        .roster = host->roster,
        .from_rank = host->rank,
        .to_rank = caller->rank,
    };
    if (mesh_handshake_hello_make(&hello, caller->hello, NULL) != CADRE_OK ||
        send(caller->fd, caller->hello, sizeof caller->hello, MSG_NOSIGNAL | MSG_DONTWAIT) !=
            (ssize_t)sizeof caller->hello) {
        pause_caller(caller, now_us, "the hello could not be sent");
        return;
    }
    caller->state = CALLER_GREETED;
    watch_caller(host->forming, caller, EPOLLIN, EPOLL_CTL_MOD);
}

/* Reads towards `size` bytes; false when they are not all there, or the connection ended and is to
 * be tried again. */
static bool read_fully(struct caller *caller, uint8_t *bytes, size_t size, uint64_t now_us)
{
    ssize_t count = recv(caller->fd, bytes + caller->got, size - caller->got, MSG_DONTWAIT);
    if (count > 0) {
        caller->got += (size_t)count;
        return caller->got == size;
    }
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        pause_caller(caller, now_us, "it closed the connection before it was proved");
    }
    return false;
}

static cadre_status not_authenticated(struct host_mesh *host, uint32_t rank)
{
    return mesh_fault_raise(host, CADRE_UNAUTHENTICATED,
        "the process that listens at %s does not hold the generation's key, so it is not the task "
        "of rank %" PRIu32 "; give all tasks the same key",
        host->members[rank].address, host_number(host, rank));
}

static cadre_status form_authenticate(
    struct host_mesh *host, struct caller *caller, uint64_t now_us)
{
    if (!read_fully(caller, caller->reply, sizeof caller->reply, now_us)) {
        return CADRE_OK;
    }
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    if (!mesh_handshake_mac_valid(host->key, HANDSHAKE_ACCEPTOR, caller->hello, caller->reply,
            caller->reply + HANDSHAKE_CHALLENGE_BYTES)) {
        return not_authenticated(host, caller->rank);
    }
    mesh_handshake_mac(host->key, HANDSHAKE_CONNECTOR, caller->hello, caller->reply, mac);
    if (send(caller->fd, mac, sizeof mac, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof mac) {
        pause_caller(caller, now_us, "it closed the connection before it was proved");
        return CADRE_OK;
    }
    caller->state = CALLER_AUTHENTICATED;
    caller->got = 0;
    return CADRE_OK;
}

/* A second connection of a rank replaces the first, because its task closed that one. */
static void form_admit(void *user, uint32_t rank, bool local, int fd)
{
    struct host_mesh *host = user;
    if (local) {
        struct epoll_event event = {.events = EPOLLIN};
        mesh_link_connect(mesh_links_find(&host->links, rank), fd);
        (void)epoll_ctl(host->forming->epoll_fd, EPOLL_CTL_ADD, fd, &event);
        return;
    }
    connect_host(host, host->topology.task_hosts[rank], fd);
}

static bool form_expects(void *user, uint32_t rank, bool local)
{
    const struct host_mesh *host = user;
    return rank > host->rank && rank < host->task_count && form_connects(host, rank, local);
}

static cadre_status form_conclude(struct host_mesh *host, struct caller *caller, uint64_t now_us)
{
    if (!read_fully(caller, caller->welcome, sizeof caller->welcome, now_us)) {
        return CADRE_OK;
    }
    if (!mesh_handshake_mac_valid(
            host->key, HANDSHAKE_WELCOME, caller->hello, caller->reply, caller->welcome)) {
        return not_authenticated(host, caller->rank);
    }
    watch_caller(host->forming, caller, 0, EPOLL_CTL_DEL);
    form_admit(host, caller->rank, caller->local, caller->fd);
    caller->fd = -1;
    caller->state = CALLER_DONE;
    return CADRE_OK;
}

static cadre_status step_caller(struct host_mesh *host, struct caller *caller, uint64_t now_us)
{
    if (caller->state == CALLER_PAUSED && now_us >= caller->retry_us) {
        CADRE_TRY(start_call(host, caller, now_us));
    }
    if (caller->state == CALLER_CONNECTING) {
        form_greet(host, caller, now_us);
    }
    if (caller->state == CALLER_GREETED) {
        CADRE_TRY(form_authenticate(host, caller, now_us));
    }
    return caller->state == CALLER_AUTHENTICATED ? form_conclude(host, caller, now_us) : CADRE_OK;
}

static struct caller *find_caller(const struct host_mesh *host, uint32_t rank, bool local)
{
    for (uint32_t i = 0; i < host->forming->caller_count; i++) {
        struct caller *caller = &host->forming->callers[i];
        if (caller->rank == rank && caller->local == local) {
            return caller;
        }
    }
    return NULL;
}

/* Exchanges the handovers of one link as far as they go now. */
static cadre_status step_link(struct host_mesh *host, struct link *link, uint64_t now_us)
{
    struct cadre_error error;
    if (link->fd < 0 || (link->given && link->got)) {
        return CADRE_OK;
    }
    int fd = link->fd;
    bool from_lead = mesh_topology_is_lead(&host->topology, link->rank);
    cadre_status status = mesh_link_exchange(&host->links, link, from_lead, &error);
    if (status == CADRE_OK) {
        (void)epoll_ctl(host->forming->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    } else if (status == CADRE_UNAVAILABLE) {
        struct caller *caller = find_caller(host, link->rank, true);
        if (caller != NULL) {
            pause_caller(caller, now_us, "it closed the connection before its mesh had formed");
        }
    } else if (status != CADRE_PENDING) {
        return mesh_fault_raise(host, status, "%s", error.text);
    }
    return CADRE_OK;
}

static cadre_status give_up(struct host_mesh *host)
{
    uint32_t missing = 0;
    uint32_t first = mesh_form_missing(host);
    for (uint32_t rank = first; rank < host->task_count; rank++) {
        missing += is_there(host, rank) ? 0 : 1;
    }
    const char *refusal = host->forming->refusal;
    if (first < host->rank) {
        const struct caller *caller = find_caller(host, first, form_connects(host, first, true));
        refusal = caller->refusal != NULL ? caller->refusal : "it accepts and does not answer";
    } else if (refusal[0] == '\0') {
        refusal = "it did not connect";
    }
    return mesh_fault_raise(host, CADRE_DEADLINE_EXCEEDED,
        "%" PRIu32 " of %" PRIu32 " tasks did not come in time, the first is that of rank %" PRIu32
        " at %s: %s",
        missing, host->task_count, host_number(host, first), host->members[first].address, refusal);
}

/* The next time a step is due without an event. */
static void form_arm(struct host_mesh *host, uint64_t now_us)
{
    uint64_t due_us = now_us + LOOK_AGAIN_US;
    due_us = host->form_deadline_us < due_us ? host->form_deadline_us : due_us;
    for (uint32_t i = 0; i < host->forming->caller_count; i++) {
        const struct caller *caller = &host->forming->callers[i];
        if (caller->state == CALLER_PAUSED && caller->retry_us < due_us) {
            due_us = caller->retry_us;
        }
    }
    struct itimerspec at = {
        .it_value.tv_sec = (time_t)(due_us / CADRE_US_PER_S),
        .it_value.tv_nsec = (long)(due_us % CADRE_US_PER_S) * 1000 + 1,
    };
    timerfd_settime(host->forming->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* All connections are established. */
static cadre_status form_finish(struct host_mesh *host)
{
    struct cadre_error error;
    if (!mesh_fault_open_streams(host)) {
        return CADRE_ABORTED;
    }
    cadre_status status = mesh_watch_open(host, &error);
    return status == CADRE_OK ? CADRE_OK : mesh_fault_raise(host, status, "%s", error.text);
}

cadre_status mesh_form_step(struct host_mesh *host)
{
    struct cadre_error error;
    uint64_t now_us = clock_monotonic_us();
    struct listener_terms terms = {
        .generation = host->generation,
        .nonce = host->nonce,
        .roster = host->roster,
        .rank = host->rank,
        .key = host->key,
        .expects = form_expects,
        .admit = form_admit,
        .user = host,
    };
    cadre_status status =
        mesh_listener_serve(host->listener, &terms, now_us, host->forming->refusal, &error);
    if (status != CADRE_OK) {
        return mesh_fault_raise(host, status, "%s", error.text);
    }
    for (uint32_t i = 0; i < host->forming->caller_count; i++) {
        CADRE_TRY(step_caller(host, &host->forming->callers[i], now_us));
    }
    for (uint32_t i = 0; i < host->links.count; i++) {
        CADRE_TRY(step_link(host, &host->links.items[i], now_us));
    }
    if (mesh_form_missing(host) == UINT32_MAX) {
        return form_finish(host);
    }
    if (now_us >= host->form_deadline_us) {
        return give_up(host);
    }
    form_arm(host, now_us);
    return CADRE_PENDING;
}
