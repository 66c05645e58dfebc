/* SPDX-License-Identifier: Apache-2.0
 * Regular variables, which were created outside of any strategy's scope: plain memory, one
 * component, no strategy, no step. */
#include <pthread.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/variables/assign.h"
#include "worker/library/runtime/variables/variable_plain.h"

/* Replicas may assign the same one at the same time. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

cadre_status plain_create(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    CADRE_ASSERT(plan->strategy == NULL);
    cadre_variable *variable = NULL;
    CADRE_TRY(variable_new(plan, &variable, error));
    cadre_status status = CADRE_OK;
    if (plan->dtype != CADRE_STRING) {
        status = initializer_fill(&plan->options->initializer, plan->name, plan->dtype,
            variable->count, variable->components[0].value, error);
    }
    if (status != CADRE_OK) {
        variable_free(variable);
        return status;
    }
    *ret_variable = variable;
    return CADRE_OK;
}

void plain_lock(void)
{
    pthread_mutex_lock(&writing);
}

void *plain_open(cadre_variable *variable)
{
    CADRE_ASSERT(variable->kind == CADRE_VARIABLE_REGULAR);
    plain_lock();
    return variable->components[0].value;
}

void plain_close(void)
{
    pthread_mutex_unlock(&writing);
}

cadre_status assign_plain(const struct assignment *assignment, struct cadre_error *error)
{
    cadre_variable *variable = assignment->variable;
    cadre_tensor *strings = NULL;
    if (variable->dtype == CADRE_STRING) {
        CADRE_TRY(tensor_copy(assignment->value, &strings, error));
    }
    cadre_status status = CADRE_OK;
    (void)plain_open(variable);
    if (strings != NULL) {
        cadre_tensor_release(variable->strings);
        variable->strings = strings;
    } else {
        status = assign_write(
            variable, &variable->components[0], assignment->value, assignment->how, error);
    }
    plain_close();
    return status;
}

void cadre_variable_release(cadre_variable *variable)
{
    if (variable_is_registered(variable) && variable->kind == CADRE_VARIABLE_REGULAR) {
        variable_free(variable);
    }
}
