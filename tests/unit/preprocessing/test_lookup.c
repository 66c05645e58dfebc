/* SPDX-License-Identifier: Apache-2.0
 * Vocabularies and tables: ids, what is unknown, bad input, several threads. */
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/preprocessing.h"
#include "common/base/fault.h"

#define assert_public_ok(call)                                                                     \
    do {                                                                                           \
        if ((call) != CADRE_OK) {                                                                  \
            fail_msg("%s: %s", #call, cadre_error_message());                                      \
        }                                                                                          \
    } while (0)

#define assert_refused(call, part)                                                                 \
    do {                                                                                           \
        assert_int_equal((call), CADRE_INVALID_ARGUMENT);                                          \
        if (strstr(cadre_error_message(), (part)) == NULL) {                                       \
            fail_msg("'%s' does not contain '%s'", cadre_error_message(), (part));                 \
        }                                                                                          \
    } while (0)

static const char *const letters[] = {"a", "b", "c", "d"};

static cadre_tensor *strings(size_t count, const char *const values[])
{
    cadre_string tokens[16];
    const int64_t rows = (int64_t)count;
    cadre_tensor *tensor;
    for (size_t i = 0; i < count; i++) {
        tokens[i] = (cadre_string){values[i], strlen(values[i])};
    }
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &rows, tokens, &tensor));
    return tensor;
}

static cadre_tensor *integers(size_t count, const int64_t values[])
{
    const int64_t rows = (int64_t)count;
    cadre_tensor *tensor;
    assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, &rows, values, &tensor));
    return tensor;
}

/* Looks the tokens up, and compares. Takes `tokens`. */
static void check_ids(const cadre_lookup *lookup, cadre_tensor *tokens, const int64_t *wanted)
{
    cadre_tensor *ids;
    assert_public_ok(cadre_lookup_apply(lookup, tokens, &ids));
    assert_int_equal(cadre_tensor_dtype(ids), CADRE_I64);
    assert_int_equal(cadre_tensor_count(ids), cadre_tensor_count(tokens));
    for (int64_t i = 0; i < cadre_tensor_count(ids); i++) {
        assert_int_equal(((const int64_t *)cadre_tensor_const_data(ids))[i], wanted[i]);
    }
    cadre_tensor_release(ids);
    cadre_tensor_release(tokens);
}

static void check_strings(cadre_tensor *tensor, const char *const wanted[])
{
    assert_int_equal(cadre_tensor_dtype(tensor), CADRE_STRING);
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        const cadre_string *token = (const cadre_string *)cadre_tensor_const_data(tensor) + i;
        assert_int_equal(token->size, strlen(wanted[i]));
        assert_memory_equal(token->bytes, wanted[i], token->size);
    }
    cadre_tensor_release(tensor);
}

/* --- vocabularies --- */

static void tokens_get_ids_in_their_order(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    assert_public_ok(cadre_lookup_strings(letters, 4, NULL, &lookup));
    assert_int_equal(cadre_lookup_size(lookup), 5);
    check_ids(lookup, strings(6, (const char *[]){"a", "c", "d", "m", "", "b"}),
        (int64_t[]){1, 3, 4, 0, 0, 2});
    cadre_lookup_release(lookup);
}

/* The example of tf.keras.layers.StringLookup. */
static void several_oov_ids_are_those_of_tensorflow(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    const cadre_lookup_options options = {.oov_ids = 2};
    assert_public_ok(cadre_lookup_strings(letters, 4, &options, &lookup));
    check_ids(lookup, strings(6, (const char *[]){"a", "c", "d", "m", "z", "b"}),
        (int64_t[]){2, 4, 5, 0, 1, 3});
    cadre_lookup_release(lookup);
}

