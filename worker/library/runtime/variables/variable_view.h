/* SPDX-License-Identifier: Apache-2.0
 * What the calling thread sees of a variable in this process. */
#ifndef CADRE_RUNTIME_VARIABLE_VIEW_H
#define CADRE_RUNTIME_VARIABLE_VIEW_H

#include "worker/library/runtime/variables/variable.h"

struct variable_view {
    const void *value;
    const struct variable_component *on_device; /* NULL: `value` is in the host's memory */
};

/* As cadre_variable_read says: of the replica's component, the total, the host's copy.
 * FAILED_PRECONDITION, INVALID_ARGUMENT: there is nothing that it could see here. */
cadre_status variable_view_get(const cadre_replica *replica, const cadre_variable *variable,
    const char *function, struct variable_view *ret_view, struct cadre_error *error);

#endif
