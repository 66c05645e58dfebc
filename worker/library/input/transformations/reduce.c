/* SPDX-License-Identifier: Apache-2.0
 * Folding a dataset into one state. */
#include <inttypes.h>

#include "worker/library/device/argument.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/node/user_call.h"

/* One call: `state` becomes the next one; on error it is left as it is. */
static cadre_status dataset_fold(cadre_element *state, const cadre_element *in,
    cadre_reduce_function function, void *user, struct cadre_error *error)
{
    cadre_element next = {0};
    user_call_begin();
    cadre_status status = user_call_end(function(state, in, &next, user), "reduce", error);
    status = status == CADRE_OK ? user_call_check(&next, NULL, "reduce", error) : status;
    if (status != CADRE_OK) {
        user_call_drop(&next);
        return status;
    }
    cadre_element_release(state);
    *state = next;
    return CADRE_OK;
}

static cadre_status dataset_reduce(cadre_dataset *data, cadre_element *state,
    cadre_reduce_function function, void *user, struct cadre_error *error)
{
    cadre_iterator *iterator = NULL;
    CADRE_TRY(dataset_iterate(data, &(struct pass){.ordered = true}, &iterator, error));
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        cadre_element in = {0};
        status = iterator_next(iterator, &in, NULL, error);
        if (status == CADRE_OK) {
            in.names = dataset_names(data);
            status = dataset_fold(state, &in, function, user, error);
            cadre_element_release(&in);
        }
    }
    cadre_iterator_release(iterator);
    return status == CADRE_OUT_OF_RANGE ? CADRE_OK : status;
}

static cadre_status dataset_check(
    cadre_dataset *data, const cadre_element *state, struct cadre_error *error)
{
    if (state->count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "reduce: the state has %" PRIu32 " components; it has %d at the most", state->count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < state->count; i++) {
        if (state->tensors[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "reduce: component %" PRIu32 " of the state is NULL", i);
        }
    }
    CADRE_TRY(dataset_status(data, error));
    if (dataset_cardinality(data) == CADRE_CARDINALITY_INFINITE) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "reduce: the dataset has no end; take some of it first");
    }
    return CADRE_OK;
}

cadre_status cadre_dataset_reduce(
    cadre_dataset *data, cadre_element *state, cadre_reduce_function function, void *user)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(state, __func__, "state", &error);
    if (status != CADRE_OK) {
        return cadre_error_publish(&error);
    }
    if (function == NULL) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "reduce: the function is NULL");
    }
    status = status == CADRE_OK ? dataset_check(data, state, &error) : status;
    status = status == CADRE_OK ? dataset_reduce(data, state, function, user, &error) : status;
    if (status != CADRE_OK) {
        user_call_drop(state);
        return cadre_error_publish(&error);
    }
    return CADRE_OK;
}
