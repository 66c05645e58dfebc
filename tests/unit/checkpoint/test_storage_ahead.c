/* SPDX-License-Identifier: Apache-2.0
 * Reading an object ahead of its reader: the bytes, how many are read at once, jumps, failures. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "common/storage/ahead.h"
#include "tests/lib/test.h"
#include "tests/unit/checkpoint/memory_store.h"

#define PATH  "s3://bucket/large"
#define PIECE ((size_t)4 << 20)
#define BYTES (11 * PIECE + 3)
#define CHUNK ((size_t)3 << 20)

static char *content; /* of the object */

struct reading {
    struct storage_object *object;
    struct storage_ahead *ahead;
};

static int put_content(void **state)
{
    (void)state;
    struct prng prng = {.state = 7};
    struct cadre_error error = {0};
    memory_store_clear();
    content = malloc(BYTES);
    assert_non_null(content);
    for (size_t i = 0; i < BYTES; i++) {
        content[i] = (char)prng_uniform(&prng, 256);
    }
    assert_ok(storage_put(NULL, PATH, content, BYTES, &error), &error);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    memory_store_clear();
    free(content);
    return 0;
}

static struct reading begin(const char *path)
{
    struct reading reading;
    struct cadre_error error = {0};
    assert_ok(storage_open(NULL, path, &reading.object, &error), &error);
    assert_ok(storage_ahead_open(reading.object, &reading.ahead, &error), &error);
    return reading;
}

static void end(const struct reading *reading)
{
    storage_ahead_close(reading->ahead);
    storage_close(reading->object);
}

static void assert_read(const struct reading *reading, size_t at, size_t bytes)
{
    struct cadre_error error = {0};
    char *into = malloc(bytes + 1);
    assert_non_null(into);
    assert_ok(storage_ahead_read(reading->ahead, at, into, bytes, &error), &error);
    assert_memory_equal(into, content + at, bytes);
    free(into);
}

/* Each byte of it is asked for once. */
static void from_its_start_to_its_end(void **state)
{
    (void)state;
    memory_store.reads_wanted = 2;
    struct reading reading = begin(PATH);
    for (size_t at = 0; at < BYTES; at += CHUNK) {
        assert_read(&reading, at, BYTES - at < CHUNK ? BYTES - at : CHUNK);
    }
    assert_int_equal(memory_store.read_bytes, BYTES);
    assert_int_equal(memory_store.reads, 12);
    assert_in_range(memory_store.reads_at_once, 2, 8);
    end(&reading);
}

static void in_one_call(void **state)
{
    (void)state;
    struct reading reading = begin(PATH);
    assert_read(&reading, 0, BYTES);
    assert_int_equal(memory_store.read_bytes, BYTES);
    end(&reading);
}

/* What is far from the last place is read alone, and little of it for nothing. */
static void here_and_there(void **state)
{
    (void)state;
    static const size_t places[] = {9, 2, 7, 0, 10, 5, 1, 11, 3};
    struct reading reading = begin(PATH);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        assert_read(&reading, places[i] * PIECE + 1, 2);
    }
    end(&reading);
    assert_in_range(memory_store.reads, 9, 12);
}

static void it_is_closed_while_pieces_come(void **state)
{
    (void)state;
    struct reading reading = begin(PATH);
    assert_read(&reading, 0, 2 * PIECE + 1);
    end(&reading);
    assert_true(memory_store.reads >= 3);
}

/* The caller gets the failure of its own piece, as often as it asks. */
static void a_failure_comes_out(void **state)
{
    (void)state;
    char into[8];
    struct cadre_error error = {0};
    struct reading reading = begin(PATH);
    assert_read(&reading, 0, 8);
    assert_ok(storage_put(NULL, PATH, content, BYTES, &error), &error);
    for (int i = 0; i < 2; i++) {
        assert_error(storage_ahead_read(reading.ahead, 5 * PIECE, into, sizeof into, &error),
            CADRE_DATA_LOSS, &error, PATH " is another one now");
    }
    end(&reading);
}

static void behind_the_end(void **state)
{
    (void)state;
    char into[8];
    struct cadre_error error = {0};
    struct reading reading = begin(PATH);
    assert_error(storage_ahead_read(reading.ahead, BYTES - 7, into, sizeof into, &error),
        CADRE_OUT_OF_RANGE, &error, PATH);
    assert_error(storage_ahead_read(reading.ahead, UINT64_MAX, into, sizeof into, &error),
        CADRE_OUT_OF_RANGE, &error, PATH);
    assert_read(&reading, BYTES, 0);
    end(&reading);
}

static void a_small_one_is_read_as_it_is(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(storage_put(NULL, "s3://bucket/small", content, 100, &error), &error);
    struct reading reading = begin("s3://bucket/small");
    assert_read(&reading, 40, 60);
    assert_int_equal(memory_store.read_bytes, 60);
    end(&reading);
    storage_ahead_close(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, put_content, clear)
    const struct CMUnitTest tests[] = {TEST(from_its_start_to_its_end), TEST(in_one_call),
        TEST(here_and_there), TEST(it_is_closed_while_pieces_come), TEST(a_failure_comes_out),
        TEST(behind_the_end), TEST(a_small_one_is_read_as_it_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
