/* SPDX-License-Identifier: Apache-2.0
 * Variables as a file that other programs read, and variables of one: cadre/export.h. */
#include <stdio.h>

#include "documents.h"

/* A tensor of the file is called as its signature says; who imports it has a variable under the
 * name that it was exported from, with its type, shape and value. */
static void variables_come_from_a_file(void **state)
{
    (void)state;
    const int64_t two[] = {2};
    const cadre_signature offered[] = {{"kernel", "dense/kernel"}};
    char path[TEST_PATH_BYTES];
    cadre_variable *kernel;
    cadre_strategy *strategy = training_strategy(1);
    test_path(path, training_folder(), "model.safetensors");
    OK(cadre_variable_create(strategy, "dense/kernel", CADRE_F32, 1, two, NULL, &kernel));
    OK(cadre_variable_assign_literal(NULL, kernel, CADRE_ASSIGN, 1.5));
    OK(cadre_export(strategy, path, offered, 1));
    REFUSED(cadre_import(strategy, path), CADRE_ALREADY_EXISTS, "dense/kernel");
    cadre_strategy_release(strategy);

    strategy = training_strategy(2);
    OK(cadre_import(strategy, path));
    OK(cadre_variable_find(strategy, "dense/kernel", &kernel));
    assert_int_equal(cadre_variable_dtype(kernel), CADRE_F32);
    assert_float_equal(((const float *)cadre_variable_read(NULL, kernel))[1], 1.5, 0);
    REFUSED(cadre_import(strategy, "nowhere.safetensors"), CADRE_NOT_FOUND, "nowhere");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(variables_come_from_a_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