static void the_mask_comes_before_oov(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    const cadre_lookup_options options = {.oov_ids = 2, .mask_string = "-"};
    assert_public_ok(cadre_lookup_strings(letters, 4, &options, &lookup));
    assert_int_equal(cadre_lookup_size(lookup), 7);
    check_ids(
        lookup, strings(5, (const char *[]){"-", "m", "z", "a", "d"}), (int64_t[]){0, 1, 2, 3, 6});
    cadre_tensor *ids = integers(6, (int64_t[]){0, 1, 2, 3, 6, 99});
    cadre_tensor *tokens;
    assert_public_ok(cadre_lookup_invert(lookup, ids, &tokens));
    check_strings(tokens, (const char *[]){"-", "[UNK]", "[UNK]", "a", "d", "[UNK]"});
    cadre_tensor_release(ids);
    cadre_lookup_release(lookup);
}

/* As tf.math.floormod has it, also below 0. */
static void integers_have_vocabularies_too(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    cadre_tensor *list = integers(3, (int64_t[]){12, 1138, 42});
    const cadre_lookup_options options = {.oov_ids = 3, .mask_integer = &(int64_t){0}};
    assert_public_ok(cadre_lookup_create(list, &options, &lookup));
    check_ids(lookup, integers(8, (int64_t[]){12, 42, 0, 37, 1000, -1, INT64_MIN, INT64_MAX}),
        (int64_t[]){4, 6, 0, 2, 2, 3, 2, 2});
    const int8_t narrow[2] = {42, -128};
    const int64_t two = 2;
    cadre_tensor *tokens;
    assert_public_ok(cadre_tensor_from_data(CADRE_I8, 1, &two, narrow, &tokens));
    check_ids(lookup, tokens, (int64_t[]){6, 2}); /* -128 mod 3 is 1 */
    cadre_tensor *back;
    cadre_tensor *ids = integers(4, (int64_t[]){0, 1, 4, -7});
    assert_public_ok(cadre_lookup_invert(lookup, ids, &back));
    const int64_t *values = cadre_tensor_const_data(back);
    assert_int_equal(values[0], 0);
    assert_int_equal(values[1], -1);
    assert_int_equal(values[2], 12);
    assert_int_equal(values[3], -1);
    cadre_tensor_release(back);
    cadre_tensor_release(ids);
    cadre_tensor_release(list);
    cadre_lookup_release(lookup);
}

static void without_oov_unknown_tokens_are_named(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    const cadre_lookup_options options = {.oov_ids = CADRE_LOOKUP_NO_OOV};
    assert_public_ok(cadre_lookup_strings(letters, 4, &options, &lookup));
    assert_int_equal(cadre_lookup_size(lookup), 4);
    check_ids(lookup, strings(2, (const char *[]){"a", "d"}), (int64_t[]){0, 3});
    cadre_tensor *ids = (void *)lookup; /* overwritten */
    cadre_tensor *tokens = strings(2, (const char *[]){"a", "x\ny"});
    assert_refused(cadre_lookup_apply(lookup, tokens, &ids), "\"x\\x0ay\" is not one of the 4");
    assert_null(ids);
    cadre_tensor_release(tokens);
    cadre_tensor *wrong = integers(1, (int64_t[]){4});
    assert_refused(cadre_lookup_invert(lookup, wrong, &ids), "4 is the id of no token");
    cadre_tensor_release(wrong);
    cadre_lookup_release(lookup);
}

static void shapes_are_kept(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    cadre_tensor *tokens;
    cadre_tensor *ids;
    assert_public_ok(cadre_lookup_strings(letters, 4, NULL, &lookup));
    const cadre_string values[6] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"a", 1}};
    const int64_t dims[3] = {1, 3, 2};
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 3, dims, values, &tokens));
    assert_public_ok(cadre_lookup_apply(lookup, tokens, &ids));
    assert_int_equal(cadre_tensor_rank(ids), 3);
    assert_int_equal(cadre_tensor_dim(ids, 1), 3);
    cadre_tensor_release(ids);
    cadre_tensor_release(tokens);
    const int64_t none[2] = {0, 7};
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 2, none, NULL, &tokens));
    assert_public_ok(cadre_lookup_apply(lookup, tokens, &ids));
    assert_int_equal(cadre_tensor_dim(ids, 1), 7);
    assert_int_equal(cadre_tensor_count(ids), 0);
    cadre_tensor_release(ids);
    cadre_tensor_release(tokens);
    cadre_lookup_release(lookup);
}

