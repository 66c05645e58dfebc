/* SPDX-License-Identifier: Apache-2.0
 * Two messages in turn: the writer fills the one that the serial does not name, then names it. A
 * reader whose serial did not change meanwhile has read a whole message: that one is not filled
 * before the other one was named. Orders are of each access, and not by fences, which the thread
 * sanitizer does not know. */
#include "common/wire/mailbox.h"

/* A writer that is not hostile writes hardly ever while a message is copied. */
#define READ_TRIES 8

void mailbox_write(
    struct mailbox *mailbox, uint64_t frames, const uint64_t numbers[MAILBOX_NUMBERS])
{
    uint64_t serial = atomic_load_explicit(&mailbox->serial, memory_order_relaxed) + 1;
    struct mailbox_message *message = &mailbox->messages[serial % 2];
    atomic_store_explicit(&message->frames, frames, memory_order_release);
    for (size_t i = 0; i < MAILBOX_NUMBERS; i++) {
        atomic_store_explicit(&message->numbers[i], numbers[i], memory_order_release);
    }
    atomic_store_explicit(&mailbox->serial, serial, memory_order_release);
}

enum mailbox_read mailbox_read(const struct mailbox *mailbox, uint64_t *seen, uint64_t frames,
    uint64_t numbers[MAILBOX_NUMBERS])
{
    for (int tries = 0; tries < READ_TRIES; tries++) {
        uint64_t serial = atomic_load_explicit(&mailbox->serial, memory_order_acquire);
        if (serial == *seen) {
            return MAILBOX_EMPTY;
        }
        const struct mailbox_message *message = &mailbox->messages[serial % 2];
        uint64_t before = atomic_load_explicit(&message->frames, memory_order_acquire);
        for (size_t i = 0; i < MAILBOX_NUMBERS; i++) {
            numbers[i] = atomic_load_explicit(&message->numbers[i], memory_order_acquire);
        }
        if (atomic_load_explicit(&mailbox->serial, memory_order_acquire) != serial) {
            continue;
        }
        if (before > frames) {
            return MAILBOX_EMPTY;
        }
        *seen = serial;
        return before == frames ? MAILBOX_MESSAGE : MAILBOX_EMPTY;
    }
    return MAILBOX_CHANGED;
}

void mailbox_set_marks(struct mailbox *mailbox, const struct mailbox_marks *marks)
{
    atomic_store(&mailbox->generation, marks->generation);
    atomic_store(&mailbox->up_to, marks->up_to);
    atomic_store(&mailbox->applied, marks->applied);
    atomic_store(&mailbox->begin, marks->begin);
}

/* What is half set counts as new, so that its owner, who looks afterwards, is not relied on. */
static bool stands_there(const struct mailbox *mailbox, const struct mailbox_marks *marks)
{
    return atomic_load(&mailbox->generation) == marks->generation &&
           atomic_load(&mailbox->up_to) <= marks->up_to &&
           atomic_load(&mailbox->applied) <= marks->applied &&
           atomic_load(&mailbox->begin) <= marks->begin;
}

bool mailbox_is_last(const struct mailbox *mailboxes, uint32_t count, uint32_t own,
    const struct mailbox_marks *before)
{
    for (uint32_t i = 1; i < count; i++) {
        if (stands_there(&mailboxes[(own + i) % count], before)) {
            return false;
        }
    }
    return true;
}
