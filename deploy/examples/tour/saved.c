/* SPDX-License-Identifier: Apache-2.0
 * Values go into a file, and come back: into variables that are there at once, into others where
 * they are created. The file is one that other programs read (safetensors). */
#include "show.h"

#include <stdio.h>

static void show_variable(const char *when, const cadre_variable *variable)
{
    const float *values = cadre_variable_read(NULL, variable);
    printf("%s: %s = %g %g\n", when, cadre_variable_name(variable), (double)values[0],
        (double)values[1]);
}

int main(int argc, char **argv)
{
    const int64_t two[] = {2};
    const cadre_signature offered[] = {{"kernel", "dense/kernel"}, {"bias", "dense/bias"}};
    cadre_strategy *strategy;
    cadre_variable *kernel, *other;
    cadre_restore_result found;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));

    CADRE_CHECK(cadre_variable_create(strategy, "dense/kernel", CADRE_F32, 1, two, NULL, &kernel));
    CADRE_CHECK(cadre_variable_create(strategy, "dense/bias", CADRE_F32, 1, two, NULL, &other));
    CADRE_CHECK(cadre_variable_assign_literal(NULL, kernel, CADRE_ASSIGN, 3));
    CADRE_CHECK(cadre_variable_assign_literal(NULL, other, CADRE_ASSIGN, 0.5));
    CADRE_CHECK(cadre_export(strategy, "model.safetensors", offered, 2));

    CADRE_CHECK(cadre_variable_assign_literal(NULL, kernel, CADRE_ASSIGN, 0));
    show_variable("forgotten", kernel);
    CADRE_CHECK(cadre_variable_create(strategy, "head", CADRE_F32, 1, two, NULL, &other));
    CADRE_CHECK(cadre_restore(strategy, "model.safetensors", &found));
    show_variable("restored", kernel);
    printf("%u have their values, %u not: %s\n", found.restored, found.missing_count,
        found.missing[0]);
    if (cadre_restored(strategy, CADRE_RESTORED_EXISTING, NULL) != CADRE_OK) {
        printf("so not all that exist were matched\n");
    }
    return cadre_finish(strategy);
}
