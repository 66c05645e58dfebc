/* SPDX-License-Identifier: Apache-2.0
 * Which workers are alive. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_LEASE_H
#define CADRE_COORDINATOR_CORE_FACTS_LEASE_H

#include "coordinator/core/state/state.h"

/* Sets the time of the next event, and notes a pause of this process. */
void lease_clock(struct core *core, uint64_t now_us);
/* Until when messages may be unread because this process was suspended; 0: it was not, of late. */
uint64_t lease_unread_us(const struct core *core);
/* Whether the worker is connected and sent something within half a lease. */
bool lease_is_alive(const struct core *core, uint32_t worker);
/* Whether a live worker can continue the job, and the others had a lease to come back since none
 * could. */
bool job_can_continue(struct core *core, struct job *job);
/* Whether no live worker can continue the job, and a silent one might. */
bool lease_cut_off(const struct core *core, const struct job *job);
/* A worker that was away is about to be connected again. */
void lease_returns(struct core *core, uint32_t worker);

#endif
