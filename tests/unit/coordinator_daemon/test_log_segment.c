/* SPDX-License-Identifier: Apache-2.0
 * Pieces of logs as objects: their names and bytes, damaged ones, and which count when two
 * coordinators wrote at the same time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/logs/log_segment.h"
#include "tests/lib/test.h"

#define SEGMENTS_MAX 40

static struct log_segment segments[SEGMENTS_MAX];
static size_t count;

static int set_up(void **state)
{
    (void)state;
    count = 0;
    return 0;
}

static void put(uint64_t term, uint64_t incarnation, uint64_t base, uint64_t begin, uint64_t end)
{
    assert_in_range(count, 0, SEGMENTS_MAX - 1);
    segments[count++] = (struct log_segment){
        .term = term, .incarnation = incarnation, .base = base, .begin = begin, .end = end};
}

/* Arranges what was put: "term.incarnation:from-to ..." */
static void assert_arranged(const char *wanted)
{
    char text[1024] = "";
    size_t at = 0;
    count = log_segments_arrange(segments, count);
    for (size_t i = 0; i < count; i++) {
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s%llu.%llu:%llu-%llu", i > 0 ? " " : "",
                (unsigned long long)segments[i].term, (unsigned long long)segments[i].incarnation,
                (unsigned long long)segments[i].from, (unsigned long long)segments[i].to);
    }
    assert_string_equal(text, wanted);
}

static void a_name_says_which_it_is(void **state)
{
    (void)state;
    const struct log_segment segment = {
        .term = 3, .incarnation = 0xabc, .base = 100, .begin = 256, .end = UINT64_MAX};
    char name[LOG_SEGMENT_NAME_BYTES];
    struct log_segment read;
    log_segment_name(&segment, name);
    assert_string_equal(name, "0000000000000003-0000000000000abc-0000000000000064-"
                              "0000000000000100-ffffffffffffffff");
    assert_true(log_segment_parse(name, &read));
    assert_int_equal(read.term, 3);
    assert_int_equal(read.incarnation, 0xabc);
    assert_int_equal(read.base, 100);
    assert_int_equal(read.begin, 256);
    assert_int_equal(read.end, UINT64_MAX);
    assert_int_equal(read.from, 256);
    assert_int_equal(read.to, UINT64_MAX);
}

static void other_names_are_none(void **state)
{
    (void)state;
    static const char *const names[] = {"", "0", "cluster",
        "3-0000000000000abc-0000000000000064-0000000000000100-ffffffffffffffff",
        "0000000000000003-0000000000000ABC-0000000000000064-0000000000000100-ffffffffffffffff",
        "0000000000000003-0000000000000abc-0000000000000064-0000000000000100-ffffffffffffffff.new",
        /* no bytes; bytes before the begin of the incarnation */
        "0000000000000003-0000000000000abc-0000000000000064-0000000000000100-0000000000000100",
        "0000000000000003-0000000000000abc-0000000000000164-0000000000000100-0000000000000200"};
    struct log_segment read;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_false(log_segment_parse(names[i], &read));
    }
}

static void incarnations_follow_one_another(void **state)
{
    (void)state;
    put(1, 2, 5, 5, 9);
    put(1, 1, 0, 3, 5);
    put(1, 1, 0, 0, 3);
    put(2, 4, 9, 9, 12);
    assert_arranged("1.1:0-3 1.1:3-5 1.2:5-9 2.4:9-12");
}

/* What was joined and not removed, and what a turn put again with more behind it. */
static void each_byte_counts_once(void **state)
{
    (void)state;
    put(1, 1, 0, 0, 3);
    put(1, 1, 0, 3, 5);
    put(1, 1, 0, 0, 8);
    put(2, 1, 0, 5, 8);
    put(2, 1, 0, 6, 11);
    assert_arranged("1.1:0-8 2.1:8-11");
}

/* The older leader put 3 to 7 of attempt 1, which it did not acknowledge; the newer one had seen 0
 * to 3 alone when attempt 2 began. */
static void what_comes_too_late_is_left_out(void **state)
{
    (void)state;
    put(1, 1, 0, 0, 3);
    put(1, 1, 0, 3, 7);
    put(2, 2, 3, 3, 6);
    assert_arranged("1.1:0-3 2.2:3-6");
}

/* Both put attempt 2, the older one behind bytes that the newer one has not seen. */
static void the_base_of_the_newest_term_counts(void **state)
{
    (void)state;
    put(1, 1, 0, 0, 7);
    put(1, 2, 7, 7, 10);
    put(2, 2, 3, 3, 6);
    put(2, 3, 6, 6, 8);
    assert_arranged("1.1:0-3 2.2:3-6 2.3:6-8");
}

static void an_attempt_without_place_is_left_out(void **state)
{
    (void)state;
    put(1, 1, 0, 0, 4);
    put(1, 2, 4, 4, 8);
    put(2, 3, 2, 2, 5);
    assert_arranged("1.1:0-2 2.3:2-5");
    assert_int_equal(log_segments_arrange(segments, 0), 0);
}

