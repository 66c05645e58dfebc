/* SPDX-License-Identifier: Apache-2.0
 * Vocabularies that are found in a dataset, by one task: order, ties, what is left out, bad input.
 * Those of several tasks: test_adapt.c. */
#include "tests/unit/runtime/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "worker/library/preprocessing/token_counts.h"

static cadre_dataset *rows_of(cadre_dtype dtype, int64_t rows, int64_t columns, const void *values)
{
    const int64_t dims[2] = {rows, columns};
    cadre_tensor *tensor;
    assert_public_ok(cadre_tensor_from_data(dtype, 2, dims, values, &tensor));
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return data;
}

static cadre_dataset *words(size_t count, const char *const values[])
{
    cadre_string texts[16];
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        texts[i] = (cadre_string){values[i], strlen(values[i])};
    }
    return rows_of(CADRE_STRING, (int64_t)count, 1, texts);
}

/* The tokens of all ids, the mask and OOV with them, as "a b c". Takes the lookup. */
static void check(cadre_lookup *lookup, const char *wanted)
{
    char got[512] = "";
    size_t used = 0;
    int64_t size = cadre_lookup_size(lookup);
    for (int64_t id = 0; id < size; id++) {
        cadre_tensor *one;
        cadre_tensor *token;
        assert_public_ok(cadre_tensor_from_i64(id, &one));
        assert_public_ok(cadre_lookup_invert(lookup, one, &token));
        const void *data = cadre_tensor_const_data(token);
        const char *space = id == 0 ? "" : " ";
        if (cadre_tensor_dtype(token) == CADRE_STRING) {
            const cadre_string *text = data;
            used += (size_t)snprintf(
                got + used, sizeof got - used, "%s%.*s", space, (int)text->size, text->bytes);
        } else {
            used += (size_t)snprintf(
                got + used, sizeof got - used, "%s%lld", space, (long long)*(const int64_t *)data);
        }
        cadre_tensor_release(one);
        cadre_tensor_release(token);
    }
    assert_string_equal(got, wanted);
    cadre_lookup_release(lookup);
}

static cadre_lookup *adapted(
    cadre_strategy *strategy, cadre_dataset *data, const cadre_lookup_options *options)
{
    cadre_lookup *lookup;
    assert_public_ok(cadre_lookup_adapt(strategy, data, options, &lookup));
    return lookup;
}

/* The samples in the documentation of StringLookup and IntegerLookup. */
static void the_order_is_that_of_keras(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    static const cadre_string texts[6] = {
        {"a", 1}, {"c", 1}, {"d", 1}, {"d", 1}, {"z", 1}, {"b", 1}};
    check(adapted(strategy, rows_of(CADRE_STRING, 2, 3, texts), NULL), "[UNK] d z c b a");
    static const int64_t numbers[6] = {12, 1138, 42, 42, 1000, 36};
    check(adapted(strategy, rows_of(CADRE_I64, 2, 3, numbers), NULL), "-1 42 1138 1000 36 12");
    static const uint8_t small[6] = {12, 250, 42, 42, 200, 36};
    check(adapted(strategy, rows_of(CADRE_U8, 2, 3, small), NULL), "-1 42 250 200 36 12");
    static const int32_t negative[4] = {-7, 3, -9, 0};
    check(adapted(strategy, rows_of(CADRE_I32, 4, 1, negative), NULL), "-1 3 0 -7 -9");
    /* Strings byte by byte, as unsigned ones; a longer one is greater than its beginning. */
    static const char *const bytes[5] = {"ab", "a", "b", "\xc3\xa4", "B"};
    check(adapted(strategy, words(5, bytes), NULL), "[UNK] \xc3\xa4 b ab a B");
    cadre_strategy_release(strategy);
}

static void a_limit_counts_the_mask_and_oov(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    static const char *const list[6] = {"x", "y", "y", "z", "z", "z"};
    cadre_lookup_options options = {.max_tokens = 3};
    check(adapted(strategy, words(6, list), &options), "[UNK] z y");
    options.oov_ids = 2;
    check(adapted(strategy, words(6, list), &options), "[UNK] [UNK] z");
    options = (cadre_lookup_options){.max_tokens = 3, .mask_string = ""};
    check(adapted(strategy, words(6, list), &options), " [UNK] z");
    options = (cadre_lookup_options){.max_tokens = 2, .oov_ids = CADRE_LOOKUP_NO_OOV};
    check(adapted(strategy, words(6, list), &options), "z y");
    options.max_tokens = 100;
    check(adapted(strategy, words(6, list), &options), "z y x");
    cadre_strategy_release(strategy);
}

