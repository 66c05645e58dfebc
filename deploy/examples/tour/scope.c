/* SPDX-License-Identifier: Apache-2.0
 * A variable that is created in a strategy's scope has a component on each replica; one that is
 * created outside is plain memory of this process. */
#include <cadre/cadre.h>
#include <stdio.h>

/* What a replica function reads of a variable is its own component. */
static cadre_status read_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    return cadre_tensor_from_f32(*(const float *)cadre_variable_read(replica, user), &outputs[0]);
}

int main(int argc, char **argv)
{
    const cadre_variable_options one = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 1}};
    cadre_strategy *strategy;
    cadre_variable *mirrored, *regular;
    cadre_per_replica *values;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));

    CADRE_CHECK(cadre_scope_enter(strategy));
    CADRE_CHECK(cadre_variable_create(NULL, "Variable", CADRE_F32, 0, NULL, &one, &mirrored));
    CADRE_CHECK(cadre_scope_leave(strategy));
    CADRE_CHECK(cadre_run(strategy, read_own, mirrored, NULL, 1, &values));
    for (uint32_t r = 0; r < cadre_variable_components(mirrored); r++) {
        char name[64];
        cadre_variable_component_name(mirrored, r, name, sizeof name);
        printf("%s = %g\n", name,
            (double)*(const float *)cadre_tensor_const_data(cadre_local_results(values, 0)[r]));
    }

    CADRE_CHECK(cadre_variable_create(NULL, "Variable", CADRE_F32, 0, NULL, &one, &regular));
    printf(
        "outside of the scope: %g\n", (double)*(const float *)cadre_variable_read(NULL, regular));
    cadre_variable_release(regular);
    return cadre_finish(strategy);
}
