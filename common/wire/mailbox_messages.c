/* SPDX-License-Identifier: Apache-2.0
 * Arrivals and releases as numbers. The limits are those of their tables (table_task_up.c,
 * table_task_down.c); a test compares both ways. */
#include "common/wire/mailbox.h"

enum {
    ARRIVE_GENERATION,
    ARRIVE_NONCE,
    ARRIVE_UP_TO,
    ARRIVE_APPLIED,
    ARRIVE_WANTED,
    ARRIVE_STREAM,
    ARRIVE_EPOCH,
    ARRIVE_FIRST,
    ARRIVE_BEGIN,
    ARRIVE_STEPS,
    ARRIVE_NESTED,
    ARRIVE_CONSUMED_STEPS,
    ARRIVE_CONSUMED_SAMPLES,
    ARRIVE_CONSUMED, /* two */
    ARRIVE_EXPECTED = ARRIVE_CONSUMED + 2,
    ARRIVE_PROVABLE = ARRIVE_EXPECTED + 2,
    ARRIVE_FILES,
    ARRIVE_VERIFIED_POSITION,
    ARRIVE_VERIFIED_DIGEST,
    ARRIVE_NUMBERS
};

enum {
    RELEASE_GENERATION,
    RELEASE_NONCE,
    RELEASE_UP_TO,
    RELEASE_CHECKPOINT_AT,
    RELEASE_HALT_AT,
    RELEASE_HALT_KIND,
    RELEASE_HALT_STREAM,
    RELEASE_PUBLISHED,
    RELEASE_NUMBERS
};

_Static_assert(ARRIVE_NUMBERS <= MAILBOX_NUMBERS, "an arrival must fit a mailbox");
_Static_assert(RELEASE_NUMBERS <= MAILBOX_NUMBERS, "a release must fit a mailbox");

void mailbox_write_arrival(
    struct mailbox *mailbox, uint64_t frames, const struct task_arrive *arrive)
{
    const struct cursor *cursor = &arrive->cursor;
    const struct consumption *consumption = &arrive->consumption;
    const uint64_t numbers[MAILBOX_NUMBERS] = {
        [ARRIVE_GENERATION] = arrive->generation.number,
        [ARRIVE_NONCE] = arrive->generation.nonce,
        [ARRIVE_UP_TO] = arrive->up_to,
        [ARRIVE_APPLIED] = arrive->applied,
        [ARRIVE_WANTED] = arrive->wanted,
        [ARRIVE_STREAM] = cursor->stream,
        [ARRIVE_EPOCH] = cursor->epoch,
        [ARRIVE_FIRST] = cursor->first,
        [ARRIVE_BEGIN] = cursor->begin,
        [ARRIVE_STEPS] = cursor->steps,
        [ARRIVE_NESTED] = cursor->nested,
        [ARRIVE_CONSUMED_STEPS] = consumption->steps,
        [ARRIVE_CONSUMED_SAMPLES] = consumption->samples,
        [ARRIVE_CONSUMED] = consumption->consumed[0],
        [ARRIVE_CONSUMED + 1] = consumption->consumed[1],
        [ARRIVE_EXPECTED] = consumption->provable ? consumption->expected[0] : 0,
        [ARRIVE_EXPECTED + 1] = consumption->provable ? consumption->expected[1] : 0,
        [ARRIVE_PROVABLE] = consumption->provable,
        [ARRIVE_FILES] = consumption->provable ? (uint64_t)consumption->files : 0,
        [ARRIVE_VERIFIED_POSITION] = arrive->verified.digest != 0 ? arrive->verified.position : 0,
        [ARRIVE_VERIFIED_DIGEST] = arrive->verified.digest,
    };
    mailbox_write(mailbox, frames, numbers);
}

static bool is_arrival(const uint64_t n[MAILBOX_NUMBERS])
{
    bool watermarks = n[ARRIVE_GENERATION] != 0 && n[ARRIVE_UP_TO] <= LIMIT_POSITION &&
                      n[ARRIVE_APPLIED] <= n[ARRIVE_UP_TO] && n[ARRIVE_WANTED] <= LIMIT_POSITION;
    bool cursor = n[ARRIVE_STREAM] < STREAM_ANY && n[ARRIVE_BEGIN] <= LIMIT_POSITION &&
                  n[ARRIVE_FIRST] <= n[ARRIVE_BEGIN] && n[ARRIVE_STEPS] <= LIMIT_POSITION &&
                  n[ARRIVE_NESTED] <= 1;
    bool consumption = n[ARRIVE_CONSUMED_STEPS] <= LIMIT_POSITION &&
                       n[ARRIVE_CONSUMED_SAMPLES] <= LIMIT_POSITION && n[ARRIVE_PROVABLE] <= 1 &&
                       n[ARRIVE_FILES] <= (n[ARRIVE_PROVABLE] != 0 ? CONSUMED_FILES_ALL : 0);
    return watermarks && cursor && consumption && n[ARRIVE_VERIFIED_POSITION] <= LIMIT_POSITION;
}

