/* SPDX-License-Identifier: Apache-2.0
 * Which words of a turn a later one outdates: a later release of the same job says everything that
 * an earlier one does, and so does a later list of its members to the same tasks, or to all. Pure.
 */
#ifndef CADRE_COORDINATOR_ENGINE_OUTDATED_H
#define CADRE_COORDINATOR_ENGINE_OUTDATED_H

#include "coordinator/core/core.h"

/* What is told of a job in this turn, and told last. */
struct newest_messages {
    struct newest_message {
        size_t action;
        struct generation generation;
    } release, members, members_of_chief; /* to all of a kind; to the chief, alone or not */
};

/* Where that of a job is kept; NULL: nowhere, and nothing of it is outdated. */
struct newest_of {
    struct newest_messages *(*find)(void *user, struct job_id job);
    void *user;
};

bool outdated_is_message(const struct core_action *action, enum core_message message);
/* Looks at the whole turn, before the first of it is asked for. */
void outdated_note(const struct core_actions *turn, const struct newest_of *newest);
bool outdated_is(const struct core_actions *turn, size_t index, const struct newest_of *newest);

#endif
