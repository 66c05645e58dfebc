/* SPDX-License-Identifier: Apache-2.0
 * Inside of links: what a connection has read ahead, and the greeting behind the proofs. */
#ifndef CADRE_PS_LINK_LINK_INTERNAL_H
#define CADRE_PS_LINK_LINK_INTERNAL_H

#include <pthread.h>

#include "worker/library/mesh/connect/handshake.h"
#include "worker/library/ps/link/link.h"

/* A small frame arrives with its header in one read; of a large frame at most this much is copied
 * twice. */
#define LINK_AHEAD_BYTES 4096
#define LINK_NAME_BYTES  (LIMIT_ADDRESS_BYTES + 48)

struct link {
    int fd; /* blocking */
    pthread_mutex_t send_lock;
    struct link_peer peer;
    char who[LINK_NAME_BYTES];
    uint64_t receive_us; /* SO_RCVTIMEO as it is set; UINT64_MAX: none */
    size_t begin;        /* of the bytes in `ahead` that were not taken yet */
    size_t end;
    uint8_t ahead[LINK_AHEAD_BYTES];
};

/* Owns `fd` on success. NULL: no memory. */
struct link *link_new(int fd, const struct link_peer *peer, const char *who);

/* Sets options of a connected socket: no delay, and keepalive against machines that vanish. */
void link_tune(int fd);

/* Reads at most `count` bytes, first those that were read ahead. 0: none now, only with `wait`
 * false or after link_set_patience's time; -1: the connection is lost, with errno (0: the other
 * side ended it). */
ssize_t link_read(struct link *link, void *bytes, size_t count, bool wait);
/* Reads ahead until `count` bytes are there, at most LINK_AHEAD_BYTES: 1; 0 and -1 as above. */
int link_read_ahead(struct link *link, size_t count, bool wait);
/* How long reads wait. */
void link_set_patience(struct link *link, uint64_t wait_timeout_us);

/* ---- the greeting: each side sends it once the other one has proved the key ---- */

#define GREETING_BYTES 64

/* Incarnation and program of this task. */
void link_greeting_write(const struct link_terms *terms, uint8_t ret_bytes[GREETING_BYTES]);
/* False when the bytes are no greeting. */
bool link_greeting_read(const uint8_t bytes[GREETING_BYTES], struct link_peer *peer);
/* FAILED_PRECONDITION: another program. */
cadre_status link_greeting_check(const struct link_terms *terms, const struct link_peer *peer,
    const char *who, struct cadre_error *error);

/* "worker 3", "ps 1", "slot 4". */
void link_slot_name(const struct ps_job *ps_job, uint32_t slot, char ret_name[LINK_NAME_BYTES]);

/* The hello of the mesh's handshake for a connection between two slots. */
struct handshake_hello link_hello(const struct link_terms *terms, uint32_t from, uint32_t to);

#endif
