/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/ps/backing.h"

void backing_begin(struct backing *backing, const struct task_backed *recorded)
{
    *backing =
        (struct backing){.said = {.by = recorded->by}, .counted = recorded->by, .recorded = true};
}

bool backing_consider(struct backing *backing, uint64_t with)
{
    bool other = with != 0 && backing->counted != 0 && backing->counted != with;
    uint64_t by = other ? 0 : with;
    if (backing->said.by == by) {
        return false;
    }
    backing->said.number++;
    backing->said.by = by;
    backing->recorded = false;
    if (by != 0) {
        backing->counted = by;
    }
    return true;
}

void backing_heard(struct backing *backing, const struct task_backed *recorded)
{
    if (!backing->recorded && recorded->number == backing->said.number) {
        backing->recorded = true;
        backing->counted = backing->said.by;
    }
}

bool backing_allows(const struct backing *backing, uint64_t with)
{
    return backing->counted == 0 || backing->counted == with;
}
