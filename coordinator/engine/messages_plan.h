/* SPDX-License-Identifier: Apache-2.0
 * The plan of a generation as messages: one with the whole roster for all daemons, or one for each
 * daemon with a part of it. messages.c calls it. */
#ifndef CADRE_COORDINATOR_ENGINE_MESSAGES_PLAN_H
#define CADRE_COORDINATOR_ENGINE_MESSAGES_PLAN_H

#include "coordinator/engine/messages.h"

/* Fills the fanout's plan and roster. False: no memory; what is there is freed by
 * messages_plan_free. */
bool messages_plan_make(
    const struct sender *sender, const struct core_job_view *view, struct fanout *fanout);
/* Accepts a zeroed fanout. */
void messages_plan_free(struct fanout *fanout);

/* Sends to each daemon that has members; `one` (NULL: to all): to that task's only. */
void messages_plan_fan_out(const struct sender *sender, const struct core_job_view *view,
    const struct fanout *fanout, const struct core_action *one);

#endif