/* Keras removes both from what it has counted, the OOV token also where it has no id. */
static void special_tokens_are_not_counted(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    static const char *const list[6] = {"", "", "[UNK]", "q", "[UNK]", "#"};
    cadre_lookup_options options = {.mask_string = ""};
    check(adapted(strategy, words(6, list), &options), " [UNK] q #");
    check(adapted(strategy, words(6, list), NULL), "[UNK]  q #");
    options = (cadre_lookup_options){.oov_string = "#", .oov_ids = CADRE_LOOKUP_NO_OOV};
    check(adapted(strategy, words(6, list), &options), "[UNK]  q");
    const int64_t mask = 0;
    const int64_t oov = 9;
    static const int64_t numbers[6] = {0, 0, 9, 9, 5, -1};
    options = (cadre_lookup_options){.mask_integer = &mask, .oov_integer = &oov};
    check(adapted(strategy, rows_of(CADRE_I64, 6, 1, numbers), &options), "0 9 5 -1");
    cadre_strategy_release(strategy);
}

/* --- much data, read in all ways --- */

enum { NUMBERS = 20000, DIFFERENT = 3000 };

static int64_t numbers[NUMBERS];
static int64_t times[DIFFERENT];

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    if (times[a] != times[b]) {
        return times[a] > times[b] ? -1 : 1;
    }
    return a > b ? -1 : 1;
}

/* One number an element: 3 rounds. */
static void all_ways_of_reading_give_the_same(void **state)
{
    (void)state;
    static int64_t order[DIFFERENT];
    struct prng prng = {.state = 11};
    int64_t count = 0;
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = (int64_t)prng_uniform(&prng, 1 + prng_uniform(&prng, DIFFERENT));
        times[numbers[i]]++;
    }
    for (int64_t i = 0; i < DIFFERENT; i++) {
        if (times[i] > 0) {
            order[count++] = i;
        }
    }
    qsort(order, (size_t)count, sizeof order[0], compare);
    for (uint32_t replicas = 1; replicas <= 3; replicas += 2) {
        for (int64_t batch = 1; batch <= 7; batch += 6) {
            for (int ordered = 0; ordered < 2; ordered++) {
                cadre_strategy *strategy = training_strategy(replicas);
                cadre_dataset *data = rows_of(CADRE_I64, NUMBERS, 1, numbers);
                data = ordered ? cadre_dataset_shuffle(data, 5, 3, NULL) : data;
                data = batch > 1 ? cadre_dataset_batch(data, batch, false) : data;
                cadre_lookup *lookup = adapted(strategy, data, NULL);
                assert_int_equal(cadre_lookup_size(lookup), count + 1);
                cadre_tensor *tokens;
                cadre_tensor *ids;
                assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, &count, order, &tokens));
                assert_public_ok(cadre_lookup_apply(lookup, tokens, &ids));
                for (int64_t i = 0; i < count; i++) {
                    assert_int_equal(((const int64_t *)cadre_tensor_const_data(ids))[i], i + 1);
                }
                cadre_tensor_release(tokens);
                cadre_tensor_release(ids);
                cadre_lookup_release(lookup);
                cadre_strategy_release(strategy);
            }
        }
    }
}

/* What is adapted maps the data: the most frequent tokens get the lowest ids. */
static void another_component_is_counted(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    static const char *const list[4] = {"u", "v", "v", "w"};
    cadre_dataset *const parts[2] = {cadre_dataset_range(0, 4, 1), words(4, list)};
    const cadre_lookup_options options = {.component = 1};
    check(adapted(strategy, cadre_dataset_zip(parts, 2), &options), "[UNK] v w u");
    cadre_strategy_release(strategy);
}

/* --- counts as bytes --- */

static void counts_are_added_up(void **state)
{
    (void)state;
    const cadre_string texts[5] = {{"a\0b", 3}, {NULL, 0}, {"a", 1}, {"a\0b", 3}, {"a\0c", 3}};
    const int64_t five = 5;
    cadre_tensor *tokens;
    cadre_tensor *list;
    struct cadre_error error = {0};
    struct token_counts counts = {.dtype = CADRE_STRING};
    struct token_counts all = {.dtype = CADRE_STRING};
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &five, texts, &tokens));
    assert_int_equal(token_counts_add(&counts, tokens, &error), CADRE_OK);
    assert_int_equal(counts.count, 4);
    size_t bytes = token_counts_bytes(&counts);
    char *counts_bytes = calloc(2, bytes);
    token_counts_write(&counts, counts_bytes);
    token_counts_write(&counts, counts_bytes + bytes);
    assert_int_equal(token_counts_read(&all, counts_bytes, 2 * bytes, &error), CADRE_OK);
    assert_int_equal(token_counts_merge(&all, &counts, &error), CADRE_OK);
    assert_int_equal(all.count, 4);
    for (size_t i = 0; i < all.count; i++) {
        assert_int_equal(all.tokens[i].count, 3 * counts.tokens[i].count);
    }
    cadre_tensor *none;
    const int64_t zero = 0;
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &zero, NULL, &none));
    assert_int_equal(token_counts_vocabulary(&all, none, 3, &list, &error), CADRE_OK);
    assert_int_equal(cadre_tensor_count(list), 3);
    const cadre_string *first = cadre_tensor_const_data(list);
    assert_memory_equal(first[0].bytes, "a\0b", 3);
    assert_memory_equal(first[1].bytes, "a\0c", 3);
    assert_int_equal(first[2].size, 1);
    /* What is cut off anywhere but behind a token is not read. */
    size_t whole = 0;
    for (size_t cut = 1; cut < bytes; cut++) {
        struct token_counts damaged = {.dtype = CADRE_STRING};
        whole += token_counts_read(&damaged, counts_bytes, cut, &error) == CADRE_OK ? 1 : 0;
        token_counts_free(&damaged);
    }
    assert_int_equal(whole, 3);
    token_counts_empty(&all);
    assert_int_equal(token_counts_bytes(&all), 0);
    token_counts_free(&counts);
    token_counts_free(&all);
    cadre_tensor_release(tokens);
    cadre_tensor_release(list);
    cadre_tensor_release(none);
    free(counts_bytes);
}

