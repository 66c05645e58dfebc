/* SPDX-License-Identifier: Apache-2.0
 * The wire from inside: its connections, and moving bytes on all of them without blocking in one.
 * Only the leader uses it, between mesh_fault_enter_streams and mesh_fault_leave_streams; outside
 * of that the watcher reads it, under the fault's lock. */
#ifndef CADRE_WORKER_MESH_WIRE_WIRE_STATE_H
#define CADRE_WORKER_MESH_WIRE_WIRE_STATE_H

#include <poll.h>
#include <sys/uio.h>

#include "worker/library/mesh/wire/host.h"
#include "worker/library/mesh/wire/wire.h"
#include "worker/library/mesh/wire/wire_frame.h"

#define WIRE_NO_HOST UINT32_MAX

struct direct_lane;

/* The connection to the lead task of one other host. */
struct wire_peer {
    int fd; /* -1: the own host, or not connected yet */
    uint32_t rank;
    bool between;    /* it reads a frame next: it can be sent why there is none */
    bool broken;     /* sending failed; its remaining bytes are read first */
    bool left;       /* it sent GOODBYE: */
    uint32_t leaver; /* the task that closed its mesh, of that host */
    bool looked;     /* its early frame in this collective was inspected already */
    bool hung;       /* the end of its stream was noticed already */
    bool wants_in;
    bool wants_out;
    uint8_t *carry; /* bytes that were read too early; NULL: none */
    size_t carry_at;
    size_t carry_end;
};

/* One level of recursive doubling: this host has the sum of its block, and gets that of the sibling
 * block. `to` gets ours in exchange, unless only a relay (see wire_small.c) brings us the
 * sibling's. */
struct wire_step {
    bool own_is_left;
    uint32_t to; /* WIRE_NO_HOST: it does not need ours any more */
    uint32_t from;
    uint32_t first_child; /* in wire.children: who gets the sibling's from us */
    uint32_t child_count;
    uint32_t own_first; /* the hosts of the own block, and of the sibling's */
    uint32_t own_end;
    uint32_t sibling_first;
    uint32_t sibling_end;
};

struct wire {
    uint32_t own;
    uint32_t host_count;
    struct wire_peer *peers; /* [host_count] */
    struct pollfd *polls;    /* [host_count + 1] */
    uint32_t *polled;        /* [host_count + 1]: whose they are */
    size_t small_bytes;
    uint64_t spin_us; /* 0: it yields its CPU at once */

    uint32_t step_count;
    struct wire_step *steps;
    uint32_t *children;

    /* of the collective under way */
    uint64_t sequence; /* or of the last one */
    uint64_t timeout_us;
    uint8_t kind;
    bool raw;  /* bytes without frames are moved now */
    bool open; /* agreed on, and its large data are not all there yet: bytes without frames come */
    unsigned yields;        /* since bytes moved */
    uint64_t idle_since_us; /* 0: bytes moved since the last look at the clock */
    uint64_t report_at_us;  /* when to report the late host, by idle time */

    uint8_t *inbox;            /* a frame with both records and small_bytes of data */
    uint8_t *outbox;           /* small gathered data, in canonical order */
    size_t *ends;              /* [host_count]: where each host's part of it ends */
    uint8_t *arriving;         /* direct: chunks of other hosts' contributions; NULL until needed */
    uint8_t *scratch;          /* for mesh_reduce_many */
    const uint8_t **ins;       /* [host_count]: its inputs */
    struct direct_lane *lanes; /* [2 * host_count]: in, out */
};

/* For a lead task in a mesh of several hosts. Close with wire_close also after an error. */
cadre_status mesh_wire_open(struct host_mesh *host, struct cadre_error *error);

/* Ends the connections; accepts NULL. */
void mesh_wire_close(struct wire *wire);

/* Sends what can be sent now of `pieces`; *ret_bytes 0: nothing. A connection that is over raises
 * the fault. */
cadre_status mesh_wire_send(struct host_mesh *host, uint32_t to, const struct iovec *pieces,
    size_t count, size_t *ret_bytes);
/* Receives what can be received now into `pieces`, as mesh_wire_send. */
cadre_status mesh_wire_receive(struct host_mesh *host, uint32_t from, const struct iovec *pieces,
    size_t count, size_t *ret_bytes);

/* Puts back bytes that were received and belong to the next message. */
cadre_status mesh_wire_unread(
    struct host_mesh *host, uint32_t from, const uint8_t *data, size_t bytes);

/* After a turn over all connections with wants_* set: spins, or sleeps until one may get further,
 * and checks for faults and for the time limit. */
cadre_status mesh_wire_wait(struct host_mesh *host, bool moved);

/* Fails when a host has sent GOODBYE before this collective. */
cadre_status mesh_wire_check_peers(struct host_mesh *host);

/* Raises the fault of a frame that is not the expected one, or not of this mesh; OK for a CALL of
 * this mesh. `data` has its data_bytes, when they are a reason. */
cadre_status mesh_wire_check_frame(
    struct host_mesh *host, uint32_t from, const struct wire_frame *frame, const uint8_t *data);

/* For the watcher, under the fault's lock and while the leader is not in the wire: reads the last
 * frame of a host that hung up. False: there was none; else `left` is set, or *ret_frame is a FAULT
 * and `ret_reason` its reason. */
bool mesh_wire_read_last_frame(struct wire *wire, uint32_t from, struct wire_frame *ret_frame,
    char ret_reason[WIRE_REASON_BYTES]);

/* Under the fault's lock and while the leader is not in the wire, or by the leader: sends a FAULT
 * or GOODBYE to every host that reads a frame next, and (`ends`) ends all connections. */
void mesh_wire_announce_end(struct wire *wire, const uint8_t *frame, size_t bytes, bool ends);

#endif
