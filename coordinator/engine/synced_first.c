/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/synced_first.h"

bool synced_first_records(const struct core_actions *turn)
{
    bool records = false;
    for (size_t i = 0; i < turn->count && !records; i++) {
        const struct core_action *action = &turn->items[i];
        records =
            action->type == CORE_ACTION_RECORD && (action->record.type == CORE_RECORD_TASK_EXIT ||
                                                      action->record.type == CORE_RECORD_QUEUED);
    }
    return records;
}

bool synced_first_tells(const struct core_actions *turn)
{
    bool tells = false;
    for (size_t i = 0; i < turn->count && !tells; i++) {
        enum core_action_type type = turn->items[i].type;
        tells = type == CORE_ACTION_STOP_TASK || type == CORE_ACTION_FORGET_JOB;
    }
    return tells;
}
