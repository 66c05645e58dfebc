/* SPDX-License-Identifier: Apache-2.0
 * A connection between two tasks of a ps job: TCP, admitted by the key of the generation, then
 * frames of a fixed header and bytes. Blocking, for a program's threads. (The server's loop reads
 * the same frames without blocking: server_connection.c.)
 *
 *     connector  ── hello, challenge ──▶  acceptor        worker/library/mesh/connect/handshake.h:
 * HMAC-SHA256 over ◀── reply, proof ──────                   generation, both slots and challenges;
 *                ── proof ──▶                              nothing else is read before it, and no
 *                ◀── welcome ───────────                   length is used before it
 *                ── frame, frame, ... ──▶ and back */
#ifndef CADRE_PS_LINK_LINK_H
#define CADRE_PS_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/error.h"
#include "common/base/port_range.h"
#include "common/model/ps_job.h"
#include "common/model/task_message.h"

#define LINK_PROGRAM_BYTES 32

/* The identity that this task proves to others, and what they have to prove. */
struct link_terms {
    struct generation generation;
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    uint32_t slot;
    uint64_t incarnation;
    uint8_t program[LINK_PROGRAM_BYTES]; /* digest of the executable: all tasks run one program */
    struct ps_job ps_job; /* names tasks in messages; no ps job: they are called by their slots */
};

/* The other task: the slot that it proved, and what it sent behind the proof. */
struct link_peer {
    uint32_t slot;
    uint64_t incarnation;
    uint8_t program[LINK_PROGRAM_BYTES];
};

/* 64 bytes on the wire, little-endian, in this order. The kind fixes what the arguments mean. */
struct frame {
    uint32_t kind;
    uint32_t code;  /* of answers: a cadre_status; the bytes are then its message */
    uint64_t id;    /* an answer has the id of its request */
    uint64_t bytes; /* bytes that follow */
    uint64_t args[5];
};
#define FRAME_BYTES 64

struct link;

/* UNAVAILABLE: nothing listens there, or the connection was ended; PERMISSION_DENIED: no proof, or
 * of another generation; FAILED_PRECONDITION: it runs another program; DEADLINE_EXCEEDED, also when
 * its listener is not started. Each names the address and `who` ("ps 1"). */
cadre_status link_connect(const struct link_terms *terms, const char *who, const char *address,
    uint32_t to_slot, uint64_t wait_timeout_us, struct link **ret_link, struct cadre_error *error);

/* Sends a frame and its pieces (frame->bytes in all) without a gap. Any thread; frames of several
 * threads do not mix. UNAVAILABLE when the connection is lost. */
cadre_status link_send(struct link *link, const struct frame *frame, const struct iovec *pieces,
    size_t count, struct cadre_error *error);

/* One thread at a time. Waits for the next frame; the caller then reads all of its bytes.
 * DEADLINE_EXCEEDED after wait_timeout_us without a frame (UINT64_MAX: no limit), nothing is lost
 * then; UNAVAILABLE when the connection is lost. */
cadre_status link_receive(struct link *link, uint64_t wait_timeout_us, struct frame *ret_frame,
    struct cadre_error *error);
/* Waits for `count` bytes behind the last frame. Errors as of link_receive. */
cadre_status link_receive_bytes(
    struct link *link, void *bytes, size_t count, struct cadre_error *error);

/* A wait that calls goes_on() every 100 ms: false ends it with DEADLINE_EXCEEDED. `silent_us`: how
 * long nothing was sent or received. */
struct link_wait {
    bool (*goes_on)(void *user, uint64_t silent_us);
    void *user;
};
/* As link_send, with `wait` as the limit instead of blocking. On error the link must be closed,
 * because half a frame may have been sent. */
cadre_status link_send_while(struct link *link, const struct frame *frame,
    const struct iovec *pieces, size_t count, const struct link_wait *wait,
    struct cadre_error *error);
/* As link_receive, limited by `wait`. */
cadre_status link_receive_while(struct link *link, const struct link_wait *wait,
    struct frame *ret_frame, struct cadre_error *error);
/* As link_receive_bytes, limited by `wait`. */
cadre_status link_receive_bytes_while(struct link *link, void *bytes, size_t count,
    const struct link_wait *wait, struct cadre_error *error);

/* Slot, incarnation and program of the other side. */
const struct link_peer *link_peer(const struct link *link);
/* "ps 1 on 10.0.0.2:4000"; of an admitted connection: "worker 3". */
const char *link_peer_name(const struct link *link);
/* For poll. Bytes may have been read ahead of it: link_receive with a timeout of 0 looks at
 * both. */
int link_fd(const struct link *link);

/* The other side has ended the connection, or its machine has not answered for 11 s, although
 * nothing is being sent or received. */
bool link_is_ended(const struct link *link);

/* All waits in it return UNAVAILABLE. Any thread. */
void link_shutdown(struct link *link);
/* No thread may use it any more. NULL is allowed. */
void link_free(struct link *link);

struct link_listener;

/* Binds and listens on the first free port of `ports` (NULL: any) at `host` (a number,
 * "127.0.0.1"): connections wait until link_listener_start. RESOURCE_EXHAUSTED when all of `ports`
 * are in use. */
cadre_status link_listener_open(const char *host, const struct port_range *ports,
    struct link_listener **ret_listener, char ret_address[LIMIT_ADDRESS_BYTES],
    struct cadre_error *error);

/* A thread admits each connection that proves to be another task of the generation. `admit` owns
 * the link; it runs in that thread and must not block for long. Connections without a proof are
 * bounded in number and time, and a slow one does not delay the others. */
struct link_admission {
    void (*admit)(void *user, struct link *link);
    void *user;
    /* A task proved the key and was refused because it runs another program (FAILED_PRECONDITION,
     * which names it). NULL: no call. */
    void (*refused)(void *user, const struct link_peer *peer, const struct cadre_error *error);
};
/* Starts the admitting thread; `terms` and `admission` are copied. */
cadre_status link_listener_start(struct link_listener *listener, const struct link_terms *terms,
    const struct link_admission *admission, struct cadre_error *error);
/* Of one that is started: who comes from now on has to prove these. Those who are admitted stay.
 * Any thread. */
void link_listener_set_terms(struct link_listener *listener, const struct link_terms *terms);
/* Ends the thread and all connections that are not admitted yet. NULL is allowed. */
void link_listener_close(struct link_listener *listener);

/* A digest of this process's executable, computed once. */
cadre_status link_program_digest(uint8_t ret_digest[LINK_PROGRAM_BYTES], struct cadre_error *error);

#endif
