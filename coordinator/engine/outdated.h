/* SPDX-License-Identifier: Apache-2.0
 * Which messages of a turn a newer one outdates: a newer release of the same job has everything of
 * an older one, and so has a newer list of its members to the same tasks, or to all. Pure. */
#ifndef CADRE_COORDINATOR_ENGINE_OUTDATED_H
#define CADRE_COORDINATOR_ENGINE_OUTDATED_H

#include "coordinator/core/core.h"

/* The newest messages of a job in this turn, by their index. */
struct newest_messages {
    struct newest_message {
        size_t action;
        struct generation generation;
    } release, members, members_of_chief; /* to all of a kind; to the chief, alone or not */
};

/* The entry of a job; NULL: none, and none of its messages is outdated. */
struct newest_of {
    struct newest_messages *(*find)(void *user, struct job_id job);
    void *user;
};

/* Whether the action is this message. */
bool outdated_is_message(const struct core_action *action, enum core_message message);
/* Reads the whole turn, before outdated_is is called for its first action. */
void outdated_note(const struct core_actions *turn, const struct newest_of *newest);
/* Whether the action at `index` is outdated. */
bool outdated_is(const struct core_actions *turn, size_t index, const struct newest_of *newest);

#endif
