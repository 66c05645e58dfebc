/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/restore.h"

#include <string.h>

void restore_note_stream(
    struct restore_streams *streams, const struct cursor *cursor, uint64_t applied)
{
    if (cursor->stream == 0) {
        return;
    }
    size_t at = 0;
    while (at < streams->count && streams->items[at].stream < cursor->stream) {
        at++;
    }
    struct stream_position *known = &streams->items[at];
    bool found = at < streams->count && known->stream == cursor->stream;
    if (!found && streams->count == LIMIT_STREAMS) {
        return;
    }
    if (!found) {
        memmove(known + 1, known, (streams->count - at) * sizeof *known);
        streams->count++;
    }
    if (!found || known->epoch < cursor->epoch) {
        *known = (struct stream_position){.stream = cursor->stream, .epoch = cursor->epoch};
    }
    if (known->epoch == cursor->epoch) {
        known->steps = cursor->steps != 0 ? cursor->steps : known->steps;
        known->applied = applied > known->applied ? applied : known->applied;
    }
}

void restore_note_rank(struct core_restore_task *tasks, size_t count, uint32_t slot,
    uint64_t incarnation, uint32_t rank)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tasks[middle].slot < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < count && tasks[low].slot == slot && tasks[low].incarnation == incarnation) {
        tasks[low].rank = rank;
    }
}

void restore_note_consumed(const struct core_restore_job *restore, const struct cursor *cursor,
    uint64_t steps, uint64_t *consumed)
{
    uint64_t position = cursor->first + steps;
    if (cursor->begin >= restore->resume && position > *consumed) {
        *consumed = position;
    }
}

void restore_note_verified(struct core_restore_job *restore)
{
    const struct core_checkpoint *saved = &restore->checkpoint;
    bool newer = restore->verified.digest == 0 || saved->position > restore->verified.position;
    if (restore->has_checkpoint && saved->digest != 0 && newer) {
        restore->verified = (struct verified){.position = saved->position, .digest = saved->digest};
    }
}

uint64_t restore_committed(
    const struct core_restore_job *restore, uint64_t consumed, uint64_t ending)
{
    if (restore->done) {
        return restore->done_position;
    }
    uint64_t committed = consumed > ending ? consumed : ending;
    return committed > restore->resume ? committed : restore->resume;
}