/* More than a block of them, against a search that is simple. */
static void many_tokens_are_found(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    char(*names)[16] = calloc(COUNT, sizeof *names);
    const char **tokens = calloc(COUNT, sizeof *tokens);
    cadre_string *asked = calloc(2 * COUNT, sizeof *asked);
    assert_true(names != NULL && tokens != NULL && asked != NULL);
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        tokens[i] = names[i];
        asked[2 * i] = (cadre_string){names[i], strlen(names[i])};
        asked[2 * i + 1] = (cadre_string){names[i] + 1, strlen(names[i]) - 1}; /* unknown */
    }
    cadre_lookup *lookup;
    cadre_tensor *list;
    cadre_tensor *ids;
    const int64_t rows = 2 * COUNT;
    assert_public_ok(cadre_lookup_strings(tokens, COUNT, NULL, &lookup));
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &rows, asked, &list));
    assert_public_ok(cadre_lookup_apply(lookup, list, &ids));
    for (int i = 0; i < COUNT; i++) {
        const int64_t *id = (const int64_t *)cadre_tensor_const_data(ids) + 2 * i;
        assert_int_equal(id[0], i + 1);
        assert_int_equal(id[1], 0);
    }
    cadre_tensor_release(ids);
    cadre_tensor_release(list);
    cadre_lookup_release(lookup);
    free(names);
    free(tokens);
    free(asked);
}

/* --- bad input --- */

static void bad_vocabularies_are_refused(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    assert_refused(cadre_lookup_strings((const char *[]){"a", "b", "a"}, 3, NULL, &lookup),
        "\"a\" stands there twice, as token 1 and 3");
    assert_null(lookup);
    assert_refused(cadre_lookup_strings(letters, 0, NULL, &lookup), "there are 0 tokens");
    assert_refused(cadre_lookup_strings((const char *[]){"a", NULL}, 2, NULL, &lookup),
        "token 2 of the vocabulary is NULL");
    assert_refused(cadre_lookup_strings((const char *[]){"a", "[UNK]"}, 2, NULL, &lookup),
        "\"[UNK]\", token 2 of the vocabulary, is the OOV token");
    cadre_lookup_options options = {.mask_string = "b"};
    assert_refused(cadre_lookup_strings(letters, 4, &options, &lookup), "is the mask");
    options = (cadre_lookup_options){.oov_ids = -2};
    assert_refused(cadre_lookup_strings(letters, 4, &options, &lookup), "-2 ids");
    options = (cadre_lookup_options){.mask_integer = &(int64_t){1}};
    assert_refused(
        cadre_lookup_strings(letters, 4, &options, &lookup), "the mask_integer of the options");
    cadre_tensor *tensor;
    assert_public_ok(cadre_tensor_from_f32(1, &tensor));
    assert_refused(cadre_lookup_create(tensor, NULL, &lookup), "this one is f32 []");
    cadre_tensor_release(tensor);
    assert_refused(cadre_lookup_create(NULL, NULL, &lookup), "'tokens'");
    assert_refused(cadre_lookup_strings(letters, 4, NULL, NULL), "'ret_lookup'");
    assert_int_equal(cadre_lookup_size(NULL), 0);
    cadre_lookup_release(NULL);
}

