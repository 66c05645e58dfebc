/* SPDX-License-Identifier: Apache-2.0
 * The program under test with parameter servers. */
#include <poll.h>

#include "tests/integration/traced.h"

#define CLOSURES 4 /* of a step */

static cadre_status add_one(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    const struct traced *options = user;
    cadre_variable *sum;
    CADRE_RELEASE_AT_EXIT(tensor) value = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) one = NULL;
    (void)closure;
    (void)outputs;
    CADRE_TRY(cadre_variable_find(NULL, "sum", &sum));
    CADRE_TRY(cadre_variable_value(NULL, sum, NULL, &value));
    (void)poll(NULL, 0, options->function_ms);
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    return cadre_variable_push(NULL, sum, CADRE_ASSIGN_ADD, one, NULL, NULL);
}

int train_on_servers(struct traced *options)
{
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_function_register("add_one", add_one, options));
    if (cadre_task_serves()) {
        return cadre_serve();
    }
    CADRE_CHECK(cadre_strategy_parameter_server(NULL, &strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, NULL, &options->sum));
    while (cadre_strategy_position(strategy) < options->steps) {
        for (int i = 0; i < CLOSURES; i++) {
            CADRE_CHECK(cadre_schedule(strategy, "add_one", NULL, 0, NULL));
        }
        CADRE_CHECK(cadre_join(strategy));
        (void)poll(NULL, 0, options->between_ms);
    }
    return cadre_finish(strategy);
}
