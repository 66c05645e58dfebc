/* SPDX-License-Identifier: Apache-2.0
 * Where the members of a generation stand that are frozen and reported. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_RESUME_POINT_H
#define CADRE_COORDINATOR_CORE_FACTS_RESUME_POINT_H

#include "coordinator/core/state/state.h"
/* Where the reported members stand. */
struct resume_point {
    uint64_t position; /* the highest that is held cleanly */
    uint32_t source;   /* slot of the lowest rank that holds it; NONE */
    bool aligned;      /* all that hold it have begun that step, of this stream: */
    uint32_t stream;
    uint32_t draining; /* members that have to go elsewhere */
    uint32_t staying;  /* as source, of those that do not drain */
};

/* Looks at all members. */
struct resume_point resume_point_find(const struct core *core, const struct job *job);

#endif
