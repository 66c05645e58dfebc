/* SPDX-License-Identifier: Apache-2.0
 * Random numbers that are the same whichever replica draws them: cadre/random.h. */
#include <math.h>

#include "documents.h"

/* A stream is a function of what it is for; a copy of it draws the same again. */
static void a_stream_is_a_value(void **state)
{
    (void)state;
    cadre_random stream;
    cadre_random other;
    OK(cadre_random_for_sample(7, "noise", 0, 12, &stream));
    cadre_random again = stream;
    uint64_t first = cadre_random_u64(&stream);
    assert_true(cadre_random_u64(&again) == first);
    assert_true(cadre_random_u64(&stream) != first);
    OK(cadre_random_for_sample(7, "noise", 0, 13, &other)); /* another sample draws others */
    assert_true(cadre_random_u64(&other) != first);
}

/* Streams are split off one for as many things as there are, in any order. */
static void a_stream_is_split(void **state)
{
    (void)state;
    cadre_random stream;
    OK(cadre_random_for_sample(7, "layers", 0, 0, &stream));
    cadre_random second = cadre_random_split(&stream, 2);
    cadre_random first = cadre_random_split(&stream, 1);
    cadre_random second_again = cadre_random_split(&stream, 2);
    uint64_t drawn = cadre_random_u64(&second);
    assert_true(drawn == cadre_random_u64(&second_again));
    assert_true(drawn != cadre_random_u64(&first));
}

/* Numbers below a bound, and normal ones; whole tensors of them. */
static void numbers_have_distributions(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    cadre_random stream;
    int counts[3] = {0};
    double sum = 0;
    OK(cadre_random_for_sample(7, "numbers", 0, 0, &stream));
    for (int i = 0; i < DRAWS; i++) {
        counts[cadre_random_below(&stream, 3)]++;
        sum += cadre_random_normal(&stream);
    }
    assert_true(fabs(sum / DRAWS) < 0.1);
    for (int i = 0; i < 3; i++) {
        assert_in_range(counts[i], DRAWS / 3 - 200, DRAWS / 3 + 200);
    }
    const int64_t dims[] = {DRAWS};
    cadre_tensor *tensor;
    double of_tensor = 0;
    OK(cadre_tensor_create(CADRE_F32, 1, dims, &tensor));
    OK(cadre_random_fill_normal(&stream, 10, 2, tensor));
    for (int i = 0; i < DRAWS; i++) {
        of_tensor += (double)((const float *)cadre_tensor_const_data(tensor))[i];
    }
    assert_true(fabs(of_tensor / DRAWS - 10) < 0.2);
    cadre_tensor_release(tensor);
}

static cadre_status choose(const cadre_element *in, cadre_element *ret_out, void *user)
{
    cadre_random stream;
    (void)in;
    (void)user;
    CADRE_TRY(cadre_random_for_element(7, "choice", 0, &stream));
    ret_out->count = 1;
    return cadre_tensor_from_i64(
        (int64_t)cadre_random_below(&stream, 1000000), &ret_out->tensors[0]);
}

/* A map function draws for the sample that it is called for: the same number in whatever batch or
 * order it comes, which is that of cadre_random_for_sample. */
static void map_functions_draw_for_samples(void **state)
{
    (void)state;
    cadre_element element;
    cadre_iterator *iterator;
    cadre_random stream;
    cadre_dataset *data = cadre_dataset_range(0, 8, 1);
    data = cadre_dataset_skip(cadre_dataset_map(data, choose, NULL, NULL), 5);
    OK(cadre_dataset_iterate(data, 0, &iterator));
    OK(cadre_iterator_next(iterator, &element));
    OK(cadre_random_for_sample(7, "choice", 0, 5, &stream));
    assert_int_equal(*(const int64_t *)cadre_tensor_const_data(element.tensors[0]),
        cadre_random_below(&stream, 1000000));
    cadre_element_release(&element);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    REFUSED(cadre_random_for_element(7, "choice", 0, &stream), CADRE_FAILED_PRECONDITION, "map");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_a_value),
        cmocka_unit_test(a_stream_is_split),
        cmocka_unit_test(numbers_have_distributions),
        cmocka_unit_test(map_functions_draw_for_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
