/* SPDX-License-Identifier: Apache-2.0
 * A disk that lies about fsync. */
#ifndef CADRE_SIM_LIE_H
#define CADRE_SIM_LIE_H

#include <stdbool.h>
#include <stdint.h>

struct agent_up;
struct core_action;
struct sim;

enum lie {
    LIE_BEGINS = 0, /* what is synced from now on is not durable */
    LIE_SHOWS,      /* the coordinator's host crashes, and all that is lost */
    LIE_CANCELS /* a client cancels a job that may wait for a newer ledger, until it has ended */
};

/* ON_LIE. */
void lie_happens(struct sim *sim, enum lie what, uint32_t job);
/* The coordinator gets this message: perhaps a task's hello of a newer generation. */
void lie_receives(struct sim *sim, const struct agent_up *up);
/* Since then the world may contradict the ledger: this invariant is not meant. */
bool lie_excuses(const struct sim *sim, const char *invariant);
/* KEEP, when an action is decided: no task that is ahead of its ledger loses its state by it, once
 * the coordinator has received that. What it decides before follows from its ledger alone. */
void check_keeps(struct sim *sim, const struct core_action *action);
/* Before a run. */
void lie_open(struct sim *sim);

#endif
