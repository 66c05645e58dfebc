/* SPDX-License-Identifier: Apache-2.0
 * Coordinators on copies of the ledger: one that nobody serves, and one that its operator starts
 * with --supersede. */
#ifndef CADRE_SIM_SECOND_H
#define CADRE_SIM_SECOND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/agent_message.h"

struct link;
struct sim;

struct second {
    bool waits; /* until all have obeyed a newer start */
    bool runs;
    struct term term;
    uint64_t poll_until_us;
};

/* A copy that is to own the workers. */
struct owner {
    bool waits; /* until somebody has obeyed the start that the copy does not know */
    uint64_t copied_start;
    uint64_t newest_start; /* of those that the copy does not know */
    uint64_t written;      /* records that the copy has */
    uint64_t poll_until_us;
};

struct term term_of_start(const struct sim *sim, uint64_t start, uint64_t nonce);

/* ---- second.c ---- */

void second_begins(struct sim *sim);
/* A coordinator of this term is started when all have obeyed as new a one. */
void second_waits(struct sim *sim, const struct term *term);
void second_goes_on(struct sim *sim);
void second_receive(struct sim *sim, uint32_t link, const struct agent_up *up);
/* As coordinator/daemon: before its core hears of a hello. */
bool coordinator_may_serve(struct sim *sim, uint32_t link, const struct agent_up *up);
/* As worker/host/daemon: false: its link ends. */
bool agent_accepts_term(struct sim *sim, uint32_t agent, const struct term *term);

/* ---- supersede.c ---- */

void supersede_begins(struct sim *sim);
void supersede_goes_on(struct sim *sim);
/* A worker knows a start that is none of this coordinator's, which is to own it nevertheless. */
void supersede_outranks(struct sim *sim, uint32_t link, const struct term *seen);
/* Its number is above all that workers know: its operator takes the word back. */
void supersede_is_over(struct sim *sim);
/* Whom it tells something, that one knows it by its number. */
void check_known(struct sim *sim, const struct link *link);

#endif
