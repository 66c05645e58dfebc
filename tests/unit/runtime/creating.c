/* SPDX-License-Identifier: Apache-2.0 */
#include "creating.h"

static cadre_status create_all(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct creating *creating = user;
    uint32_t local = cadre_replica_local_id(replica);
    (void)inputs;
    (void)outputs;
    for (int i = 0; i < CREATED_MAX && creating->names[i] != NULL; i++) {
        cadre_status status = cadre_variable_create(NULL, creating->names[i], creating->dtype,
            creating->rank, creating->dims, &creating->options, &creating->got[local][i]);
        if (status != CADRE_OK && !creating->forgives) {
            return status;
        }
    }
    if (creating->add != 0) {
        double *value = cadre_variable_write(replica, creating->got[local][0]);
        *value += creating->add;
    }
    return creating->fails ? cadre_fail(CADRE_DATA_LOSS, "the step is to fail") : CADRE_OK;
}

cadre_status creating_run(cadre_strategy *strategy, struct creating *creating)
{
    return cadre_run(strategy, create_all, creating, NULL, 0, NULL);
}

cadre_variable *creating_one(cadre_strategy *strategy, const char *name, double value)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value}};
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F64, 0, NULL, &options, &variable));
    return variable;
}

double creating_value(const cadre_variable *variable)
{
    const double *value = cadre_variable_read(NULL, variable);
    assert_non_null(value);
    return *value;
}
