/* SPDX-License-Identifier: Apache-2.0
 * The acceptor's side of forming: a task's listening sockets, TCP for other hosts and Unix for
 * tasks of its own, and the unproven connections on them, those that have not proved the key yet.
 * They are bounded in number and in time, cost a table row each, and are only served while a mesh
 * forms. One of a generation that is newer than the one being formed waits for it in its row. */
#ifndef CADRE_WORKER_MESH_CONNECT_LISTENER_H
#define CADRE_WORKER_MESH_CONNECT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/mesh/mesh.h"

struct mesh_sockaddr;

#define LISTENER_PENDING_MAX   256
#define LISTENER_REFUSAL_BYTES 160
#define LISTENER_TIMEOUT_US    UINT64_C(5000000) /* from accept to proof */

/* What a forming mesh admits, and where admitted connections go. */
struct listener_terms {
    uint64_t generation;
    uint64_t nonce;
    uint64_t roster;
    uint32_t rank; /* this task's */
    const uint8_t *key;
    /* Whether `rank` (any number) is to connect to this task, over TCP or (`local`) Unix. */
    bool (*expects)(void *user, uint32_t rank, bool local);
    /* Takes over `fd`, whose peer has proved to be `rank`. Called with the listener locked. */
    void (*admit)(void *user, uint32_t rank, bool local, int fd);
    void *user;
};

/* Does what can be done now: accepts, reads, answers, admits, refuses, closes. Thread-safe.
 * `refusal` keeps the reason of the last refused connection, for the message about who is missing.
 * Fails only when this process cannot accept at all (no descriptors left). */
cadre_status mesh_listener_serve(struct mesh_listener *listener, const struct listener_terms *terms,
    uint64_t now_us, char refusal[LISTENER_REFUSAL_BYTES], struct cadre_error *error);

/* Readable when mesh_listener_serve may get further; the listener's, until it is closed. */
int mesh_listener_fd(const struct mesh_listener *listener);

/* TCP_NODELAY. At a loopback address, where data is copied through memory, a small send buffer, and
 * no pacing: BBR sets a timer for every few packets, which costs more there than to copy them. `fd`
 * listens at the address (a connection that it accepts has the same options), or is about to
 * connect to it: the options of a connection that exists do not end its pacing. Best effort. */
void mesh_listener_tune(int fd, const struct mesh_sockaddr *address);

#endif
