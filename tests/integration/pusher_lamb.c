/* SPDX-License-Identifier: Apache-2.0 */
#include "pusher_lamb.h"

#include <math.h>
#include <stdio.h>

#define FIRST_POWER 400
#define NAME        "halved"

void pusher_create_halved(cadre_strategy *strategy)
{
    const int64_t dims[2] = {7, 3};
    const cadre_variable_options of_halved = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = ldexp(1, FIRST_POWER)}};
    /* Without a gradient: u = w / 2, |w| / |u| = 2, w -= 0.5 * 2 * u */
    const cadre_optimizer_options lamb = {
        .kind = CADRE_OPTIMIZER_LAMB, .rate = 0.5, .weight_decay = 0.5};
    cadre_optimizer *optimizer;
    cadre_variable *halved;
    CADRE_CHECK(cadre_variable_create(strategy, NAME, CADRE_F64, 2, dims, &of_halved, &halved));
    CADRE_CHECK(cadre_optimizer_create(strategy, &lamb, &optimizer));
    CADRE_CHECK(cadre_optimizer_build(optimizer, &halved, 1));
    cadre_optimizer_release(optimizer);
}

cadre_status pusher_halve(const cadre_push_options *options)
{
    cadre_variable *halved;
    cadre_tensor *zeros;
    CADRE_TRY(cadre_variable_find(NULL, NAME, &halved));
    CADRE_TRY(cadre_tensor_create(CADRE_F64, 2, cadre_variable_dims(halved), &zeros));
    cadre_status status =
        cadre_variable_push(NULL, halved, CADRE_ASSIGN_UPDATE, zeros, NULL, options);
    cadre_tensor_release(zeros);
    return status;
}

void pusher_begin_halving(uint64_t step)
{
    cadre_variable *halved;
    CADRE_CHECK(cadre_variable_find(NULL, NAME, &halved));
    CADRE_CHECK(cadre_variable_begin_step(halved, step));
}

int64_t pusher_wrong_halves(int64_t updates)
{
    const double wanted = ldexp(1, FIRST_POWER - (int)updates);
    cadre_variable *halved;
    cadre_tensor *value;
    int64_t wrong = 0;
    CADRE_CHECK(cadre_variable_find(NULL, NAME, &halved));
    CADRE_CHECK(cadre_variable_value(NULL, halved, NULL, &value));
    const double *numbers = cadre_tensor_const_data(value);
    for (int64_t i = 0; i < cadre_tensor_count(value); i++) {
        if (!(numbers[i] >= wanted && numbers[i] <= wanted) && wrong++ == 0) {
            printf("%s: element %lld had %g updates instead of %lld\n", NAME, (long long)i,
                FIRST_POWER - log2(numbers[i]), (long long)updates);
        }
    }
    cadre_tensor_release(value);
    return wrong;
}
