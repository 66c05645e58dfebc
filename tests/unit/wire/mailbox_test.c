/* SPDX-License-Identifier: Apache-2.0
 * A mailbox gives the newest message whole and in the order of the frames, whatever its writer
 * does; its messages and limits are those of the frames; and the last task that comes knows that it
 * is. */
#include "common/wire/mailbox.h"

#include <pthread.h>
#include <string.h>

#include "common/base/thread.h"
#include "common/wire/wire.h"
#include "tests/lib/test.h"
#include "tests/unit/wire/samples.h"

#define WRITES 200000
#define TASKS  4
#define ROUNDS 2000

static struct cadre_error error;

/* As a frame has it. */
static struct wire_buffer packed_up(const struct task_arrive *arrive)
{
    struct wire_buffer buffer = {0};
    const struct task_up up = {.type = TASK_UP_ARRIVE, .arrive = *arrive};
    assert_ok(wire_pack_task_up(&up, &buffer, &error), &error);
    return buffer;
}

static void assert_same_arrival(const struct task_arrive *arrive)
{
    struct mailbox mailbox = {0};
    struct task_arrive got;
    uint64_t seen = 0;
    mailbox_write_arrival(&mailbox, 0, arrive);
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 0, &got), MAILBOX_MESSAGE);
    struct wire_buffer expected = packed_up(arrive);
    struct wire_buffer packed = packed_up(&got);
    assert_int_equal(packed.size, expected.size);
    assert_memory_equal(packed.bytes, expected.bytes, packed.size);
    wire_buffer_free(&expected);
    wire_buffer_free(&packed);
}

static void messages_are_those_of_frames(void **state)
{
    (void)state;
    struct task_arrive bare = {.generation = {1, 0}};
    struct task_arrive unprovable = sample_arrive.arrive;
    unprovable.consumption.provable = false;
    unprovable.verified.digest = 0;
    assert_same_arrival(&sample_arrive.arrive);
    assert_same_arrival(&bare);
    assert_same_arrival(&unprovable);

    struct mailbox mailbox = {0};
    struct task_down got = {.type = TASK_DOWN_RELEASE};
    struct wire_buffer packed[2] = {{0}};
    uint64_t seen = 0;
    mailbox_write_release(&mailbox, 0, &sample_release.release);
    assert_int_equal(mailbox_read_release(&mailbox, &seen, 0, &got.release), MAILBOX_MESSAGE);
    assert_ok(wire_pack_task_down(&sample_release, &packed[0], &error), &error);
    assert_ok(wire_pack_task_down(&got, &packed[1], &error), &error);
    assert_int_equal(packed[0].size, packed[1].size);
    assert_memory_equal(packed[0].bytes, packed[1].bytes, packed[0].size);
    wire_buffer_free(&packed[0]);
    wire_buffer_free(&packed[1]);
}

/* Whether a frame with it is accepted. */
static bool frame_is_accepted(const struct task_arrive *arrive)
{
    struct wire_buffer packed = packed_up(arrive);
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct task_up up;
    bool accepted = wire_unpack_task_up(packed.bytes, packed.size, arena, &up, &error) == CADRE_OK;
    wire_arena_free(arena);
    wire_buffer_free(&packed);
    return accepted;
}

static bool mailbox_accepts(const struct task_arrive *arrive)
{
    struct mailbox mailbox = {0};
    struct task_arrive got;
    uint64_t seen = 0;
    mailbox_write_arrival(&mailbox, 0, arrive);
    enum mailbox_read read = mailbox_read_arrival(&mailbox, &seen, 0, &got);
    assert_true(read == MAILBOX_MESSAGE || read == MAILBOX_WRONG);
    return read == MAILBOX_MESSAGE;
}