/* --- bad input --- */

static cadre_status fail_late(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    if (*(const int64_t *)cadre_tensor_const_data(in->tensors[0]) == 7) {
        return cadre_fail(CADRE_DATA_LOSS, "line 8 is torn");
    }
    ret_out->count = 1;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    return CADRE_OK;
}

static void what_has_no_vocabulary_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_lookup *lookup;
    static const char *const list[3] = {"a", "b", "c"};
    static const float reals[2] = {1, 2};
    cadre_lookup_options options = {.component = 1};
    assert_public_error(cadre_lookup_adapt(strategy, words(3, list), &options, &lookup),
        CADRE_INVALID_ARGUMENT, "there is no component 1");
    assert_null(lookup);
    assert_public_error(
        cadre_lookup_adapt(strategy, rows_of(CADRE_F32, 2, 1, reals), NULL, &lookup),
        CADRE_INVALID_ARGUMENT, "tokens are strings or integers");
    assert_public_error(
        cadre_lookup_adapt(
            strategy, cadre_dataset_repeat(words(3, list), CADRE_REPEAT_FOREVER), NULL, &lookup),
        CADRE_INVALID_ARGUMENT, "without an end");
    assert_public_error(
        cadre_lookup_adapt(strategy, cadre_dataset_take(words(3, list), 0), NULL, &lookup),
        CADRE_INVALID_ARGUMENT, "no token");
    options = (cadre_lookup_options){.max_tokens = 2, .oov_ids = 2};
    assert_public_error(cadre_lookup_adapt(strategy, words(3, list), &options, &lookup),
        CADRE_INVALID_ARGUMENT, "leave room for a token");
    options = (cadre_lookup_options){.max_tokens = -1};
    assert_public_error(cadre_lookup_adapt(strategy, words(3, list), &options, &lookup),
        CADRE_INVALID_ARGUMENT, "max_tokens is -1");
    options = (cadre_lookup_options){.mask_integer = &(int64_t){0}};
    assert_public_error(cadre_lookup_adapt(strategy, words(3, list), &options, &lookup),
        CADRE_INVALID_ARGUMENT, "set mask_string instead");
    options = (cadre_lookup_options){.max_tokens = 3};
    assert_public_error(cadre_lookup_strings(list, 3, &options, &lookup), CADRE_INVALID_ARGUMENT,
        "max_tokens 3 has room for 2");
    assert_public_error(
        cadre_lookup_adapt(strategy,
            cadre_dataset_map(cadre_dataset_range(0, 9, 1), fail_late, NULL, NULL), NULL, &lookup),
        CADRE_DATA_LOSS, "line 8 is torn");
    assert_public_error(
        cadre_lookup_adapt(strategy, NULL, NULL, &lookup), CADRE_RESOURCE_EXHAUSTED, "NULL");
    assert_public_error(cadre_lookup_adapt(strategy, words(3, list), NULL, NULL),
        CADRE_INVALID_ARGUMENT, "ret_lookup");
    check(adapted(strategy, words(3, list), NULL), "[UNK] c b a");
    cadre_strategy_release(strategy);
    assert_public_error(cadre_lookup_adapt(strategy, words(3, list), NULL, &lookup),
        CADRE_FAILED_PRECONDITION, "cadre_lookup_adapt");
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    static const char *const list[3] = {"a", "b", "c"};
    cadre_strategy *strategy = training_strategy(1);
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        cadre_lookup *lookup;
        cadre_dataset *data = words(3, list);
        fault_arm("preprocessing.malloc", nth);
        cadre_status status = cadre_lookup_adapt(strategy, data, NULL, &lookup);
        met = fault_disarm();
        assert_int_equal(status, met ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        cadre_lookup_release(lookup);
        assert_true(nth < 40);
    }
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_keras),
        cmocka_unit_test(a_limit_counts_the_mask_and_oov),
        cmocka_unit_test(special_tokens_are_not_counted),
        cmocka_unit_test(all_ways_of_reading_give_the_same),
        cmocka_unit_test(another_component_is_counted),
        cmocka_unit_test(counts_are_added_up),
        cmocka_unit_test(what_has_no_vocabulary_is_refused),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
