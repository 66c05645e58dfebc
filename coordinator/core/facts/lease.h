/* SPDX-License-Identifier: Apache-2.0
 * Who is heard. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_LEASE_H
#define CADRE_COORDINATOR_CORE_FACTS_LEASE_H

#include "coordinator/core/state/state.h"

/* Time goes on to that of the next event. */
void lease_clock(struct core *core, uint64_t now_us);
/* Until when those whose words may lie unread are given time, since this process stood still; 0: it
 * did not, of late. */
uint64_t lease_unread_us(const struct core *core);
/* Whether it is known to live now. */
bool lease_is_alive(const struct core *core, uint32_t worker);
/* Whether somebody who can carry it on is heard, and the others had a lease to come back since
 * nobody was. */
bool job_can_continue(struct core *core, struct job *job);
/* Whether nobody is heard who can carry the job on, and somebody is silent who might. */
bool lease_cut_off(const struct core *core, const struct job *job);
/* A worker that was away is about to be heard again. */
void lease_returns(struct core *core, uint32_t worker);

#endif
