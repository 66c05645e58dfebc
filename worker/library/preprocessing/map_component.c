/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/preprocessing/map_component.h"

#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/publish_error.h"

static cadre_status map_component_take(const char *name, const cadre_element *in, uint32_t number,
    const cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(argument_require(in, name, "in", error));
    if (number >= in->count || in->count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given an element of %u components, and changes component %u (from 0)", name,
            in->count, number);
    }
    *ret_tensor = in->tensors[number];
    return tensor_require(*ret_tensor, name, "in", error);
}

cadre_status map_component(const char *name, const cadre_element *in, cadre_element *ret_out,
    uint32_t number, tensor_function apply, const void *user)
{
    struct cadre_error error = {0};
    const cadre_tensor *tensor = NULL;
    cadre_tensor *made = NULL;
    cadre_status status = argument_require(ret_out, name, "ret_out", &error);
    if (status == CADRE_OK) {
        memset(ret_out, 0, sizeof *ret_out);
        status = argument_require(user, name, "user", &error);
    }
    if (status == CADRE_OK) {
        status = map_component_take(name, in, number, &tensor, &error);
    }
    if (status == CADRE_OK) {
        status = apply(user, tensor, &made, &error);
    }
    if (status != CADRE_OK) {
        return publish_error(status, &error);
    }
    ret_out->count = in->count;
    for (uint32_t i = 0; i < in->count; i++) {
        ret_out->tensors[i] = i == number ? made : cadre_tensor_retain(in->tensors[i]);
    }
    return CADRE_OK;
}