static void bad_tokens_are_refused(void **state)
{
    (void)state;
    cadre_lookup *words;
    cadre_lookup *numbers;
    cadre_tensor *list = integers(2, (int64_t[]){5, 6});
    cadre_tensor *word = strings(1, (const char *[]){"a"});
    cadre_tensor *half;
    cadre_tensor *ids;
    assert_public_ok(cadre_lookup_strings(letters, 4, NULL, &words));
    assert_public_ok(cadre_lookup_create(list, NULL, &numbers));
    assert_public_ok(cadre_tensor_from_f32(0.5F, &half));
    assert_refused(cadre_lookup_apply(words, list, &ids), "strings was given i64 [2]");
    assert_refused(cadre_lookup_apply(numbers, word, &ids), "integers was given string [1]");
    assert_refused(cadre_lookup_apply(numbers, half, &ids), "f32");
    assert_refused(cadre_lookup_invert(words, half, &ids), "ids are of CADRE_I64");
    assert_refused(cadre_lookup_apply(NULL, word, &ids), "'lookup'");
    assert_refused(cadre_lookup_apply(words, NULL, &ids), "'tokens'");
    assert_refused(cadre_lookup_apply(words, word, NULL), "'ret_ids'");
    cadre_element out;
    assert_refused(cadre_lookup_map(&(cadre_element){0}, &out, words), "0 components");
    cadre_tensor_release(half);
    cadre_tensor_release(word);
    cadre_tensor_release(list);
    cadre_lookup_release(numbers);
    cadre_lookup_release(words);
}

/* --- files --- */

static const char *file_of(const char *text, size_t size, char path[TEST_PATH_BYTES])
{
    test_path(path, test_temp_dir(), "tokens.txt");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void files_hold_one_token_a_line(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    cadre_lookup *lookup;
    file_of("one\r\n t w o \nthr\xc3\xa9\nfour", 23, path);
    assert_public_ok(cadre_lookup_file(path, CADRE_STRING, NULL, &lookup));
    check_ids(lookup, strings(4, (const char *[]){"one", " t w o ", "thr\xc3\xa9", "four"}),
        (int64_t[]){1, 2, 3, 4});
    cadre_lookup_release(lookup);
    file_of("7\n-9223372036854775808\r\n+3\n", 27, path);
    assert_public_ok(cadre_lookup_file(path, CADRE_I64, NULL, &lookup));
    check_ids(lookup, integers(3, (int64_t[]){INT64_MIN, 3, 7}), (int64_t[]){2, 3, 1});
    cadre_lookup_release(lookup);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cadre_dtype dtype;
        const char *part;
    } bad[] = {
        {"", CADRE_STRING, "there are 0 tokens"},
        {"a\n\nb\n", CADRE_STRING, "line 2 is empty"},
        {"a\n\r\n", CADRE_STRING, "line 2 is empty"},
        {"a\nb\na\n", CADRE_STRING, "\"a\" stands there twice, as token 1 and 3"},
        {"1\n2x\n", CADRE_I64, "line 2: \"2x\" is no integer"},
        {" 1\n", CADRE_I64, "line 1: \" 1\" is no integer"},
        {"9223372036854775808\n", CADRE_I64, "is no integer of 64 bits"},
        {"-\n", CADRE_I64, "line 1: \"-\""},
        {"00000000000000000000000000000000000001\n", CADRE_I64, "line 1"},
        {"1\n", CADRE_F32, "cannot be read as f32"},
    };
    char path[TEST_PATH_BYTES];
    cadre_lookup *lookup;
    file_of("", 0, path);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        fputs(bad[i].text, file);
        assert_int_equal(fclose(file), 0);
        assert_refused(cadre_lookup_file(path, bad[i].dtype, NULL, &lookup), bad[i].part);
        assert_non_null(strstr(cadre_error_message(), "tokens.txt"));
        assert_null(lookup);
    }
    assert_int_equal(
        cadre_lookup_file("/nowhere/at/all", CADRE_STRING, NULL, &lookup), CADRE_NOT_FOUND);
    assert_int_not_equal(cadre_lookup_file("/", CADRE_STRING, NULL, &lookup), CADRE_OK);
}

/* --- tables --- */

