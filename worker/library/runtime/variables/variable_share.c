/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/variable_share.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/variables/change_note.h"
#include "worker/library/runtime/strategy/strategy.h"

static bool is_shared(const cadre_replica *replica, const cadre_variable *variable)
{
    return variable->kind == CADRE_VARIABLE_AGGREGATING && replica->strategy->replica_count > 1;
}

cadre_status variable_share_check(
    const cadre_replica *replica, const cadre_variable *variable, struct cadre_error *error)
{
    if (is_shared(replica, variable) && variable->aggregation == CADRE_AGGREGATION_NONE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' has one component that %u replicas share, and no aggregation that says "
            "what it is to hold when each of them assigns; create it with "
            "CADRE_AGGREGATION_SUM, MEAN or ONLY_FIRST_REPLICA, or assign it between steps",
            variable->name, replica->strategy->replica_count);
    }
    return CADRE_OK;
}

cadre_status variable_share_begin(cadre_replica *replica, cadre_variable *variable,
    struct variable_component **ret_component, struct cadre_error *error)
{
    *ret_component = NULL;
    CADRE_ASSERT(variable->strategy == replica->strategy);
    if (is_shared(replica, variable) && replica->local != 0) {
        return CADRE_OK;
    }
    struct variable_component *component = variable_component(variable, replica->local);
    CADRE_TRY(component_open_write(variable, component, error));
    *ret_component = component;
    return CADRE_OK;
}

cadre_status variable_share_end(cadre_replica *replica, const cadre_variable *variable,
    cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK || !is_shared(replica, variable)) {
        return status;
    }
    static const char what[] = "an assignment";
    char text[CHANGE_TEXT_BYTES];
    return variables_sum_in_step(replica, change_text(what, variable, NULL, text),
        change_key(what, variable), NULL, 0, error);
}
