/* SPDX-License-Identifier: Apache-2.0
 * Questions and answers as frames: what is written is read again; what no task sends is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/neighbours/neighbour_wire.h"

#define MIB ((uint64_t)1 << 20)

static struct neighbour_ask ask_of(uint64_t offset, uint64_t count)
{
    struct neighbour_ask ask = {.size = 100 * MIB + 7, .offset = offset, .count = count};
    snprintf(ask.path, sizeof ask.path, "%s", "s3://bucket/a key");
    snprintf(ask.version, sizeof ask.version, "%s", "\"e-tag\"");
    return ask;
}

static bool read_again(const struct neighbour_ask *ask, struct neighbour_ask *ret_ask)
{
    struct frame frame;
    uint8_t name[NEIGHBOUR_NAME_BYTES];
    neighbour_ask_write(ask, 9, &frame, name);
    assert_int_equal(frame.id, 9);
    return neighbour_ask_expects(&frame) && neighbour_ask_read(&frame, name, ret_ask);
}

static void questions(void **state)
{
    (void)state;
    static const uint64_t good[][2] = {{0, 1}, {0, 4 * MIB}, {4 * MIB, 4 * MIB}, {4 * MIB - 1, 1},
        {96 * MIB + 3, 5}, {100 * MIB, 7}, {100 * MIB + 6, 1}};
    static const uint64_t wrong[][2] = {{0, 0}, {0, 4 * MIB + 1}, {4 * MIB - 1, 2}, {100 * MIB, 8},
        {100 * MIB + 7, 1}, {UINT64_MAX, 1}, {UINT64_MAX - 1, 4}, {1, UINT64_MAX}};
    struct neighbour_ask read;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct neighbour_ask ask = ask_of(good[i][0], good[i][1]);
        assert_true(read_again(&ask, &read));
        assert_memory_equal(&read, &ask, sizeof ask);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct neighbour_ask ask = ask_of(wrong[i][0], wrong[i][1]);
        assert_false(read_again(&ask, &read));
    }
}

/* Only objects of a store: never a file of the task's host. */
static void paths(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "/etc/passwd", "etc", "s3://", "s3://b", "s3://B_/x", "file:///etc/passwd", "s3://b/\xff"};
    struct neighbour_ask read;
    struct neighbour_ask ask = ask_of(0, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(ask.path, sizeof ask.path, "%s", wrong[i]);
        assert_false(read_again(&ask, &read));
    }
    snprintf(ask.path, sizeof ask.path, "%s", "https://example.com/data");
    assert_true(read_again(&ask, &read));
    ask.version[0] = '\0';
    assert_false(read_again(&ask, &read));
}

static void lengths(void **state)
{
    (void)state;
    const struct neighbour_ask ask = ask_of(0, 1);
    struct neighbour_ask read;
    struct frame frame;
    uint8_t name[NEIGHBOUR_NAME_BYTES];
    static const struct {
        uint64_t bytes;
        uint64_t path_bytes;
    } wrong[] = {{0, 0}, {10, 0}, {10, 10}, {10, 11}, {10, UINT64_MAX}, {UINT64_MAX, 17},
        {NEIGHBOUR_NAME_BYTES + 1, 17}, {NEIGHBOUR_NAME_BYTES, STORAGE_PATH_BYTES},
        {1 + STORAGE_VERSION_BYTES, 1}};
    neighbour_ask_write(&ask, 9, &frame, name);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct frame bad = frame;
        bad.bytes = wrong[i].bytes;
        bad.args[3] = wrong[i].path_bytes;
        assert_false(neighbour_ask_expects(&bad));
    }
    struct frame other = frame;
    other.kind = NEIGHBOUR_PIECE;
    assert_false(neighbour_ask_expects(&other));
    assert_true(neighbour_ask_expects(&frame));
    name[frame.bytes - 1] = '\0';
    assert_false(neighbour_ask_read(&frame, name, &read));
}

static void answers(void **state)
{
    (void)state;
    const struct neighbour_ask ask = ask_of(4 * MIB, MIB + 5);
    struct frame piece = {.kind = NEIGHBOUR_PIECE,
        .id = 3,
        .bytes = NEIGHBOUR_PIECE_BYTES,
        .args = {4 * MIB, UINT32_MAX}};
    const struct frame wait = {.kind = NEIGHBOUR_WAIT};
    struct frame refusal = {.kind = NEIGHBOUR_REFUSED, .code = CADRE_NOT_FOUND, .id = 3};
    assert_int_equal(neighbour_answer_read(&piece, &ask, 3, 4 * MIB), ANSWER_PIECE);
    assert_int_equal(neighbour_answer_read(&piece, &ask, 4, 4 * MIB), ANSWER_WRONG);
    assert_int_equal(
        neighbour_answer_read(&piece, &ask, 3, 4 * MIB + NEIGHBOUR_PIECE_BYTES), ANSWER_WRONG);
    piece.args[0] = 5 * MIB;
    assert_int_equal(neighbour_answer_read(&piece, &ask, 3, 5 * MIB), ANSWER_WRONG);
    piece.bytes = 5;
    assert_int_equal(neighbour_answer_read(&piece, &ask, 3, 5 * MIB), ANSWER_PIECE);
    piece.args[1] = (uint64_t)UINT32_MAX + 1;
    assert_int_equal(neighbour_answer_read(&piece, &ask, 3, 5 * MIB), ANSWER_WRONG);
    assert_int_equal(neighbour_answer_read(&wait, &ask, 3, 5 * MIB), ANSWER_WAIT);
    assert_int_equal(neighbour_answer_read(&refusal, &ask, 3, 5 * MIB), ANSWER_REFUSED);
    refusal.bytes = 1;
    assert_int_equal(neighbour_answer_read(&refusal, &ask, 3, 5 * MIB), ANSWER_WRONG);
    refusal.kind = NEIGHBOUR_WAIT;
    assert_int_equal(neighbour_answer_read(&refusal, &ask, 3, 5 * MIB), ANSWER_WRONG);
}

/* Any bytes: what is read as a question can be answered. */
static void any_bytes(void **state)
{
    (void)state;
    struct prng random = {.state = 5};
    uint64_t read_ones = 0;
    for (size_t turn = 0; turn < 200000; turn++) {
        const struct neighbour_ask ask =
            ask_of(prng_uniform(&random, 100 * MIB), 1 + prng_uniform(&random, MIB));
        struct neighbour_ask read;
        struct frame frame;
        uint8_t name[NEIGHBOUR_NAME_BYTES];
        neighbour_ask_write(&ask, turn, &frame, name);
        for (uint64_t i = prng_uniform(&random, 4); i > 0; i--) {
            uint8_t *at = prng_chance(&random, 1, 2) ? (uint8_t *)&frame : name;
            size_t size = at == name ? 40 : sizeof frame;
            at[prng_uniform(&random, size)] = (uint8_t)prng_next(&random);
        }
        if (neighbour_ask_expects(&frame) && neighbour_ask_read(&frame, name, &read)) {
            read_ones++;
            assert_true(read.offset + read.count <= read.size && read.count > 0);
            assert_true(read.path[0] != '\0' && read.version[0] != '\0');
            assert_true(neighbour_piece_bytes(&read, read.offset) <= NEIGHBOUR_PIECE_BYTES);
        }
    }
    assert_true(read_ones > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions),
        cmocka_unit_test(paths),
        cmocka_unit_test(lengths),
        cmocka_unit_test(answers),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
