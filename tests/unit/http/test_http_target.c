/* SPDX-License-Identifier: Apache-2.0
 * What a request line and the headers of a browser say. */
#include <string.h>

#include "common/http/origin.h"
#include "common/http/target.h"
#include "tests/lib/test.h"

static struct http_target target;

static void assert_refused(const char *raw, const char *part)
{
    struct cadre_error error = {0};
    assert_error(http_target_parse(raw, &target, &error), CADRE_INVALID_ARGUMENT, &error, part);
    assert_int_equal(target.argument_count, 0);
}

static void paths_and_arguments(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(http_target_parse("/a/%C3%A9+x?n=1&name=a%26b+c&&flag", &target, &error), &error);
    assert_string_equal(target.path, "/a/\xc3\xa9+x");
    assert_int_equal(target.argument_count, 3);
    assert_string_equal(http_target_argument(&target, "n"), "1");
    assert_string_equal(http_target_argument(&target, "name"), "a&b c");
    assert_string_equal(http_target_argument(&target, "flag"), "");
    assert_null(http_target_argument(&target, "N"));
    assert_ok(http_target_parse("/?", &target, &error), &error);
    assert_int_equal(target.argument_count, 0);
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    static const char *const paths[] = {"", "x", "*", "http://h/x", "/%", "/%4", "/%zz", "/%00x",
        "/a%2fb", "/a%0ab", "/%ff", "/\x7f", "/%C2%85"};
    static const char *const queries[] = {"/a?x=%", "/a?%zz=1", "/a?x=%00", "/a?x=%0d", "/a?x=%ff"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_refused(paths[i], "the path of the URL is no text");
    }
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        assert_refused(queries[i], "an argument of the URL is no text");
        assert_string_equal(target.path, "/a");
    }
    assert_refused("/a?x=1&x=2", "twice");
    assert_refused("/a?a&b&c&d&e&f&g&h&i", "more than 8 arguments");
}

static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char raw[HTTP_TARGET_BYTES + 1];
    memset(raw, 'a', sizeof raw);
    raw[0] = '/';
    raw[HTTP_TARGET_BYTES] = '\0';
    assert_refused(raw, "longer than 2047 bytes");
    raw[HTTP_TARGET_BYTES - 1] = '\0';
    assert_ok(http_target_parse(raw, &target, &error), &error);
    assert_int_equal(strlen(target.path), HTTP_TARGET_BYTES - 1);
}

static void numbers_are_whole(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "+1", "-1", " 1", "1 ", "01", "0x1", "1.0", "201", "x",
        "18446744073709551616", "99999999999999999999999"};
    struct cadre_error error = {0};
    static const char *const names[] = {"limit", NULL};
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(http_number_parse(wrong[i], 200, &number));
    }
    assert_true(http_number_parse("0", 0, &number));
    assert_true(http_number_parse("18446744073709551615", UINT64_MAX, &number));
    assert_int_equal(number, UINT64_MAX);
    assert_ok(http_target_parse("/a?limit=200&z=1", &target, &error), &error);
    assert_ok(http_target_number(&target, "limit", 7, 200, &number, &error), &error);
    assert_int_equal(number, 200);
    assert_ok(http_target_number(&target, "before", 7, 200, &number, &error), &error);
    assert_int_equal(number, 7);
    assert_error(http_target_number(&target, "limit", 7, 199, &number, &error),
        CADRE_INVALID_ARGUMENT, &error, "limit=200 is no whole number from 0 to 199");
    assert_error(http_target_check(&target, names, &error), CADRE_INVALID_ARGUMENT, &error,
        "/a has no argument \"z\"");
}

static void hosts_of_loopback(void **state)
{
    (void)state;
    static const char *const good[] = {"localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:9464",
        "127.1.2.3:1", "[::1]", "[::1]:80", "localhost:"};
    static const char *const bad[] = {"", ":80", "localhost.", "localhost.evil.example",
        "evil.example", "127.0.0.1.evil.example", "128.0.0.1", "127.0.0.1:80:80", "127.0.0.1:x",
        "[::1", "[::1]x", "[::2]", "::1", "0.0.0.0", "127.1", "localhost@evil.example"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(http_host_is_loopback(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(http_host_is_loopback(bad[i]));
    }
}

static void origins(void **state)
{
    (void)state;
    assert_true(http_origin_is_own(NULL, NULL, NULL, false));
    assert_true(http_origin_is_own("h:1", "http://h:1", "same-origin", false));
    assert_true(http_origin_is_own("h:1", "https://H:1", NULL, true));
    assert_true(http_origin_is_own("h:1", NULL, "none", false));
    assert_false(http_origin_is_own("h:1", "http://h:1", NULL, true));
    assert_false(http_origin_is_own("h:1", "http://h:2", NULL, false));
    assert_false(http_origin_is_own("h:1", "null", NULL, false));
    assert_false(http_origin_is_own(NULL, "http://h:1", NULL, false));
    assert_false(http_origin_is_own("h:1", NULL, "same-site", false));
    assert_false(http_origin_is_own("h:1", "http://h:1", "cross-site", false));
}

static void what_acts_says_its_origin(void **state)
{
    (void)state;
    assert_true(http_origin_may_act("h:1", "http://h:1", NULL, false));
    assert_true(http_origin_may_act("h:1", NULL, "same-origin", false));
    assert_true(http_origin_may_act("h:1", "https://h:1", "same-origin", true));
    assert_false(http_origin_may_act("h:1", NULL, NULL, false));
    assert_false(http_origin_may_act("h:1", NULL, "none", false));
    assert_false(http_origin_may_act("h:1", "http://h:1", "cross-site", false));
    assert_false(http_origin_may_act("h:1", "http://h:2", "same-origin", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_arguments),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(numbers_are_whole),
        cmocka_unit_test(hosts_of_loopback),
        cmocka_unit_test(origins),
        cmocka_unit_test(what_acts_says_its_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
