/* SPDX-License-Identifier: Apache-2.0
 * A variable in this process, as the calling thread reads it. */
#ifndef CADRE_RUNTIME_VARIABLE_VIEW_H
#define CADRE_RUNTIME_VARIABLE_VIEW_H

#include "worker/library/runtime/variables/variable.h"

struct variable_view {
    const void *value;
    const struct variable_component *on_device; /* NULL: `value` is in the host's memory */
};

/* By the rules of cadre_variable_read: the replica's component, the total, or the host's copy.
 * FAILED_PRECONDITION, INVALID_ARGUMENT: there is no value to read in this context. */
cadre_status variable_view_get(const cadre_replica *replica, const cadre_variable *variable,
    const char *function, struct variable_view *ret_view, struct cadre_error *error);

#endif
