/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a job with parameter servers, by type. Its slots are in a fixed order, so a task's
 * type and index follow from its slot alone:
 *
 *     slot   0       1 .. workers   then servers   then at most one
 *            chief   worker 0 ..    ps 0 ..        evaluator
 *
 * A crew without servers is none: then all tasks of a job are alike. (The task types of TF_CONFIG.)
 */
#ifndef CADRE_MODEL_CREW_H
#define CADRE_MODEL_CREW_H

#include <stdbool.h>
#include <stdint.h>

#define CREW_STRATEGY       "parameter_server" /* of a job that is one, and of no other */
#define CREW_EVALUATORS_MAX 1

enum role { ROLE_NONE = 0, ROLE_CHIEF, ROLE_WORKER, ROLE_SERVER, ROLE_EVALUATOR };

struct crew {
    uint32_t workers;
    uint32_t servers;    /* 0: this is no crew */
    uint32_t evaluators; /* 0 or 1 */
    bool backups;        /* each server holds a copy of another one's variables */
};

static inline bool crew_is(const struct crew *crew)
{
    return crew->servers > 0;
}

/* Tasks, the chief too. */
static inline uint64_t crew_tasks(const struct crew *crew)
{
    return 1 + (uint64_t)crew->workers + crew->servers + crew->evaluators;
}

/* The first slot of a role. */
static inline uint32_t crew_first(const struct crew *crew, enum role role)
{
    return role == ROLE_CHIEF    ? 0
           : role == ROLE_WORKER ? 1
           : role == ROLE_SERVER ? 1 + crew->workers
                                 : 1 + crew->workers + crew->servers;
}

static inline uint32_t crew_count(const struct crew *crew, enum role role)
{
    return role == ROLE_CHIEF    ? 1
           : role == ROLE_WORKER ? crew->workers
           : role == ROLE_SERVER ? crew->servers
                                 : crew->evaluators;
}

/* ROLE_NONE when it is no crew; slot < crew_tasks. */
static inline enum role crew_role(const struct crew *crew, uint32_t slot)
{
    return !crew_is(crew)                            ? ROLE_NONE
           : slot == 0                               ? ROLE_CHIEF
           : slot < crew_first(crew, ROLE_SERVER)    ? ROLE_WORKER
           : slot < crew_first(crew, ROLE_EVALUATOR) ? ROLE_SERVER
                                                     : ROLE_EVALUATOR;
}

/* Of a slot, among those of its role. */
static inline uint32_t crew_index(const struct crew *crew, uint32_t slot)
{
    return slot - (crew_is(crew) ? crew_first(crew, crew_role(crew, slot)) : 0);
}

/* NULL, or what is wrong with the crew of a job with this strategy: "needs at least one worker". */
const char *crew_fault(const struct crew *crew, const char *strategy);

/* "chief", "worker", "ps", "evaluator": TF_CONFIG's names; "" of none. */
static inline const char *role_name(enum role role)
{
    static const char *const names[] = {"", "chief", "worker", "ps", "evaluator"};
    return names[role];
}

#endif