static void what_none_has_is_the_hole(void **state)
{
    (void)state;
    uint64_t from = 1;
    uint64_t to = 2;
    put(1, 1, 0, 0, 10);
    put(1, 1, 0, 10, 20);
    count = log_segments_arrange(segments, count);
    log_segments_hole(segments, count, &from, &to);
    assert_int_equal(from, to);
    put(1, 1, 0, 50, 60);
    put(1, 1, 0, 70, 80);
    count = log_segments_arrange(segments, count);
    log_segments_hole(segments, count, &from, &to);
    assert_int_equal(from, 20);
    assert_int_equal(to, 70);
    log_segments_hole(segments + 2, 1, &from, &to);
    assert_int_equal(from, 0);
    assert_int_equal(to, 50);
}

static void small_ones_are_joined_by_size(void **state)
{
    (void)state;
    uint64_t at = 0;
    put(1, 1, 0, 0, 2 << 20); /* large */
    at = 2 << 20;
    for (unsigned i = 0; i < 15; i++, at += 100) {
        put(1, 1, 0, at, at + 100);
        count = log_segments_arrange(segments, count);
        assert_int_equal(log_segments_to_join(segments, count), 0);
    }
    put(1, 1, 0, at, at + 10000); /* of the next size: none of the small ones follow it */
    count = log_segments_arrange(segments, count);
    assert_int_equal(log_segments_to_join(segments, count), 16);
    put(1, 2, at + 10000, at + 10000, at + 10100); /* another attempt */
    count = log_segments_arrange(segments, count);
    assert_int_equal(log_segments_to_join(segments, count), 0);
}

static void bytes_and_marks_come_back(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct log_segment segment = {.begin = 1000, .end = 1007};
    const struct log_mark marks[] = {
        {.offset = 1000, .stream = LOG_STREAM_STDERR, .received_us = 1764500000123456},
        {.offset = 1004, .stream = LOG_STREAM_STDOUT, .received_us = 1764500000123457},
        {.offset = 1005}};
    size_t size = 0;
    CADRE_FREE_AT_EXIT uint8_t *object =
        log_segment_pack(&segment, (const uint8_t *)"one two", marks, 3, &size);
    CADRE_FREE_AT_EXIT struct log_mark *read = NULL;
    const uint8_t *bytes = NULL;
    size_t got = 0;
    assert_non_null(object);
    assert_ok(log_segment_unpack(&segment, object, size, &bytes, &read, &got, &error), &error);
    assert_memory_equal(bytes, "one two", 7);
    assert_int_equal(got, 3);
    for (size_t i = 0; i < got; i++) {
        assert_int_equal(read[i].offset, marks[i].offset);
        assert_int_equal(read[i].stream, marks[i].stream);
        assert_int_equal(read[i].received_us, marks[i].received_us);
    }
}

static void damage_is_found(void **state)
{
    (void)state;
    const struct log_segment segment = {.begin = 10, .end = 13};
    const struct log_mark mark = {.offset = 10};
    size_t size = 0;
    CADRE_FREE_AT_EXIT uint8_t *object =
        log_segment_pack(&segment, (const uint8_t *)"abc", &mark, 1, &size);
    assert_non_null(object);
    for (size_t i = 0; i <= size; i++) {
        struct cadre_error error = {0};
        struct log_mark *read = NULL;
        const uint8_t *bytes = NULL;
        size_t got = 0;
        if (i < size) {
            object[i] ^= 1;
        }
        assert_error(log_segment_unpack(&segment, object, i == size ? size - 1 : size, &bytes,
                         &read, &got, &error),
            CADRE_DATA_LOSS, &error, "is not what was put there");
        if (i < size) {
            object[i] ^= 1;
        }
    }
    for (size_t cut = 0; cut < size; cut++) {
        struct cadre_error error = {0};
        struct log_mark *read = NULL;
        const uint8_t *bytes = NULL;
        size_t got = 0;
        CADRE_FREE_AT_EXIT uint8_t *part = malloc(cut + 1);
        memcpy(part, object, cut);
        assert_int_equal(
            log_segment_unpack(&segment, part, cut, &bytes, &read, &got, &error), CADRE_DATA_LOSS);
    }
}

/* Counts whose sum is the object's size only because it wraps: 4 marks and 2^64 - 64 bytes. */
static void counts_that_wrap_are_damage(void **state)
{
    (void)state;
    uint8_t object[24 + SHA256_BYTES] = "cadre-log 1\n\x04";
    const struct log_segment segment = {.begin = 0, .end = UINT64_MAX - 63};
    struct cadre_error error = {0};
    const uint8_t *bytes = NULL;
    struct log_mark *marks = NULL;
    size_t mark_count = 0;
    struct sha256 hash;
    memset(object + 16, 0xff, 8);
    object[16] = 0xc0;
    assert_ok(sha256_of(object, 24, &hash, &error), &error);
    memcpy(object + 24, hash.bytes, SHA256_BYTES);
    assert_error(
        log_segment_unpack(&segment, object, sizeof object, &bytes, &marks, &mark_count, &error),
        CADRE_DATA_LOSS, &error, "is not what was put there");
}

#define TEST(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_name_says_which_it_is), TEST(other_names_are_none),
        TEST(incarnations_follow_one_another), TEST(each_byte_counts_once),
        TEST(what_comes_too_late_is_left_out), TEST(the_base_of_the_newest_term_counts),
        TEST(an_attempt_without_place_is_left_out), TEST(what_none_has_is_the_hole),
        TEST(small_ones_are_joined_by_size), TEST(bytes_and_marks_come_back), TEST(damage_is_found),
        TEST(counts_that_wrap_are_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
