/* SPDX-License-Identifier: Apache-2.0
 * A connection between two tasks of a crew: TCP, admitted by the key of the generation, then frames
 * of a fixed header and bytes. Blocking; what a program's threads use. (The server's own loop reads
 * the same frames without blocking: server.c.)
 *
 *     connector  ── hello, challenge ──▶  acceptor        worker/library/mesh/connect/handshake.h:
 * HMAC-SHA256 over ◀── reply, proof ──────                   generation, both slots and challenges;
 *                ── proof ──▶                              nothing else is read before it, and no
 *                ◀── welcome ───────────                   length is believed
 *                ── frame, frame, ... ──▶ and back */
#ifndef CADRE_PS_LINK_LINK_H
#define CADRE_PS_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/error.h"
#include "common/model/ps_job.h"
#include "common/model/task_message.h"

#define LINK_PROGRAM_BYTES 32

/* Who this task is to others, and what they have to prove. */
struct link_terms {
    struct generation generation;
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    uint32_t slot;
    uint64_t incarnation;
    uint8_t program[LINK_PROGRAM_BYTES]; /* a digest of the executable: tasks run one program */
    struct ps_job ps_job; /* to call others by their names; none: they are called by their slots */
};

/* As it proved, and said behind the proof. */
struct link_peer {
    uint32_t slot;
    uint64_t incarnation;
    uint8_t program[LINK_PROGRAM_BYTES];
};

/* 64 bytes on the wire, little-endian, in this order. What they mean is its kind's. */
struct frame {
    uint32_t kind;
    uint32_t code;  /* of answers: a cadre_status; the bytes are then its sentence */
    uint64_t id;    /* an answer has its question's */
    uint64_t bytes; /* that follow */
    uint64_t args[5];
};
#define FRAME_BYTES 64

struct link;

/* UNAVAILABLE: nobody listens there, or it ended the connection; PERMISSION_DENIED: no proof, or of
 * another generation; FAILED_PRECONDITION: it runs another program; DEADLINE_EXCEEDED, also when
 * its listener is not started. Each names the address and `who` ("ps 1"). */
cadre_status link_connect(const struct link_terms *terms, const char *who, const char *address,
    uint32_t to_slot, uint64_t wait_timeout_us, struct link **ret_link, struct cadre_error *error);

/* Sends a frame and its pieces (frame->bytes in all), in one go. Any thread; frames of several do
 * not mix. UNAVAILABLE when the connection is gone. */
cadre_status link_send(struct link *link, const struct frame *frame, const struct iovec *pieces,
    size_t count, struct cadre_error *error);

/* One thread at a time. Waits for the next frame (its bytes are then to be read, all of them):
 * DEADLINE_EXCEEDED after wait_timeout_us without one (UINT64_MAX: for ever), nothing is lost then;
 * UNAVAILABLE when the connection is gone. */
cadre_status link_receive(struct link *link, uint64_t wait_timeout_us, struct frame *ret_frame,
    struct cadre_error *error);
cadre_status link_receive_bytes(
    struct link *link, void *bytes, size_t count, struct cadre_error *error);

/* What waits asks every so often whether it is still to wait: false ends it, with
 * DEADLINE_EXCEEDED. `silent_us`: nothing moved for so long. */
struct link_wait {
    bool (*goes_on)(void *user, uint64_t silent_us);
    void *user;
};
/* As link_send, and it never blocks for longer than that. On error the link is of no use any more:
 * it may have sent half a frame. */
cadre_status link_send_while(struct link *link, const struct frame *frame,
    const struct iovec *pieces, size_t count, const struct link_wait *wait,
    struct cadre_error *error);
/* As link_receive and link_receive_bytes. */
cadre_status link_receive_while(struct link *link, const struct link_wait *wait,
    struct frame *ret_frame, struct cadre_error *error);
cadre_status link_receive_bytes_while(struct link *link, void *bytes, size_t count,
    const struct link_wait *wait, struct cadre_error *error);

const struct link_peer *link_peer(const struct link *link);
/* "ps 1 on 10.0.0.2:4000"; of one that was admitted: "worker 3". */
const char *link_peer_name(const struct link *link);
/* Something may have been read ahead of it: link_receive with a patience of 0 asks both. */
int link_fd(const struct link *link);

/* All that wait in it return UNAVAILABLE. Any thread. */
void link_shutdown(struct link *link);
/* Nobody uses it any more; NULL is allowed. */
void link_free(struct link *link);

struct link_listener;

/* Bound and listening on a free port of `host` (a number, "127.0.0.1"): those that connect wait
 * until it is started. */
cadre_status link_listener_open(const char *host, struct link_listener **ret_listener,
    char ret_address[LIMIT_ADDRESS_BYTES], struct cadre_error *error);

/* A thread admits whoever proves to be another task of the generation. `admit` takes the link over;
 * it is called in that thread and must not block for long. Strangers are bounded in number and
 * time, and a slow one holds up nobody. */
struct link_admission {
    void (*admit)(void *user, struct link *link);
    void *user;
    /* Of a task that proved the key and was refused all the same: it runs another program
     * (FAILED_PRECONDITION, which names it). NULL: nobody asks. */
    void (*refused)(void *user, const struct link_peer *peer, const struct cadre_error *error);
};
cadre_status link_listener_start(struct link_listener *listener, const struct link_terms *terms,
    const struct link_admission *admission, struct cadre_error *error);
/* Ends the thread first, and whoever waits to be admitted; NULL is allowed. */
void link_listener_close(struct link_listener *listener);

/* A digest of this process's executable, made once. */
cadre_status link_program_digest(uint8_t ret_digest[LINK_PROGRAM_BYTES], struct cadre_error *error);

#endif