static void limits_are_those_of_frames(void **state)
{
    (void)state;
    struct task_arrive bent[16];
    size_t count = 0;
    for (size_t i = 0; i < 16; i++) {
        bent[i] = sample_arrive.arrive;
    }
    bent[count++].generation.number = 0;
    bent[count++].up_to = LIMIT_POSITION + 1;
    bent[count].applied = bent[count].up_to + 1;
    count++;
    bent[count++].wanted = LIMIT_POSITION + 1;
    bent[count++].cursor.stream = STREAM_ANY;
    bent[count].cursor.first = bent[count].cursor.begin + 1;
    count++;
    bent[count++].cursor.begin = LIMIT_POSITION + 1;
    bent[count++].cursor.steps = LIMIT_POSITION + 1;
    bent[count++].consumption.steps = LIMIT_POSITION + 1;
    bent[count++].consumption.samples = LIMIT_POSITION + 1;
    bent[count].consumption.provable = true;
    bent[count++].consumption.files = CONSUMED_FILES_ALL + 1;
    bent[count++].verified.position = LIMIT_POSITION + 1;
    assert_true(frame_is_accepted(&sample_arrive.arrive));
    for (size_t i = 0; i < count; i++) {
        assert_false(frame_is_accepted(&bent[i]));
        assert_false(mailbox_accepts(&bent[i]));
    }
}

/* Whatever a program writes there: nothing but arrivals within their limits comes out. */
static void wild_numbers_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAILBOX_NUMBERS; i++) {
        struct mailbox mailbox = {0};
        struct task_arrive got;
        uint64_t seen = 0;
        mailbox_write_arrival(&mailbox, 0, &sample_arrive.arrive);
        atomic_store(&mailbox.messages[1].numbers[i], UINT64_MAX);
        enum mailbox_read read = mailbox_read_arrival(&mailbox, &seen, 0, &got);
        assert_true(read == MAILBOX_WRONG || frame_is_accepted(&got));
    }
}

static void the_order_is_that_of_the_frames(void **state)
{
    (void)state;
    struct mailbox mailbox = {0};
    struct task_arrive got;
    uint64_t seen = 0;
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 0, &got), MAILBOX_EMPTY);
    mailbox_write_arrival(&mailbox, 2, &sample_arrive.arrive);
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 1, &got), MAILBOX_EMPTY);
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 2, &got), MAILBOX_MESSAGE);
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 2, &got), MAILBOX_EMPTY); /* once */
    mailbox_write_arrival(&mailbox, 2, &sample_arrive.arrive);
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 3, &got), MAILBOX_EMPTY); /* too late */
    mailbox_write_arrival(&mailbox, 2, &sample_arrive.arrive);
    struct task_arrive newer = sample_arrive.arrive;
    newer.wanted++;
    mailbox_write_arrival(&mailbox, 2, &newer);
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 2, &got), MAILBOX_MESSAGE);
    assert_int_equal(got.wanted, newer.wanted);
}

static void a_half_written_message_hides_none(void **state)
{
    (void)state;
    struct mailbox mailbox = {0};
    struct task_arrive got;
    uint64_t seen = 0;
    mailbox_write_arrival(&mailbox, 0, &sample_arrive.arrive); /* serial 1: messages[1] */
    atomic_store(&mailbox.messages[0].frames, 7);
    atomic_store(&mailbox.messages[0].numbers[0], UINT64_MAX);
    assert_int_equal(mailbox_read_arrival(&mailbox, &seen, 0, &got), MAILBOX_MESSAGE);
    assert_int_equal(got.up_to, sample_arrive.arrive.up_to);
}

static void *write_often(void *user)
{
    struct mailbox *mailbox = user;
    for (uint64_t n = 1; n <= WRITES; n++) {
        uint64_t numbers[MAILBOX_NUMBERS];
        for (size_t i = 0; i < MAILBOX_NUMBERS; i++) {
            numbers[i] = n;
        }
        mailbox_write(mailbox, 0, numbers);
    }
    return NULL;
}

