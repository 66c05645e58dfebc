/* SPDX-License-Identifier: Apache-2.0
 * Texts of a JSON object: those of a container's agent, and hostile ones. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "common/storage/s3/flat_json.h"
#include "tests/lib/test.h"

static const char sample[] =
    "{\n  \"Code\" : \"Success\",\n \"Token\" : \"a\\/b\\u002b\\u00e4\\u20ac\\\"\\\\\", \"n\": "
    "-1.5e+3, \"deep\": {\"Token\": \"no\", \"a\": [1, {\"Token\": \"no\"}, [], {}]},"
    "\"nothing\": null, \"\": true, \"AccessKeyId\" : \"AKI\"}\n";

static void texts_of_an_object(void **state)
{
    char text[32];
    (void)state;
    assert_int_equal(
        s3_json_text(sample, strlen(sample), "Code", text, sizeof text), S3_JSON_FOUND);
    assert_string_equal(text, "Success");
    assert_int_equal(
        s3_json_text(sample, strlen(sample), "Token", text, sizeof text), S3_JSON_FOUND);
    assert_string_equal(text, "a/b+\xc3\xa4\xe2\x82\xac\"\\");
    assert_int_equal(
        s3_json_text(sample, strlen(sample), "AccessKeyId", text, sizeof text), S3_JSON_FOUND);
    assert_string_equal(text, "AKI");
    assert_int_equal(s3_json_text(sample, strlen(sample), "x", text, sizeof text), S3_JSON_ABSENT);
    assert_string_equal(text, "");
    assert_int_equal(s3_json_text(sample, strlen(sample), "n", text, sizeof text), S3_JSON_ABSENT);
    assert_int_equal(
        s3_json_text(sample, strlen(sample), "nothing", text, sizeof text), S3_JSON_ABSENT);
    assert_int_equal(s3_json_text("{}", 2, "x", text, sizeof text), S3_JSON_ABSENT);
    assert_int_equal(
        s3_json_text("{\"a\":\"1\",\"a\":\"2\"}", 17, "a", text, sizeof text), S3_JSON_FOUND);
    assert_string_equal(text, "2");
}

static void what_is_wrong(void **state)
{
    static const char *const rows[] = {
        "",
        " ",
        "null",
        "[]",
        "\"a\"",
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":\"b\"",
        "{\"a\":\"b}",
        "{\"a\":\"b\",}",
        "{\"a\":\"b\"} x",
        "{\"a\":\"b\"}{}",
        "{a:\"b\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":[1,]}",
        "{\"a\":[1}",
        "{\"a\":{\"b\"}}",
        "{\"b\":[[[[[[[[[]]]]]]]]]}",
        "{\"a\":\"0123456789abcdef\"}",
        "<html></html>",
        "{\"a\":\"b\" \"c\":\"d\"}",
    };
    char text[16];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (s3_json_text(rows[i], strlen(rows[i]), "a", text, sizeof text) != S3_JSON_WRONG) {
            fail_msg("row %zu: %s", i, rows[i]);
        }
        assert_string_equal(text, "");
    }
    assert_int_equal(s3_json_text("{}\0", 3, "a", text, sizeof text), S3_JSON_WRONG);
    assert_int_equal(
        s3_json_text("{\"a\":\"0123456789abcde\"}", 23, "a", text, sizeof text), S3_JSON_FOUND);
}

static void damaged_documents(void **state)
{
    static const char bytes[] = "{}[]\",:\\u0a \n\x80";
    struct prng random = {.state = 5};
    size_t found = 0;
    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        size_t size = strlen(sample) - prng_uniform(&random, 2) * prng_uniform(&random, 40);
        char *copy = malloc(size); /* of this size: a sanitizer sees what is read behind it */
        char text[32];
        assert_non_null(copy);
        memcpy(copy, sample, size);
        for (uint64_t left = prng_uniform(&random, 3); left > 0; left--) {
            copy[prng_uniform(&random, size)] = bytes[prng_uniform(&random, sizeof bytes)];
        }
        enum s3_json_result result = s3_json_text(copy, size, "Token", text, sizeof text);
        found += result == S3_JSON_FOUND ? 1 : 0;
        assert_true(strlen(text) < sizeof text);
        assert_true(result == S3_JSON_FOUND || text[0] == '\0');
        free(copy);
    }
    assert_in_range(found, 1, 19999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_an_object),
        cmocka_unit_test(what_is_wrong),
        cmocka_unit_test(damaged_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
