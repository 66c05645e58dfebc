/* SPDX-License-Identifier: Apache-2.0
 * A variable that a function of the program creates when it is called first is a mirrored one, when
 * the call is in the strategy's scope. */
#include <cadre/cadre.h>
#include <stdio.h>

static cadre_status get_variable(cadre_variable **ret_variable)
{
    const cadre_variable_options one = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 1}};
    return cadre_variable_find(NULL, "x", ret_variable) == CADRE_OK
               ? CADRE_OK
               : cadre_variable_create(NULL, "x", CADRE_F32, 0, NULL, &one, ret_variable);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_variable *first, *second;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_scope_enter(strategy));
    CADRE_CHECK(get_variable(&first));
    CADRE_CHECK(get_variable(&second));
    CADRE_CHECK(cadre_scope_leave(strategy));
    printf("%s, %u of them here, the same one: %s\n",
        cadre_variable_kind(first) == CADRE_VARIABLE_MIRRORED ? "mirrored" : "not mirrored",
        cadre_variable_components(first), first == second ? "yes" : "no");
    return cadre_finish(strategy);
}
