/* SPDX-License-Identifier: Apache-2.0
 * Coordinators on copies of the ledger: one that serves no worker, and one that its operator starts
 * with --supersede. */
#ifndef CADRE_SIM_SECOND_H
#define CADRE_SIM_SECOND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/agent_message.h"

struct link;
struct sim;

struct second {
    bool waits; /* until all have accepted a newer start */
    bool runs;
    struct term term;
    uint64_t poll_until_us;
};

/* A copy that is to serve the workers. */
struct owner {
    bool waits; /* until a worker has accepted the start that the copy lacks */
    uint64_t copied_start;
    uint64_t newest_start; /* of those that the copy lacks */
    uint64_t written;      /* records that the copy has */
    uint64_t poll_until_us;
};

/* The term of this start of the first coordinator's cluster. */
struct term term_of_start(const struct sim *sim, uint64_t start, uint64_t nonce);

/* ---- second.c ---- */

/* The ledger is copied; a second coordinator waits to start on it. */
void second_begins(struct sim *sim);
/* A coordinator of this term is started when all have accepted as new a one. */
void second_waits(struct sim *sim, const struct term *term);
/* Starts or ends it, when it is time. */
void second_goes_on(struct sim *sim);
/* A message on one of its links. */
void second_receive(struct sim *sim, uint32_t link, const struct agent_up *up);
/* As coordinator/daemon: before its core gets a hello. */
bool coordinator_may_serve(struct sim *sim, uint32_t link, const struct agent_up *up);
/* As worker/host/daemon: false: its link ends. */
bool agent_accepts_term(struct sim *sim, uint32_t agent, const struct term *term);

/* ---- supersede.c ---- */

/* The ledger is copied; the copy waits to be started with --supersede. */
void supersede_begins(struct sim *sim);
/* Starts the copy, when it is time. */
void supersede_goes_on(struct sim *sim);
/* A worker has seen a start of another coordinator, and this one is to serve it nevertheless. */
void supersede_outranks(struct sim *sim, uint32_t link, const struct term *seen);
/* Its number is above all that workers have: its operator removes --supersede. */
void supersede_is_over(struct sim *sim);
/* TERM: a worker that it sends to was welcomed with its present number. */
void check_known(struct sim *sim, const struct link *link);

#endif
