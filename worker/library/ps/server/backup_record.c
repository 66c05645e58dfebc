/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/ps/server/backup_record.h"

void backup_record_begin(struct backup_record *backup_record, const struct task_backed *recorded)
{
    *backup_record = (struct backup_record){
        .sent = {.by = recorded->by}, .counted = recorded->by, .recorded = true};
}

bool backup_record_update(struct backup_record *backup_record, uint64_t with)
{
    bool other = with != 0 && backup_record->counted != 0 && backup_record->counted != with;
    uint64_t by = other ? 0 : with;
    if (backup_record->sent.by == by) {
        return false;
    }
    backup_record->sent.number++;
    backup_record->sent.by = by;
    backup_record->recorded = false;
    if (by != 0) {
        backup_record->counted = by;
    }
    return true;
}

void backup_record_confirmed(
    struct backup_record *backup_record, const struct task_backed *recorded)
{
    if (!backup_record->recorded && recorded->number == backup_record->sent.number) {
        backup_record->recorded = true;
        backup_record->counted = backup_record->sent.by;
    } else if (backup_record->recorded && recorded->number < backup_record->sent.number) {
        backup_record->recorded = false;
        backup_record->counted = recorded->by != 0 ? recorded->by : backup_record->counted;
    }
}
