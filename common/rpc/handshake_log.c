/* SPDX-License-Identifier: Apache-2.0
 * Finds the peer of a refused handshake: at a failure it lists the connections of the server's
 * ports, and compares with the list at the next one. Called by tune.c with gRPC's log, and by
 * server.c. */

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/tls_state.h"

#define PORTS_MAX         16
#define PEERS_MAX         16384
#define PENDING_MAX       16
#define LOGGED_MAX        64
#define REASON_BYTES      160
#define RELOG_INTERVAL_US (60 * CADRE_US_PER_S)
#define SCANS_PER_S_MAX   20
#define CANDIDATES_MAX    3

static const char prefix[] = "Handshake failed with fatal error ";

/* As short as can be, for thousands of them are collected and compared; an address of IPv4 is
 * mapped into IPv6. */
struct peer {
    unsigned char address[16];
    in_port_t port; /* in network order */
};
_Static_assert(sizeof(struct peer) == 18, "peers are compared byte by byte: no padding");

#define PEER_TEXT_BYTES (INET6_ADDRSTRLEN + 10) /* "[::1]:4711" */

struct peers {
    struct peer *list;
    size_t count;
};

/* A handshake that failed, and the peers connected at that moment. */
struct failure {
    char reason[REASON_BYTES];
    struct peers before;
};

struct rpc_handshake_log {
    uv_async_t async;
    struct rpc_tls *tls;
    int ports[PORTS_MAX];
    size_t port_count;
    struct failure failures[PENDING_MAX];
    size_t failure_count;
    uint64_t scans_since_us;
    unsigned scans;
    struct {
        char host[INET6_ADDRSTRLEN];
        char why[REASON_BYTES];
        uint64_t when_us;
    } logged[LOGGED_MAX];
    size_t logged_next;
};

/* Guards `watched` and what it points to: gRPC may log on any thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rpc_handshake_log *watched;

/* ---- the connected peers ---- */

static void note_peer(const struct sockaddr_storage *address, struct peer *ret_peer)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    *ret_peer = (struct peer){.port = 0};
    if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        memcpy(ret_peer->address, &in6.sin6_addr, sizeof ret_peer->address);
        ret_peer->port = in6.sin6_port;
    } else if (address->ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        memcpy(ret_peer->address, mapped, sizeof mapped);
        memcpy(ret_peer->address + sizeof mapped, &in.sin_addr, sizeof in.sin_addr);
        ret_peer->port = in.sin_port;
    }
}

static void write_peer(const struct peer *peer, char ret_text[PEER_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    struct in6_addr address;
    memcpy(&address, peer->address, sizeof address);
    bool plain = IN6_IS_ADDR_V4MAPPED(&address);
    inet_ntop(plain ? AF_INET : AF_INET6, peer->address + (plain ? 12 : 0), host, sizeof host);
    snprintf(ret_text, PEER_TEXT_BYTES, plain ? "%s:%d" : "[%s]:%d", host, ntohs(peer->port));
}

/* Whether `fd` is a connection to one of the ports; fills its peer. */
static bool is_connection(
    const struct rpc_handshake_log *handshake_log, int fd, struct peer *ret_peer)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    note_peer(&address, ret_peer);
    int port = ntohs(ret_peer->port);
    bool ours = false;
    for (size_t i = 0; i < handshake_log->port_count; i++) {
        ours = ours || handshake_log->ports[i] == port;
    }
    size = sizeof address;
    if (port == 0 || !ours || getpeername(fd, (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    note_peer(&address, ret_peer);
    return true;
}

static int handshake_log_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct peer));
}

static struct peers scan_sockets(const struct rpc_handshake_log *handshake_log)
{
    struct peers peers = {NULL, 0};
    size_t capacity = 0;
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL && peers.count < PEERS_MAX) {
        struct peer peer;
        if (entry->d_name[0] == '.' ||
            !is_connection(handshake_log, (int)strtol(entry->d_name, NULL, 10), &peer)) {
            continue;
        }
        if (peers.count == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 64;
            struct peer *grown = realloc(peers.list, capacity * sizeof *grown);
            if (grown == NULL) {
                break;
            }
            peers.list = grown;
        }
        peers.list[peers.count++] = peer;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    if (peers.count > 0) {
        qsort(peers.list, peers.count, sizeof *peers.list, handshake_log_compare);
    }
    return peers;
}

/* ---- reports ---- */

/* Our message for OpenSSL's reason. */
static const char *handshake_log_explain(const char *reason)
{
    static const struct {
        const char *word, *text;
    } rows[] = {
        {"peer did not return", "it showed no certificate"},
        {"certificate verify failed",
            "its certificate is not of the CA in the --tls-ca file, or has expired or is not valid "
            "yet"},
        {"wrong version number", "it uses plain text, not TLS"},
        {"http request", "it uses plain text, not TLS"},
        {"unknown ca", "it does not have the CA of this server's certificate"},
        {"certificate expired", "it found this server's certificate expired: check the clocks"},
        {"bad certificate", "it did not accept this server's certificate"},
        {"unsupported protocol", "it uses a version of TLS older than 1.2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strstr(reason, rows[i].word) != NULL) {
            return rows[i].text;
        }
    }
    return reason;
}

/* Reported once per host, reason and minute: one address may stand for many hosts, and a person
 * who corrects a setting causes further failures. */
