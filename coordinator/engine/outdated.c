/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/outdated.h"

bool outdated_is_message(const struct core_action *action, enum core_message message)
{
    return action->type == CORE_ACTION_NOTIFY_JOB && action->notify_job.message == message;
}

/* NULL: the action's message is never outdated. */
static struct newest_messages *newest_of_action(
    const struct newest_of *newest, const struct core_action *action)
{
    bool release = outdated_is_message(action, CORE_MESSAGE_RELEASE) && !action->notify_job.one;
    if (!release && !outdated_is_message(action, CORE_MESSAGE_MEMBERS)) {
        return NULL;
    }
    return newest->find(newest->user, action->notify_job.job);
}

static bool to_chief(const struct core_action *action)
{
    return action->notify_job.one && action->notify_job.slot == 0;
}

void outdated_note(const struct core_actions *turn, const struct newest_of *newest)
{
    for (size_t i = 0; i < turn->count; i++) {
        struct newest_messages *newest_sent = newest_of_action(newest, &turn->items[i]);
        if (newest_sent != NULL) {
            *newest_sent = (struct newest_messages){0}; /* of the last turn */
        }
    }
    for (size_t i = 0; i < turn->count; i++) {
        const struct core_action *action = &turn->items[i];
        struct newest_messages *newest_sent = newest_of_action(newest, action);
        const struct newest_message sent = {i, action->notify_job.generation};
        if (newest_sent == NULL) {
            continue;
        }
        if (outdated_is_message(action, CORE_MESSAGE_RELEASE)) {
            newest_sent->release = sent;
        } else if (!action->notify_job.one) {
            newest_sent->members = sent;
            newest_sent->members_of_chief = sent;
        } else if (to_chief(action)) {
            newest_sent->members_of_chief = sent;
        }
    }
}

bool outdated_is(const struct core_actions *turn, size_t index, const struct newest_of *newest)
{
    const struct core_action *action = &turn->items[index];
    const struct newest_messages *newest_sent = newest_of_action(newest, action);
    if (newest_sent == NULL) {
        return false;
    }
    const struct newest_message *sent = outdated_is_message(action, CORE_MESSAGE_RELEASE)
                                            ? &newest_sent->release
                                        : to_chief(action) ? &newest_sent->members_of_chief
                                                           : &newest_sent->members;
    return sent->action > index &&
           generation_equal(sent->generation, action->notify_job.generation);
}
