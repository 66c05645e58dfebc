/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model/crew.h"

#include <stddef.h>
#include <string.h>

#include "common/model/limits.h"

const char *crew_fault(const struct crew *crew, const char *strategy)
{
    bool named = strcmp(strategy, CREW_STRATEGY) == 0;
    if (named && crew->servers == 0) {
        return "has the strategy parameter_server and no parameter server: give it one or more";
    }
    if (!named && crew->servers > 0) {
        return "has parameter servers, which only the strategy parameter_server uses: name that "
               "strategy, or give it none";
    }
    if (!named) {
        return crew->workers > 0 || crew->evaluators > 0 || crew->backups
                   ? "has no parameter servers, so it has no evaluator and no backups of servers"
                   : NULL;
    }
    if (crew->workers == 0) {
        return "has parameter servers and no worker: give it one or more";
    }
    if (crew->evaluators > CREW_EVALUATORS_MAX) {
        return "has more than one evaluator: give it one, or none";
    }
    if (crew->backups && crew->servers < 2) {
        return "has one parameter server, which nobody can hold a copy of: give it two or more, or "
               "no backups";
    }
    if (crew_tasks(crew) > LIMIT_TASKS_PER_JOB) {
        return "has more than 16384 tasks, chief, workers, servers and evaluator together";
    }
    return NULL;
}
