/* SPDX-License-Identifier: Apache-2.0
 * Inside of links: what a connection has read ahead, and the greeting behind the proofs. */
#ifndef CADRE_PS_LINK_LINK_INTERNAL_H
#define CADRE_PS_LINK_LINK_INTERNAL_H

#include <pthread.h>

#include "worker/library/mesh/connect/handshake.h"
#include "worker/library/ps/link/link.h"

/* A small frame comes with its header in one read; of a large one so much is copied once more. */
#define LINK_AHEAD_BYTES 4096
#define LINK_NAME_BYTES  (LIMIT_ADDRESS_BYTES + 48)

struct link {
    int fd; /* blocks */
    pthread_mutex_t send_lock;
    struct link_peer peer;
    char who[LINK_NAME_BYTES];
    uint64_t receive_us; /* SO_RCVTIMEO as it is set; UINT64_MAX: none */
    size_t begin;        /* of what was read ahead */
    size_t end;
    uint8_t ahead[LINK_AHEAD_BYTES];
};

/* Takes `fd` over, on success. NULL: no memory. */
struct link *link_new(int fd, const struct link_peer *peer, const char *who);

/* One that is connected: no delay, and a peer whose machine went away is noticed. */
void link_tune(int fd);

/* Reads what there is, at most `count` bytes: first what was read ahead. 0: none now, only with
 * `wait` false or after the link's patience; -1: the connection is gone, errno says why (0: it was
 * ended). */
ssize_t link_read(struct link *link, void *bytes, size_t count, bool wait);
/* Reads ahead until `count` bytes are there, at most LINK_AHEAD_BYTES: 1; 0 and -1 as above. */
int link_read_ahead(struct link *link, size_t count, bool wait);
/* How long reads wait. */
void link_set_patience(struct link *link, uint64_t wait_timeout_us);

/* ---- the greeting: what each side says of itself once the other one has proved the key ---- */

#define GREETING_BYTES 64

void link_greeting_write(const struct link_terms *terms, uint8_t ret_bytes[GREETING_BYTES]);
/* False when it is none. */
bool link_greeting_read(const uint8_t bytes[GREETING_BYTES], struct link_peer *peer);
/* FAILED_PRECONDITION: another program. */
cadre_status link_greeting_check(const struct link_terms *terms, const struct link_peer *peer,
    const char *who, struct cadre_error *error);

/* "worker 3", "ps 1", "slot 4". */
void link_slot_name(const struct ps_job *ps_job, uint32_t slot, char ret_name[LINK_NAME_BYTES]);

struct handshake_hello link_hello(const struct link_terms *terms, uint32_t from, uint32_t to);

#endif