static void tables_give_values(void **state)
{
    (void)state;
    cadre_lookup *lookup;
    cadre_tensor *keys = integers(3, (int64_t[]){0, 1, 2});
    cadre_tensor *missing;
    assert_public_ok(cadre_tensor_from_i64(-2, &missing));
    assert_public_ok(cadre_lookup_table(keys, keys, missing, &lookup));
    assert_int_equal(cadre_lookup_size(lookup), 3);
    check_ids(lookup, integers(3, (int64_t[]){0, 1, -1}), (int64_t[]){0, 1, -2});
    cadre_tensor *back;
    assert_refused(cadre_lookup_invert(lookup, keys, &back), "plain table has no ids");
    cadre_lookup_release(lookup);

    cadre_tensor *names = strings(3, (const char *[]){"zero", "one", "two"});
    cadre_tensor *other;
    assert_public_ok(
        cadre_tensor_from_data(CADRE_STRING, 0, NULL, &(cadre_string){"?", 1}, &other));
    assert_public_ok(cadre_lookup_table(keys, names, other, &lookup));
    cadre_tensor *asked = integers(3, (int64_t[]){2, 9, 0});
    assert_public_ok(cadre_lookup_apply(lookup, asked, &back));
    check_strings(back, (const char *[]){"two", "?", "zero"});
    cadre_tensor_release(asked);
    cadre_lookup_release(lookup);

    assert_refused(cadre_lookup_table(names, names, missing, &lookup), "must be a scalar of");
    asked = integers(2, (int64_t[]){1, 1});
    assert_refused(cadre_lookup_table(asked, keys, missing, &lookup), "one value for each key");
    cadre_tensor *two = integers(2, (int64_t[]){3, 4});
    assert_refused(cadre_lookup_table(asked, two, missing, &lookup), "as key 1 and 2");
    cadre_tensor_release(two);
    cadre_tensor_release(asked);
    cadre_tensor_release(other);
    cadre_tensor_release(names);
    cadre_tensor_release(missing);
    cadre_tensor_release(keys);
}

/* --- threads, memory --- */

static void *look_up_often(void *user)
{
    cadre_tensor *tokens = strings(3, (const char *[]){"b", "d", "x"});
    for (int i = 0; i < 300; i++) {
        cadre_tensor *ids;
        if (cadre_lookup_apply(user, tokens, &ids) != CADRE_OK ||
            ((const int64_t *)cadre_tensor_const_data(ids))[1] != 4) {
            return user;
        }
        cadre_tensor_release(ids);
    }
    cadre_tensor_release(tokens);
    return NULL;
}

static void several_threads_use_one(void **state)
{
    (void)state;
    pthread_t threads[4];
    cadre_lookup *lookup;
    assert_public_ok(cadre_lookup_strings(letters, 4, NULL, &lookup));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, look_up_often, lookup), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    cadre_lookup_release(lookup);
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    cadre_tensor *ids = integers(1, (int64_t[]){1});
    file_of("a\nb\n", 4, path);
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        cadre_lookup *lookup;
        cadre_tensor *tokens = NULL;
        fault_arm("preprocessing.malloc", nth);
        cadre_status status = cadre_lookup_file(path, CADRE_STRING, NULL, &lookup);
        if (status == CADRE_OK) {
            status = cadre_lookup_invert(lookup, ids, &tokens);
        }
        met = fault_disarm();
        assert_int_equal(status, met ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        cadre_tensor_release(tokens);
        cadre_lookup_release(lookup);
        assert_true(nth < 20);
    }
    cadre_tensor_release(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_get_ids_in_their_order),
        cmocka_unit_test(several_oov_ids_are_those_of_tensorflow),
        cmocka_unit_test(the_mask_comes_before_oov),
        cmocka_unit_test(integers_have_vocabularies_too),
        cmocka_unit_test(without_oov_unknown_tokens_are_named),
        cmocka_unit_test(shapes_are_kept),
        cmocka_unit_test(many_tokens_are_found),
        cmocka_unit_test(bad_vocabularies_are_refused),
        cmocka_unit_test(bad_tokens_are_refused),
        cmocka_unit_test(files_hold_one_token_a_line),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(tables_give_values),
        cmocka_unit_test(several_threads_use_one),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
