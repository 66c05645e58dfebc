/* SPDX-License-Identifier: Apache-2.0
 * Writing in replica context what all replicas have agreed on: each its own component, or, of an
 * aggregating variable, the first local replica the one component while the others wait. */
#ifndef CADRE_RUNTIME_VARIABLE_SHARE_H
#define CADRE_RUNTIME_VARIABLE_SHARE_H

#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/variables/variable.h"

/* INVALID_ARGUMENT: replicas would write different values into the one component. */
cadre_status variable_share_check(
    const cadre_replica *replica, const cadre_variable *variable, struct cadre_error *error);

/* After the collective that combined the values. *ret_component: what this replica writes to, its
 * old value kept; NULL: nothing, another one does. */
cadre_status variable_share_begin(cadre_replica *replica, cadre_variable *variable,
    struct variable_component **ret_component, struct cadre_error *error);

/* After writing; `status` is that of it, and returned unless this fails. */
cadre_status variable_share_end(cadre_replica *replica, const cadre_variable *variable,
    cadre_status status, struct cadre_error *error);

#endif
