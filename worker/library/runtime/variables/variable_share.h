/* SPDX-License-Identifier: Apache-2.0
 * Writes in replica context after a collective: each replica its own component, or, of an
 * aggregating variable, the first local replica the only component while the others wait. */
#ifndef CADRE_RUNTIME_VARIABLE_SHARE_H
#define CADRE_RUNTIME_VARIABLE_SHARE_H

#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/variables/variable.h"

/* INVALID_ARGUMENT: replicas would write different values into the only component. */
cadre_status variable_share_check(
    const cadre_replica *replica, const cadre_variable *variable, struct cadre_error *error);

/* After the collective that combined the values. *ret_component: the component that this replica
 * writes, its old value kept; NULL: another replica writes. */
cadre_status variable_share_begin(cadre_replica *replica, cadre_variable *variable,
    struct variable_component **ret_component, struct cadre_error *error);

/* After writing; `status` is that of the write, and is returned unless this fails. */
cadre_status variable_share_end(cadre_replica *replica, const cadre_variable *variable,
    cadre_status status, struct cadre_error *error);

#endif
