/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/preprocessing/first_component.h"

#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/preprocessing/published.h"

cadre_status map_first_component(const char *name, const cadre_element *in, cadre_element *ret_out,
    tensor_function apply, const void *user)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_out, name, "ret_out", &error);
    if (status == CADRE_OK) {
        memset(ret_out, 0, sizeof *ret_out);
        status = argument_require(in, name, "in", &error);
    }
    if (status == CADRE_OK && (in->count == 0 || in->count > CADRE_ELEMENT_TENSORS_MAX)) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "%s was given an element of %u components; it takes the first one", name, in->count);
    }
    if (status != CADRE_OK) {
        return published(status, &error);
    }
    CADRE_TRY(apply(user, in->tensors[0], &ret_out->tensors[0]));
    ret_out->count = in->count;
    for (uint32_t i = 1; i < in->count; i++) {
        ret_out->tensors[i] = cadre_tensor_retain(in->tensors[i]);
    }
    return CADRE_OK;
}