static void messages_are_read_whole(void **state)
{
    (void)state;
    static struct mailbox mailbox;
    pthread_t writer;
    uint64_t seen = 0;
    uint64_t newest = 0;
    assert_int_equal(thread_start(&writer, write_often, &mailbox), 0);
    while (newest < WRITES) {
        uint64_t numbers[MAILBOX_NUMBERS];
        if (mailbox_read(&mailbox, &seen, 0, numbers) != MAILBOX_MESSAGE) {
            continue;
        }
        assert_true(numbers[0] > newest);
        newest = numbers[0];
        assert_int_equal(seen, newest);
        for (size_t i = 1; i < MAILBOX_NUMBERS; i++) {
            assert_int_equal(numbers[i], newest);
        }
    }
    pthread_join(writer, NULL);
}

static void one_that_stands_behind_is_waited_for(void **state)
{
    (void)state;
    struct mailbox mailboxes[3] = {0};
    struct mailbox_marks at[4];
    for (uint64_t i = 0; i < 4; i++) {
        at[i] = (struct mailbox_marks){.generation = 1, .up_to = 5 + i, .applied = 4 + i};
    }
    mailbox_set_marks(&mailboxes[0], &at[0]);
    mailbox_set_marks(&mailboxes[1], &at[1]); /* from at[0], where 0 still is */
    assert_false(mailbox_is_last(mailboxes, 3, 1, &at[0]));
    mailbox_set_marks(&mailboxes[0], &at[1]);
    assert_true(mailbox_is_last(mailboxes, 3, 0, &at[0]));
    mailbox_set_marks(&mailboxes[1], &at[3]); /* the least of all has not moved */
    assert_false(mailbox_is_last(mailboxes, 3, 1, &at[1]));
    struct mailbox_marks other = at[0];
    other.generation = 2; /* of another generation: it does not count */
    mailbox_set_marks(&mailboxes[0], &other);
    assert_true(mailbox_is_last(mailboxes, 3, 1, &at[1]));
    struct mailbox_marks run = at[3];
    run.begin = 8; /* it stands there, but for the run */
    run.generation = 1;
    mailbox_set_marks(&mailboxes[0], &run);
    assert_true(mailbox_is_last(mailboxes, 3, 1, &at[3]));
}

static struct mailbox met[TASKS];
static pthread_barrier_t begin;
static atomic_uint last_ones[ROUNDS];

static void *come(void *user)
{
    uint32_t own = (uint32_t)(uintptr_t)user;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct mailbox_marks before = {.generation = 1, .up_to = round, .applied = round};
        struct mailbox_marks now = {.generation = 1, .up_to = round + 1, .applied = round + 1};
        pthread_barrier_wait(&begin);
        mailbox_set_marks(&met[own], &now);
        if (mailbox_is_last(met, TASKS, own, &before)) {
            atomic_fetch_add(&last_ones[round], 1);
        }
    }
    return NULL;
}

static void of_all_that_come_one_is_the_last(void **state)
{
    (void)state;
    pthread_t threads[TASKS];
    struct mailbox_marks start = {.generation = 1};
    pthread_barrier_init(&begin, NULL, TASKS);
    for (uint32_t i = 0; i < TASKS; i++) {
        mailbox_set_marks(&met[i], &start);
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        assert_int_equal(thread_start(&threads[i], come, (void *)(uintptr_t)i), 0);
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&begin);
    for (size_t round = 0; round < ROUNDS; round++) {
        assert_true(atomic_load(&last_ones[round]) >= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_those_of_frames),
        cmocka_unit_test(limits_are_those_of_frames),
        cmocka_unit_test(wild_numbers_are_refused),
        cmocka_unit_test(the_order_is_that_of_the_frames),
        cmocka_unit_test(a_half_written_message_hides_none),
        cmocka_unit_test(messages_are_read_whole),
        cmocka_unit_test(one_that_stands_behind_is_waited_for),
        cmocka_unit_test(of_all_that_come_one_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
