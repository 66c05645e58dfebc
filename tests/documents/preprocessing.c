/* SPDX-License-Identifier: Apache-2.0
 * From tokens to ids, and numbers to a common scale: cadre/preprocessing.h. What a job finds in its
 * data by itself: deploy/examples/tour/preprocess.c. */
#include "documents.h"

/* A vocabulary gives each token its number; what it does not know is number 0. */
static void tokens_become_ids(void **state)
{
    (void)state;
    cadre_tensor *tokens = strings("cat", "dog");
    cadre_tensor *text = strings("dog", "cow", "cat");
    cadre_tensor *ids;
    cadre_tensor *back;
    cadre_lookup *lookup;
    OK(cadre_lookup_create(tokens, NULL, &lookup));
    OK(cadre_lookup_apply(lookup, text, &ids));
    assert_tensor(ids, "[2 0 1]");
    OK(cadre_lookup_invert(lookup, ids, &back));
    assert_given(back, "[dog [UNK] cat]");
    cadre_lookup_release(lookup);
    cadre_tensor_release(ids);
    cadre_tensor_release(text);
    cadre_tensor_release(tokens);
}

/* It is read from a file, a token in each line. In a pipeline ids become tokens as tokens become
 * ids. */
static void a_vocabulary_is_a_file(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    cadre_lookup *lookup;
    test_write(test_path(path, test_temp_dir(), "tokens.txt"), "cat\ndog\n");
    OK(cadre_lookup_file(path, CADRE_STRING, NULL, &lookup));
    cadre_dataset *ids = cadre_dataset_range(0, 3, 1);
    assert_elements(cadre_dataset_map(ids, cadre_lookup_invert_map, lookup, NULL), "[UNK] cat dog");
    cadre_lookup_release(lookup);
}

/* A table gives keys values of any type, and all other keys one value. */
static void keys_have_values(void **state)
{
    (void)state;
    cadre_tensor *keys = strings("kg", "g");
    cadre_tensor *values = floats(1000, 1);
    cadre_tensor *missing;
    cadre_tensor *text = strings("g", "mile", "kg");
    cadre_tensor *found;
    cadre_lookup *table;
    OK(cadre_tensor_from_f32(-1, &missing));
    OK(cadre_lookup_table(keys, values, missing, &table));
    OK(cadre_lookup_apply(table, text, &found));
    assert_given(found, "[1 -1 1000]");
    cadre_lookup_release(table);
    cadre_tensor_release(text);
    cadre_tensor_release(missing);
    cadre_tensor_release(values);
    cadre_tensor_release(keys);
}

/* Each column gets mean 0 and variance 1, by its own mean and variance; and back. */
static void columns_are_scaled(void **state)
{
    (void)state;
    cadre_tensor *mean = floats(10, 0);
    cadre_tensor *variance = floats(4, 1);
    cadre_tensor *values = rows(2, floats(12, 3, 8, -1));
    cadre_tensor *scaled;
    cadre_tensor *back;
    cadre_tensor *is_mean;
    cadre_tensor *is_variance;
    cadre_normalization *normalization;
    OK(cadre_normalization_create(mean, variance, -1, &normalization));
    OK(cadre_normalization_apply(normalization, values, &scaled));
    assert_tensor(scaled, "[[1 3] [-1 -1]]");
    OK(cadre_normalization_invert(normalization, scaled, &back));
    assert_given(back, "[[12 3] [8 -1]]");
    OK(cadre_normalization_moments(normalization, &is_mean, &is_variance));
    assert_given(is_mean, "[10 0]");
    assert_given(is_variance, "[4 1]");
    cadre_normalization_release(normalization);
    cadre_tensor_release(scaled);
    cadre_tensor_release(values);
    cadre_tensor_release(variance);
    cadre_tensor_release(mean);
}

/* Images are cropped: in their middle for an evaluation, anywhere by chance for a training. */
static void images_are_cropped(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 4, 4, 1};
    const float pixels[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    cadre_random_crop_options options = {.center = true, .height = 2, .width = 2};
    cadre_tensor *image;
    OK(cadre_tensor_from_data(CADRE_F32, 4, dims, pixels, &image));
    cadre_dataset *data = cadre_dataset_tensor_slices(&image, 1);
    assert_elements(
        cadre_dataset_map(data, cadre_random_crop_map, &options, NULL), "[[[5] [6]] [[9] [10]]]");
    cadre_tensor_release(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_become_ids),
        cmocka_unit_test(a_vocabulary_is_a_file),
        cmocka_unit_test(keys_have_values),
        cmocka_unit_test(columns_are_scaled),
        cmocka_unit_test(images_are_cropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
