/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/outdated.h"

bool outdated_is_tell(const struct core_action *action, enum core_tell tell)
{
    return action->type == CORE_ACTION_TELL_JOB && action->tell_job.tell == tell;
}

/* NULL: what the action tells is never outdated. */
static struct newest_words *words_of(
    const struct newest_of *newest, const struct core_action *action)
{
    bool release = outdated_is_tell(action, CORE_TELL_RELEASE) && !action->tell_job.one;
    if (!release && !outdated_is_tell(action, CORE_TELL_MEMBERS)) {
        return NULL;
    }
    return newest->find(newest->user, action->tell_job.job);
}

static bool to_chief(const struct core_action *action)
{
    return action->tell_job.one && action->tell_job.slot == 0;
}

void outdated_note(const struct core_actions *turn, const struct newest_of *newest)
{
    for (size_t i = 0; i < turn->count; i++) {
        struct newest_words *words = words_of(newest, &turn->items[i]);
        if (words != NULL) {
            *words = (struct newest_words){0}; /* of the last turn */
        }
    }
    for (size_t i = 0; i < turn->count; i++) {
        const struct core_action *action = &turn->items[i];
        struct newest_words *words = words_of(newest, action);
        const struct newest_word told = {i, action->tell_job.generation};
        if (words == NULL) {
            continue;
        }
        if (outdated_is_tell(action, CORE_TELL_RELEASE)) {
            words->release = told;
        } else if (!action->tell_job.one) {
            words->members = told;
            words->members_of_chief = told;
        } else if (to_chief(action)) {
            words->members_of_chief = told;
        }
    }
}

bool outdated_is(const struct core_actions *turn, size_t index, const struct newest_of *newest)
{
    const struct core_action *action = &turn->items[index];
    const struct newest_words *words = words_of(newest, action);
    if (words == NULL) {
        return false;
    }
    const struct newest_word *told = outdated_is_tell(action, CORE_TELL_RELEASE) ? &words->release
                                     : to_chief(action) ? &words->members_of_chief
                                                        : &words->members;
    return told->action > index && generation_equal(told->generation, action->tell_job.generation);
}
