/* SPDX-License-Identifier: Apache-2.0
 * Frames come out whole however the bytes come in; the preamble tells versions and strangers apart.
 */
#include "common/wire/frame.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "tests/unit/wire/samples.h"

static struct cadre_error error;

static void preambles(void **state)
{
    (void)state;
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    frame_preamble_write(preamble);
    assert_memory_equal(preamble, "CADRE\0\10\0", 8);
    assert_ok(frame_preamble_check(preamble, "the daemon", &error), &error);
    preamble[7] = 2;
    assert_error(frame_preamble_check(preamble, "the daemon", &error), CADRE_FAILED_PRECONDITION,
        &error, "the daemon has version 520 of the frames");
    assert_non_null(strstr(error.text, "version 8;"));
    assert_non_null(strstr(error.text, "rebuild the program"));
    assert_error(frame_preamble_check((const uint8_t *)"GET / HT", "the program", &error),
        CADRE_INVALID_ARGUMENT, &error, "the program sends no frames of Cadre");
}

static void consumption(struct frame_reader *reader, const uint8_t *bytes, size_t size)
{
    uint8_t *room = frame_reader_room(reader, size > 0 ? size : 1);
    assert_non_null(room);
    if (size > 0) {
        memcpy(room, bytes, size);
    }
    frame_reader_commit(reader, size);
}

/* 200 frames of different sizes; returns how many came out. */
static void pack_many(struct wire_buffer *buffer)
{
    for (size_t i = 0; i < 100; i++) {
        struct task_up up = sample_arrive;
        up.arrive.up_to = (uint64_t)i * i * i + 1000;
        assert_ok(frame_pack_task_up(&up, buffer, &error), &error);
        assert_ok(frame_pack_task_down(&(struct task_down){.type = TASK_DOWN_ABORT,
                                           .generation = {1, i},
                                           .reason = &"a reason for the abort"[i % 20]},
                      buffer, &error),
            &error);
    }
}

static size_t drain(struct frame_reader *reader, size_t done, struct wire_arena *arena)
{
    const uint8_t *payload;
    size_t size;
    cadre_status status;
    while ((status = frame_reader_next(reader, &payload, &size, &error)) == CADRE_OK) {
        wire_arena_reset(arena);
        if (done % 2 == 0) {
            struct task_up up;
            size_t i = done / 2;
            assert_ok(wire_unpack_task_up(payload, size, arena, &up, &error), &error);
            assert_int_equal(up.arrive.up_to, (uint64_t)i * i * i + 1000);
        } else {
            struct task_down down;
            assert_ok(wire_unpack_task_down(payload, size, arena, &down, &error), &error);
            assert_int_equal(down.generation.nonce, done / 2);
        }
        done++;
    }
    assert_int_equal(status, CADRE_PENDING);
    return done;
}

static void frames_come_out_whole(void **state)
{
    (void)state;
    struct wire_buffer sent = {0};
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    assert_non_null(arena);
    pack_many(&sent);
    struct prng prng = {.state = 7};
    for (size_t round = 0; round < 50; round++) {
        /* Round 0 feeds single bytes, round 1 everything at once, the others random cuts. */
        struct frame_reader reader = {0};
        size_t done = 0;
        for (size_t at = 0; at < sent.size;) {
            size_t left = sent.size - at;
            size_t size = round == 0 ? 1 : round == 1 ? left : prng_uniform(&prng, 300);
            size = size < left ? size : left;
            consumption(&reader, sent.bytes + at, size);
            at += size;
            /* Sometimes let frames pile up. */
            if (at == sent.size || prng_chance(&prng, 1, 2)) {
                done = drain(&reader, done, arena);
            }
        }
        assert_int_equal(done, 200);
        assert_int_equal(reader.taken, reader.buffer.size);
        frame_reader_free(&reader);
    }
    wire_arena_free(arena);
    wire_buffer_free(&sent);
}

static void an_empty_frame_is_a_frame(void **state)
{
    (void)state;
    struct frame_reader reader = {0};
    const uint8_t *payload;
    size_t size = 1;
    consumption(&reader, (const uint8_t *)"\0\0\0", 3);
    assert_int_equal(frame_reader_next(&reader, &payload, &size, &error), CADRE_PENDING);
    consumption(&reader, (const uint8_t *)"\0", 1);
    assert_ok(frame_reader_next(&reader, &payload, &size, &error), &error);
    assert_int_equal(size, 0);
    frame_reader_free(&reader);
}

static void wrong_lengths_are_refused_at_once(void **state)
{
    (void)state;
    struct frame_reader reader = {0};
    const uint8_t *payload;
    size_t size;
    /* 4 MiB is allowed and waited for, one byte more is not. */
    consumption(&reader, (const uint8_t *)"\x00\x00\x40\x00", 4);
    assert_int_equal(frame_reader_next(&reader, &payload, &size, &error), CADRE_PENDING);
    frame_reader_free(&reader);
    consumption(&reader, (const uint8_t *)"\x01\x00\x40\x00", 4);
    assert_error(frame_reader_next(&reader, &payload, &size, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "a frame claims 4194305 bytes; at most 4194304");
    frame_reader_free(&reader);
    consumption(&reader, (const uint8_t *)"HTTP", 4);
    assert_error(frame_reader_next(&reader, &payload, &size, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "close the connection");
    frame_reader_free(&reader);
}

/* A frame that cannot be packed leaves what was there before. */
static void a_failed_frame_leaves_no_trace(void **state)
{
    (void)state;
    struct wire_buffer buffer = {0};
    assert_ok(frame_pack_task_up(&sample_hello, &buffer, &error), &error);
    size_t before = buffer.size;
    struct roster_entry *roster = calloc(LIMIT_TASKS_PER_JOB, sizeof *roster);
    char *address = malloc(1024);
    assert_true(roster != NULL && address != NULL);
    memset(address, 'x', 1023);
    address[1023] = '\0';
    for (size_t i = 0; i < LIMIT_TASKS_PER_JOB; i++) {
        roster[i].mesh_address = address;
    }
    struct task_down down = sample_plan;
    down.plan.roster = roster;
    down.plan.roster_count = LIMIT_TASKS_PER_JOB;
    assert_error(frame_pack_task_down(&down, &buffer, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "TaskDown would be ");
    assert_int_equal(buffer.size, before);
    free(address);
    free(roster);
    wire_buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preambles),
        cmocka_unit_test(frames_come_out_whole),
        cmocka_unit_test(an_empty_frame_is_a_frame),
        cmocka_unit_test(wrong_lengths_are_refused_at_once),
        cmocka_unit_test(a_failed_frame_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
