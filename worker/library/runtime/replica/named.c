/* SPDX-License-Identifier: Apache-2.0
 * What a replica function takes and gives by name. */
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
    error.text[0] = '\0'; /* without writing half a kilobyte in each call */
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

/* The name as it is kept: mostly that of the step before. */
static const char *kept_name(const cadre_replica *replica, uint32_t place, const char *name)
{
    const char *before = replica->output_names[place];
    return before != NULL && strcmp(before, name) == 0 ? before : component_name_intern(name);
}

static cadre_status put_output(
    cadre_replica *replica, const char *name, cadre_tensor *tensor, struct cadre_error *error)
{
    uint32_t place = 0;
    while (place < CADRE_OUTPUTS_MAX && replica->outputs[place] != NULL) {
        const uint64_t bit = UINT64_C(1) << place;
        if ((replica->outputs_named & bit) != 0 &&
            strcmp(replica->output_names[place], name) == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "cadre_replica_output: replica %u has given an output '%s' already, as number %u; "
                "give each a name of its own",
                replica->id, name, place);
        }
        place++;
    }
    if (name[0] == '\0' || place == CADRE_OUTPUTS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            name[0] == '\0' ? "cadre_replica_output: the name is empty; give the output one"
                            : "cadre_replica_output: there is no place for output '%s', as a step "
                              "has at most %d",
            name, CADRE_OUTPUTS_MAX);
    }
    const char *kept = kept_name(replica, place, name);
    if (kept == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "cadre_replica_output: no memory for the name '%s'", name);
    }
    replica->output_names[place] = kept;
    replica->outputs_named |= UINT64_C(1) << place;
    replica->outputs[place] = tensor;
    return CADRE_OK;
}

_Static_assert(CADRE_OUTPUTS_MAX <= 64, "one bit of a word says whether an output has a name");

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
