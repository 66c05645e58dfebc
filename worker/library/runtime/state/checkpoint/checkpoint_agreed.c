/* SPDX-License-Identifier: Apache-2.0
 * Digests of the states that were compared at the copy's position. There may be several, because
 * the program may change what no step writes, and save or step there again. Where none was compared
 * there, a later comparison proves that the chief's state was that of all, and its digest is known
 * where the copy was taken on demand. */
#include "worker/library/runtime/state/checkpoint/checkpoint.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

void checkpoint_agreed_begin(struct checkpointer *checkpointer, uint64_t held)
{
    checkpointer->agreed_count = 0;
    checkpointer->held = held;
}

bool checkpoint_agreed_on(const struct checkpointer *checkpointer, uint64_t digest)
{
    uint32_t count = checkpointer->agreed_count < CHECKPOINT_AGREED_MAX ? checkpointer->agreed_count
                                                                        : CHECKPOINT_AGREED_MAX;
    bool found = false;
    for (uint32_t i = 0; i < count && digest != 0; i++) {
        found |= checkpointer->agreed[i] == digest;
    }
    return found;
}

static void checkpoint_agreed_add(struct checkpointer *checkpointer, uint64_t digest)
{
    CADRE_ASSERT(digest != 0);
    checkpointer->agreed[checkpointer->agreed_count++ % CHECKPOINT_AGREED_MAX] = digest;
}

void checkpoint_agreed(const struct cadre_strategy *strategy, uint64_t position, uint64_t digest)
{
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    const struct checkpoint_copy *copy = &checkpointer->copy;
    struct task_part part;
    pthread_mutex_lock(&checkpointer->lock);
    if (copy->position == position) {
        checkpoint_agreed_add(checkpointer, digest);
    } else if (copy->position < position && checkpointer->agreed_count == 0 &&
               checkpointer->held != 0) {
        checkpoint_agreed_add(checkpointer, checkpointer->held);
    }
    bool news = !checkpointer->writing && checkpointer->written == copy->position &&
                !checkpointer->part.compared &&
                checkpoint_agreed_on(checkpointer, checkpointer->part.digest);
    checkpointer->part.compared |= news;
    part = checkpointer->part;
    pthread_mutex_unlock(&checkpointer->lock);
    if (news) {
        task_part(strategy->task, &part);
    }
}
