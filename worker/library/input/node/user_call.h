/* SPDX-License-Identifier: Apache-2.0
 * Calls of the program's functions from inside a dataset: what such a function says of its failure
 * becomes the error of the reading, and what it hands back is looked at before it is believed.
 *
 *     user_call_begin();
 *     status = user_call_end(function(in, &out, user), "map", &error);
 */
#ifndef CADRE_WORKER_INPUT_NODE_USER_CALL_H
#define CADRE_WORKER_INPUT_NODE_USER_CALL_H

#include "cadre/dataset.h"
#include "common/base/error.h"

/* Right before the call, on the same thread: forgets the thread's last message, so that the one
 * found after the call is the function's. */
void user_call_begin(void);

/* Right after it: CADRE_OK, or "<who>: the function failed with <code>: <its message>" with the
 * code that the function returned. OUT_OF_RANGE becomes UNKNOWN: it would look like the end of the
 * data. */
cadre_status user_call_end(cadre_status returned, const char *who, struct cadre_error *error);

/* Whether `out`, which a function filled, is an element: 1 to CADRE_ELEMENT_TENSORS_MAX tensors,
 * none of them NULL, and as `declared` where that is not NULL. INVALID_ARGUMENT. */
cadre_status user_call_check(const cadre_element *out, const cadre_element_spec *declared,
    const char *who, struct cadre_error *error);

/* INVALID_ARGUMENT unless output `number` is as much of a ragged or sparse value as `spec` says. */
cadre_status user_call_check_composite(const cadre_tensor *tensor, const cadre_tensor_spec *spec,
    uint32_t number, const char *who, struct cadre_error *error);

/* Releases what a failing function left in `out`, whatever count it says. */
void user_call_drop(cadre_element *out);

#endif