enum mailbox_read mailbox_read_arrival(
    const struct mailbox *mailbox, uint64_t *seen, uint64_t frames, struct task_arrive *ret_arrive)
{
    uint64_t n[MAILBOX_NUMBERS];
    enum mailbox_read read = mailbox_read(mailbox, seen, frames, n);
    if (read != MAILBOX_MESSAGE) {
        return read;
    }
    if (!is_arrival(n)) {
        return MAILBOX_WRONG;
    }
    *ret_arrive = (struct task_arrive){
        .generation = {.number = n[ARRIVE_GENERATION], .nonce = n[ARRIVE_NONCE]},
        .up_to = n[ARRIVE_UP_TO],
        .applied = n[ARRIVE_APPLIED],
        .wanted = n[ARRIVE_WANTED],
        .cursor = {.stream = (uint32_t)n[ARRIVE_STREAM],
            .epoch = n[ARRIVE_EPOCH],
            .first = n[ARRIVE_FIRST],
            .begin = n[ARRIVE_BEGIN],
            .steps = n[ARRIVE_STEPS],
            .nested = n[ARRIVE_NESTED] != 0},
        .consumption = {.steps = n[ARRIVE_CONSUMED_STEPS],
            .samples = n[ARRIVE_CONSUMED_SAMPLES],
            .consumed = {n[ARRIVE_CONSUMED], n[ARRIVE_CONSUMED + 1]},
            .expected = {n[ARRIVE_EXPECTED], n[ARRIVE_EXPECTED + 1]},
            .provable = n[ARRIVE_PROVABLE] != 0,
            .files = (enum consumed_files)n[ARRIVE_FILES]},
        .verified = {.position = n[ARRIVE_VERIFIED_POSITION], .digest = n[ARRIVE_VERIFIED_DIGEST]},
    };
    return MAILBOX_MESSAGE;
}

void mailbox_write_release(
    struct mailbox *mailbox, uint64_t frames, const struct task_release *release)
{
    bool halts = release->halt_at != POSITION_NONE;
    const uint64_t numbers[MAILBOX_NUMBERS] = {
        [RELEASE_GENERATION] = release->generation.number,
        [RELEASE_NONCE] = release->generation.nonce,
        [RELEASE_UP_TO] = release->up_to,
        [RELEASE_CHECKPOINT_AT] = release->checkpoint_at,
        [RELEASE_HALT_AT] = release->halt_at,
        [RELEASE_HALT_KIND] = halts ? (uint64_t)release->halt_kind : HALT_NONE,
        [RELEASE_HALT_STREAM] =
            halts && release->halt_kind == HALT_REGROUP ? release->halt_stream : STREAM_ANY,
        [RELEASE_PUBLISHED] = release->published,
    };
    mailbox_write(mailbox, frames, numbers);
}

static bool is_position_or_none(uint64_t position)
{
    return position <= LIMIT_POSITION || position == POSITION_NONE;
}

static bool is_release(const uint64_t n[MAILBOX_NUMBERS])
{
    bool halts = n[RELEASE_HALT_AT] != POSITION_NONE;
    bool kind = halts ? n[RELEASE_HALT_KIND] == HALT_REGROUP || n[RELEASE_HALT_KIND] == HALT_STOP
                      : n[RELEASE_HALT_KIND] == HALT_NONE;
    return n[RELEASE_GENERATION] != 0 && n[RELEASE_UP_TO] <= LIMIT_POSITION &&
           is_position_or_none(n[RELEASE_CHECKPOINT_AT]) &&
           is_position_or_none(n[RELEASE_HALT_AT]) && kind &&
           n[RELEASE_HALT_STREAM] <= STREAM_ANY && is_position_or_none(n[RELEASE_PUBLISHED]);
}

enum mailbox_read mailbox_read_release(const struct mailbox *mailbox, uint64_t *seen,
    uint64_t frames, struct task_release *ret_release)
{
    uint64_t n[MAILBOX_NUMBERS];
    enum mailbox_read read = mailbox_read(mailbox, seen, frames, n);
    if (read != MAILBOX_MESSAGE) {
        return read;
    }
    if (!is_release(n)) {
        return MAILBOX_WRONG;
    }
    *ret_release = (struct task_release){
        .generation = {.number = n[RELEASE_GENERATION], .nonce = n[RELEASE_NONCE]},
        .up_to = n[RELEASE_UP_TO],
        .checkpoint_at = n[RELEASE_CHECKPOINT_AT],
        .halt_at = n[RELEASE_HALT_AT],
        .halt_kind = (enum halt_kind)n[RELEASE_HALT_KIND],
        .halt_stream = (uint32_t)n[RELEASE_HALT_STREAM],
        .published = n[RELEASE_PUBLISHED],
    };
    return MAILBOX_MESSAGE;
}
