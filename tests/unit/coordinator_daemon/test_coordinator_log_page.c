/* SPDX-License-Identifier: Apache-2.0
 * Pages of a log: whatever bytes tasks write, and wherever a page ends, the pages together have
 * each line once, as `logs --json` prints it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/pages/log_page.h"
#include "tests/lib/test.h"

/* A log: runs of one stream each. */
struct run {
    cadre_log_stream stream;
    const char *text;
    uint64_t left_out;
};

static struct log_page *begin(uint64_t offset)
{
    struct log_page *page = malloc(sizeof *page);
    assert_non_null(page);
    log_page_begin(page, 7, offset);
    return page;
}

/* Appends the text of each line, a "|" behind a whole one, a "~" behind a partial one; returns
 * where the next page begins. */
static uint64_t end(struct log_page *page, enum log_page_rest rest, char *text, size_t size)
{
    json_t *lines = NULL;
    uint64_t next = log_page_end(page, rest, &lines);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        json_t *json = json_array_get(lines, i);
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", json_string_value(json_object_get(json, "text")),
            json_is_true(json_object_get(json, "partial")) ? "~" : "|");
    }
    json_decref(lines);
    free(page);
    return next;
}

/* Adds what of the runs is behind the offset, at most `max` bytes; true: to their end. */
static bool add(struct log_page *page, const struct run *runs, size_t count, size_t max)
{
    uint64_t at = 0;
    uint64_t stop = page->offset + max;
    for (size_t i = 0; i < count; i++) {
        at += runs[i].left_out;
        uint64_t size = strlen(runs[i].text);
        uint64_t from = page->offset > at ? page->offset - at : 0;
        uint64_t to = stop - at < size ? stop - at : size;
        if (stop <= at) {
            return false;
        }
        if (from < to) {
            const cadre_log log = {.offset = at + from,
                .bytes = runs[i].text + from,
                .size = (size_t)(to - from),
                .left_out = from == 0 && page->offset < at ? at - page->offset : 0,
                .stream = runs[i].stream};
            assert_true(log_page_add(page, &log));
        }
        at += size;
    }
    return stop >= at;
}

static void check_page(const struct run *runs, size_t count, enum log_page_rest rest,
    const char *wanted, uint64_t next)
{
    char text[100] = "";
    struct log_page *page = begin(0);
    assert_true(add(page, runs, count, 1000));
    assert_int_equal(end(page, rest, text, sizeof text), next);
    assert_string_equal(text, wanted);
}

static void a_line_that_is_not_whole(void **state)
{
    (void)state;
    const struct run runs[] = {{CADRE_STDOUT, "one\ntwo", 0}};
    check_page(runs, 1, LOG_PAGE_OVER, "one|two~", 7);
    check_page(runs, 1, LOG_PAGE_GROWS, "one|two~", 4); /* it comes again */
    check_page(runs, 1, LOG_PAGE_GOES_ON, "one|", 4);
    const struct run whole[] = {{CADRE_STDOUT, "one\ntwo\n", 0}};
    check_page(whole, 1, LOG_PAGE_GROWS, "one|two|", 8);
    check_page(whole, 0, LOG_PAGE_GROWS, "", 0);
}

static void lines_of_two_streams(void **state)
{
    (void)state;
    const struct run runs[] = {
        {CADRE_STDOUT, "o", 0}, {CADRE_STDERR, "err\n", 0}, {CADRE_STDOUT, "ut\n", 0}};
    check_page(runs, 3, LOG_PAGE_GROWS, "err|out|", 8);
    /* Between two lines of the other stream: it is not shown twice, and no line is. */
    check_page(runs, 2, LOG_PAGE_GROWS, "err|o~", 5);
    /* Both are cut. */
    const struct run cut[] = {{CADRE_STDOUT, "a\no", 0}, {CADRE_STDERR, "e", 0}};
    check_page(cut, 2, LOG_PAGE_GOES_ON, "a|", 2);
    check_page(cut, 2, LOG_PAGE_OVER, "a|o~e~", 4);
}

static void a_gap(void **state)
{
    (void)state;
    const struct run runs[] = {{CADRE_STDOUT, "one\ntw", 0}, {CADRE_STDOUT, "ree\n", 100}};
    check_page(runs, 2, LOG_PAGE_GROWS, "one|tw~ree|", 110);
}

static void a_long_line_is_broken(void **state)
{
    (void)state;
    char *text = calloc(1, 3 * LOG_PAGE_LINE_BYTES);
    memset(text, 'x', 2 * LOG_PAGE_LINE_BYTES + 5);
    const struct run runs[] = {{CADRE_STDOUT, text, 0}};
    char *seen = calloc(1, 3 * LOG_PAGE_LINE_BYTES);
    struct log_page *page = begin(0);
    assert_true(add(page, runs, 1, 1 << 20));
    assert_int_equal(
        end(page, LOG_PAGE_GOES_ON, seen, 3 * LOG_PAGE_LINE_BYTES), 2 * LOG_PAGE_LINE_BYTES);
    assert_int_equal(strlen(seen), 2 * LOG_PAGE_LINE_BYTES + 2);
    free(seen);
    free(text);
}

static void a_full_page(void **state)
{
    (void)state;
    char *text = malloc(2 * LOG_PAGE_LINES);
    memset(text, '\n', 2 * LOG_PAGE_LINES);
    struct log_page *page = begin(10);
    const cadre_log log = {
        .offset = 10, .bytes = text, .size = 2 * LOG_PAGE_LINES, .stream = CADRE_STDERR};
    assert_false(log_page_add(page, &log));
    json_t *lines = NULL;
    assert_int_equal(log_page_end(page, LOG_PAGE_GOES_ON, &lines), 10 + LOG_PAGE_LINES);
    assert_int_equal(json_array_size(lines), LOG_PAGE_LINES);
    json_decref(lines);
    free(page);
    free(text);
}

/* Pages of any sizes, one behind the other. */
static void each_line_once(void **state)
{
    (void)state;
    const struct run runs[] = {{CADRE_STDOUT, "a\nbb\nccc\n", 0}, {CADRE_STDERR, "dd\ne", 0},
        {CADRE_STDERR, "e\n", 0}, {CADRE_STDOUT, "ffff\n", 0}, {CADRE_STDOUT, "g\nh\n", 0}};
    for (size_t max = 5; max < 40; max++) {
        char all[200] = "";
        uint64_t next = 0;
        bool whole = false;
        for (int turns = 0; !whole && turns < 100; turns++) {
            struct log_page *page = begin(next);
            whole = add(page, runs, 5, max);
            next = end(page, whole ? LOG_PAGE_OVER : LOG_PAGE_GOES_ON, all, sizeof all);
        }
        assert_string_equal(all, "a|bb|ccc|dd|ee|ffff|g|h|");
        assert_int_equal(next, 24);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_is_not_whole),
        cmocka_unit_test(lines_of_two_streams),
        cmocka_unit_test(a_gap),
        cmocka_unit_test(a_long_line_is_broken),
        cmocka_unit_test(a_full_page),
        cmocka_unit_test(each_line_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
