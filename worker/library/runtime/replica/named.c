/* SPDX-License-Identifier: Apache-2.0
 * Named inputs and outputs of a replica function. */
#include <string.h>

#include "cadre/replica.h"
#include "worker/library/device/argument.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

cadre_status cadre_replica_input(
    const cadre_replica *replica, const char *name, cadre_tensor **ret_tensor)
{
    struct cadre_error error;
    uint32_t component = 0;
    error.code = CADRE_OK;
    error.text[0] = '\0'; /* not zeroed whole: it is half a kilobyte, in each call */
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = argument_require(name, __func__, "name", &error);
    }
    status = status == CADRE_OK ? step_require(replica, __func__, &error) : status;
    if (status == CADRE_OK) {
        const struct step *step = &replica->strategy->step;
        status = component_names_find(
            step->input_names, step->input_count, name, __func__, &component, &error);
    }
    if (status == CADRE_OK) {
        *ret_tensor = replica->inputs[component];
    }
    return api_return(status, &error);
}

/* The kept copy of the name: mostly that of the step before. */
static const char *kept_name(const cadre_replica *replica, uint32_t slot, const char *name)
{
    const char *before = replica->output_names[slot];
    return before != NULL && strcmp(before, name) == 0 ? before : component_name_intern(name);
}

static cadre_status put_output(
    cadre_replica *replica, const char *name, cadre_tensor *tensor, struct cadre_error *error)
{
    uint32_t slot = 0;
    while (slot < CADRE_OUTPUTS_MAX && replica->outputs[slot] != NULL) {
        const uint64_t bit = UINT64_C(1) << slot;
        if ((replica->outputs_named & bit) != 0 &&
            strcmp(replica->output_names[slot], name) == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "cadre_replica_output: replica %u has given an output '%s' already, as number %u; "
                "give each a name of its own",
                replica->id, name, slot);
        }
        slot++;
    }
    if (name[0] == '\0' || slot == CADRE_OUTPUTS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            name[0] == '\0' ? "cadre_replica_output: the name is empty; give the output one"
                            : "cadre_replica_output: there is no place for output '%s', as a step "
                              "has at most %d",
            name, CADRE_OUTPUTS_MAX);
    }
    const char *kept = kept_name(replica, slot, name);
    if (kept == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "cadre_replica_output: no memory for the name '%s'", name);
    }
    replica->output_names[slot] = kept;
    replica->outputs_named |= UINT64_C(1) << slot;
    replica->outputs[slot] = tensor;
    return CADRE_OK;
}

_Static_assert(CADRE_OUTPUTS_MAX <= 64, "each output has a bit of a 64-bit mask");

cadre_status cadre_replica_output(cadre_replica *replica, const char *name, cadre_tensor *tensor)
{
    struct cadre_error error;
    error.code = CADRE_OK;
    error.text[0] = '\0';
    cadre_status status = step_require_own_thread(replica, __func__, &error);
    if (status != CADRE_OK) {
        cadre_tensor_release(tensor);
        return api_return(status, &error);
    }
    status = argument_require(name, __func__, "name", &error);
    status = status == CADRE_OK ? argument_require(tensor, __func__, "tensor", &error) : status;
    status = status == CADRE_OK ? put_output(replica, name, tensor, &error) : status;
    if (status != CADRE_OK) {
        cadre_tensor_release(tensor);
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}
