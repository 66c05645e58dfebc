/* SPDX-License-Identifier: Apache-2.0
 * What differs where the programs of a job are plain ones. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PLAIN_H
#define CADRE_COORDINATOR_CORE_DECIDE_PLAIN_H

#include "coordinator/core/state/state.h"

/* Whether a plain job with joiners puts their halt off, because more of them may come: each halt
 * starts all its tasks again. */
bool plain_waits_for_joiners(const struct core *core, const struct job *job);

/* Whether no task of a job that begins again is still to come: of a plain one, whose tasks begin
 * together, none is ending, and each slot is filled for which there is room. */
bool plain_is_gathered(const struct job *job);

#endif
