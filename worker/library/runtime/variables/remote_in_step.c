/* SPDX-License-Identifier: Apache-2.0
 * Variables on servers that several replicas change in one step: one push of the values combined by
 * their aggregation. */
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/change.h"
#include "worker/library/runtime/variables/change_note.h"
#include "worker/library/runtime/variables/remote_variable.h"

bool variable_is_changed_together(cadre_replica *replica, cadre_replica **ret_replica)
{
    *ret_replica = replica != NULL ? replica : context_replica();
    return *ret_replica != NULL && (*ret_replica)->strategy->replica_count > 1;
}

cadre_status variable_push_together(cadre_replica *replica, const cadre_variable *variable,
    const char *function, const struct variable_push *push, struct cadre_error *error)
{
    char text[CHANGE_TEXT_BYTES];
    cadre_status status =
        replica->local == 0 ? remote_variable_ops()->push(variable, push, error) : CADRE_OK;
    if (status == CADRE_OK) {
        status = variables_sum_in_step(replica, change_text(function, variable, NULL, text),
            change_key(function, variable), NULL, 0, error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
    }
    return status;
}
