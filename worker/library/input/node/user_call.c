/* SPDX-License-Identifier: Apache-2.0
 * Calls of the program's functions; see user_call.h. */
#include "worker/library/input/node/user_call.h"

#include <inttypes.h>
#include <stdbool.h>

#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"

void user_call_begin(void)
{
    const struct cadre_error none = {0};
    cadre_error_publish(&none);
}

cadre_status user_call_end(cadre_status returned, const char *who, struct cadre_error *error)
{
    cadre_status status = argument_status(returned);
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    const char *message = cadre_error_message();
    const char *shown =
        message[0] != '\0' ? message : "it left no message; say why with cadre_fail";
    cadre_status code = status == CADRE_OUT_OF_RANGE ? CADRE_UNKNOWN : status;
    return cadre_error_set(
        error, code, "%s: the function failed with %s: %s", who, cadre_status_name(status), shown);
}

cadre_status user_call_check_composite(const cadre_tensor *tensor, const cadre_tensor_spec *spec,
    uint32_t number, const char *who, struct cadre_error *error)
{
    static const char *const names[] = {"plain", "row splits", "a dense shape"};
    const cadre_composite found = tensor_composite(tensor);
    if (found == spec->composite) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s: output %" PRIu32 " is %s and was %s, as declared or of the first element; see "
        "cadre/composite.h for what marks it",
        who, number, names[found], names[spec->composite]);
}

/* One output of the declared type and rank, and the dimensions that are declared. */
static cadre_status check_tensor(const cadre_tensor *tensor, const cadre_tensor_spec *spec,
    uint32_t number, const char *who, struct cadre_error *error)
{
    const int64_t *dims = cadre_tensor_dims(tensor);
    uint32_t rank = cadre_tensor_rank(tensor);
    bool alike = cadre_tensor_dtype(tensor) == spec->dtype && rank == spec->rank;
    for (uint32_t axis = 0; alike && axis < rank; axis++) {
        alike = spec->dims[axis] == CADRE_DIMENSION_ANY || spec->dims[axis] == dims[axis];
    }
    if (alike) {
        return user_call_check_composite(tensor, spec, number, who, error);
    }
    char found[TENSOR_SHAPE_TEXT_BYTES];
    char declared[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s: output %" PRIu32 " is %s and was declared as %s", who, number,
        tensor_shape_text(cadre_tensor_dtype(tensor), rank, dims, found),
        tensor_shape_text(spec->dtype, spec->rank, spec->dims, declared));
}

cadre_status user_call_check(const cadre_element *out, const cadre_element_spec *declared,
    const char *who, struct cadre_error *error)
{
    if (out->count < 1 || out->count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the function returned %" PRIu32 " tensors; an element has 1 to %d", who,
            out->count, CADRE_ELEMENT_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->tensors[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: the function left output %" PRIu32 " of %" PRIu32 " NULL", who, i, out->count);
        }
        CADRE_TRY(tensor_require_host(out->tensors[i], who, error));
    }
    if (declared == NULL) {
        return CADRE_OK;
    }
    if (out->count != declared->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the function returned %" PRIu32 " tensors and declared %" PRIu32, who, out->count,
            declared->count);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        CADRE_TRY(check_tensor(out->tensors[i], &declared->tensors[i], i, who, error));
    }
    return CADRE_OK;
}

void user_call_drop(cadre_element *out)
{
    if (out->count > CADRE_ELEMENT_TENSORS_MAX) {
        out->count = CADRE_ELEMENT_TENSORS_MAX;
    }
    cadre_element_release(out);
}
