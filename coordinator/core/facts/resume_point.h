/* SPDX-License-Identifier: Apache-2.0
 * Positions of the frozen members that reported: where the next generation begins. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_RESUME_POINT_H
#define CADRE_COORDINATOR_CORE_FACTS_RESUME_POINT_H

#include "coordinator/core/state/state.h"
/* What follows from the reported positions. */
struct resume_point {
    uint64_t position; /* the highest clean one */
    uint32_t source;   /* slot of the lowest rank that has it; NONE */
    bool aligned;      /* all that have it have begun that step, of this stream: */
    uint32_t stream;
    uint32_t draining; /* members on draining workers */
    uint32_t staying;  /* the source among those that do not drain */
};

/* Reads the reports of all members (protocol, rules 6, 8 and 9). */
struct resume_point resume_point_find(const struct core *core, const struct job *job);

#endif
