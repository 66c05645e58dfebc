/* SPDX-License-Identifier: Apache-2.0
 * A real mesh of rank 0, and a peer that the test runs by hand: it holds the key, and then sends
 * what no task sends. It is the lead task of another host (TCP), or a second task of the own one (a
 * Unix socket). */
#ifndef CADRE_TESTS_UNIT_MESH_HOSTILE_H
#define CADRE_TESTS_UNIT_MESH_HOSTILE_H

#include "tests/lib/test.h"
#include "worker/library/mesh/connect/handshake.h"
#include "worker/library/mesh/wire/host.h"
#include "worker/library/mesh/mesh.h"

#define HOSTILE_GENERATION 4
#define HOSTILE_NONCE      5

struct hostile {
    struct mesh_listener *listener;
    struct mesh *mesh;
    struct mesh_member members[2];
    uint8_t key[MESH_KEY_BYTES];
    bool local; /* both on one host */
    int fd;     /* the hostile end; -1: closed */
};

void hostile_receive(int fd, void *bytes, size_t size);
void hostile_send(int fd, const void *bytes, size_t size);

/* The mesh is posted, the peer connected. */
void hostile_post(struct hostile *hostile, bool local);
/* A new connection instead of the last one. */
void hostile_connect(struct hostile *hostile);
/* One step of the mesh once it can make one. */
cadre_status hostile_step(struct hostile *hostile, struct cadre_error *error);
/* Steps until the peer has something to read, or its connection ended. */
void hostile_step_until_readable(struct hostile *hostile);
/* The connector's part up to the proof. */
void hostile_greet(struct hostile *hostile, uint8_t hello[HANDSHAKE_HELLO_BYTES],
    uint8_t reply[HANDSHAKE_REPLY_BYTES]);
/* All of the handshake: the peer is admitted. */
void hostile_authenticate(struct hostile *hostile);
/* Steps until the mesh has formed or failed. */
cadre_status hostile_finish(struct hostile *hostile, struct cadre_error *error);
void hostile_leave(struct hostile *hostile);

#endif
