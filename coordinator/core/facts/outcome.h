/* SPDX-License-Identifier: Apache-2.0
 * How a job ends, as soon as that is known. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_OUTCOME_H
#define CADRE_COORDINATOR_CORE_FACTS_OUTCOME_H

#include "coordinator/core/state/state.h"

/* Whether all members of a generation that lacks nobody are gone, in order. */
bool outcome_all_exited(const struct job *job);
/* Whether all that there was to be has ended before anybody joined: the program may do without. */
bool outcome_never_joined(const struct job *job);
/* Whether nobody is left, and nothing failed: it has succeeded, decided yet or not. */
bool outcome_is_success(const struct job *job);
/* It will end so; nothing may be known of that yet. */
void outcome_set(struct core *core, struct job *job, enum job_state outcome, cadre_status code,
    int32_t exit_code, const char *sentence);
/* The first reason stands; a later one is ignored. */
void job_fail(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *text);
/* Its tasks are to be told to end. */
void job_stops(struct core *core, struct job *job);

#endif