static bool is_new(struct rpc_handshake_log *handshake_log, const char *peer, const char *why)
{
    char host[INET6_ADDRSTRLEN];
    const char *colon = strrchr(peer, ':');
    uint64_t now_us = clock_monotonic_us();
    snprintf(host, sizeof host, "%.*s", colon != NULL ? (int)(colon - peer) : 0, peer);
    for (size_t i = 0; i < LOGGED_MAX; i++) {
        if (strcmp(handshake_log->logged[i].host, host) == 0 &&
            strcmp(handshake_log->logged[i].why, why) == 0 &&
            handshake_log->logged[i].when_us != 0 &&
            now_us - handshake_log->logged[i].when_us < RELOG_INTERVAL_US) {
            return false;
        }
    }
    size_t at = handshake_log->logged_next++ % LOGGED_MAX;
    memcpy(handshake_log->logged[at].host, host, sizeof host);
    snprintf(handshake_log->logged[at].why, sizeof handshake_log->logged[at].why, "%s", why);
    handshake_log->logged[at].when_us = now_us;
    return true;
}

static void log_failure(struct rpc_handshake_log *handshake_log, const struct failure *failure,
    const struct peers *after)
{
    char text[CADRE_ERROR_TEXT_BYTES];
    char peer_text[PEER_TEXT_BYTES];
    size_t length = 0;
    size_t gone = 0;
    bool tellable = false;
    const char *why = handshake_log_explain(failure->reason);
    for (size_t i = 0; i < failure->before.count; i++) {
        const struct peer *peer = &failure->before.list[i];
        bool there = after->count > 0 && bsearch(peer, after->list, after->count,
                                             sizeof *after->list, handshake_log_compare) != NULL;
        if (!there && gone++ < CANDIDATES_MAX) {
            write_peer(peer, peer_text);
            tellable = is_new(handshake_log, peer_text, why) || tellable;
            length += (size_t)snprintf(
                text + length, sizeof text - length, "%s%s", gone > 1 ? " or " : "", peer_text);
        }
    }
    if (gone == 0) {
        tellable = is_new(handshake_log, "a peer that is gone:", why);
        length = (size_t)snprintf(text, sizeof text, "a peer that is gone");
    }
    snprintf(text + length, sizeof text - length, ": %s", why);
    if (tellable) {
        rpc_tls_report_refused(handshake_log->tls, text);
    }
}

/* The connection of each failure has closed by the next failure, or by now. */
static void on_async(uv_async_t *async)
{
    struct rpc_handshake_log *handshake_log = async->data;
    struct failure failures[PENDING_MAX];
    pthread_mutex_lock(&lock);
    size_t count = handshake_log->failure_count;
    memcpy(failures, handshake_log->failures, sizeof failures);
    handshake_log->failure_count = 0;
    pthread_mutex_unlock(&lock);
    struct peers now = scan_sockets(handshake_log);
    for (size_t i = 0; i < count; i++) {
        log_failure(handshake_log, &failures[i], i + 1 < count ? &failures[i + 1].before : &now);
    }
    for (size_t i = 0; i < count; i++) {
        free(failures[i].before.list);
    }
    free(now.list);
}

void rpc_handshake_log_receive(const char *text_line)
{
    if (strncmp(text_line, prefix, sizeof prefix - 1) != 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct rpc_handshake_log *handshake_log = watched;
    uint64_t now_us = clock_monotonic_us();
    if (handshake_log != NULL && now_us - handshake_log->scans_since_us >= CADRE_US_PER_S) {
        handshake_log->scans_since_us = now_us;
        handshake_log->scans = 0;
    }
    if (handshake_log != NULL && handshake_log->failure_count < PENDING_MAX &&
        handshake_log->scans++ < SCANS_PER_S_MAX) {
        struct failure *failure = &handshake_log->failures[handshake_log->failure_count++];
        snprintf(failure->reason, sizeof failure->reason, "%s", text_line + sizeof prefix - 1);
        failure->before = scan_sockets(handshake_log);
        uv_async_send(&handshake_log->async);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- opening and closing ---- */

struct rpc_handshake_log *rpc_handshake_log_open(struct rpc_loop *loop, struct rpc_tls *tls)
{
    struct rpc_handshake_log *handshake_log = NULL;
    pthread_mutex_lock(&lock);
    if (watched == NULL) {
        handshake_log = calloc(1, sizeof *handshake_log);
    }
    if (handshake_log != NULL) {
        int failed = uv_async_init(rpc_loop_uv(loop), &handshake_log->async, on_async);
        CADRE_ASSERT(failed == 0);
        uv_unref((uv_handle_t *)&handshake_log->async);
        handshake_log->async.data = handshake_log;
        handshake_log->tls = tls;
        rpc_tls_ref(tls);
        watched = handshake_log;
    }
    pthread_mutex_unlock(&lock);
    return handshake_log;
}

void rpc_handshake_log_add_port(struct rpc_handshake_log *handshake_log, int port)
{
    if (handshake_log != NULL && handshake_log->port_count < PORTS_MAX) {
        pthread_mutex_lock(&lock);
        handshake_log->ports[handshake_log->port_count++] = port;
        pthread_mutex_unlock(&lock);
    }
}

static void handshake_log_closed(uv_handle_t *handle)
{
    struct rpc_handshake_log *handshake_log = handle->data;
    for (size_t i = 0; i < handshake_log->failure_count; i++) {
        free(handshake_log->failures[i].before.list);
    }
    rpc_tls_unref(handshake_log->tls);
    free(handshake_log);
}

void rpc_handshake_log_close(struct rpc_handshake_log *handshake_log)
{
    if (handshake_log == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    watched = NULL;
    pthread_mutex_unlock(&lock);
    uv_close((uv_handle_t *)&handshake_log->async, handshake_log_closed);
}
