/* SPDX-License-Identifier: Apache-2.0
 * A vocabulary that is an object of a store, here one in memory. */
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/checkpoint/memory_store.h"
#include "worker/library/preprocessing/vocabulary_file.h"

#define PATH "s3://bucket/words 1.txt"

static int clear(void **state)
{
    (void)state;
    memory_store_clear();
    return 0;
}

static void put(const char *text)
{
    struct cadre_error error = {0};
    assert_ok(storage_put(NULL, PATH, text, strlen(text), &error), &error);
}

static void its_lines_are_tokens(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_tensor *tokens = NULL;
    put("one\r\ntwo words\nthree");
    assert_ok(vocabulary_file_read(PATH, CADRE_STRING, &tokens, &error), &error);
    assert_int_equal(cadre_tensor_count(tokens), 3);
    const cadre_string *all = cadre_tensor_const_data(tokens);
    assert_int_equal(all[1].size, strlen("two words"));
    assert_memory_equal(all[1].bytes, "two words", all[1].size);
    cadre_tensor_release(tokens);
    put("7\n-3\n");
    assert_ok(vocabulary_file_read(PATH, CADRE_I64, &tokens, &error), &error);
    assert_int_equal(((const int64_t *)cadre_tensor_const_data(tokens))[1], -3);
    cadre_tensor_release(tokens);
}

static void what_is_wrong_names_the_object(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_tensor *tokens = NULL;
    assert_error(
        vocabulary_file_read(PATH, CADRE_STRING, &tokens, &error), CADRE_NOT_FOUND, &error, PATH);
    put("one\n\ntwo");
    assert_error(vocabulary_file_read(PATH, CADRE_STRING, &tokens, &error), CADRE_INVALID_ARGUMENT,
        &error, PATH ", line 2 is empty");
    memory_store.refused = "s3://bucket/";
    assert_error(vocabulary_file_read(PATH, CADRE_STRING, &tokens, &error), CADRE_PERMISSION_DENIED,
        &error, PATH);
    assert_null(tokens);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, clear, clear)
    const struct CMUnitTest tests[] = {
        TEST(its_lines_are_tokens), TEST(what_is_wrong_names_the_object)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
