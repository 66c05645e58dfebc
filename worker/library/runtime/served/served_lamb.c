/* SPDX-License-Identifier: Apache-2.0
 * Which pushes have to find the norms over all shards of a variable. A rule is given once, so a
 * process reads it until it is there, and then never again. */
#include <math.h>
#include <stdatomic.h>

#include "worker/library/runtime/served/served_call.h"

static cadre_status find_kind(
    const cadre_variable *variable, enum optimizer_kind *ret_kind, struct cadre_error *error)
{
    struct served *served = variable->served;
    struct optimizer_rule rule;
    int known = atomic_load(&served->kind);
    if (known == OPTIMIZER_NONE) {
        CADRE_TRY(served_find_rule(variable, &rule, error));
        known = (int)rule.kind;
        atomic_store(&served->kind, known);
    }
    *ret_kind = (enum optimizer_kind)known;
    return CADRE_OK;
}

cadre_status served_set_trust(
    const cadre_variable *variable, struct push *push, struct cadre_error *error)
{
    enum optimizer_kind kind = OPTIMIZER_NONE;
    push->trust = 0;
    if (push->kind != PUSH_UPDATE || variable->served->layout.shards <= 1) {
        return CADRE_OK;
    }
    CADRE_TRY(find_kind(variable, &kind, error));
    /* Without an optimizer the servers refuse the push, unless it has got one just now. */
    push->trust = kind == OPTIMIZER_NONE || kind == OPTIMIZER_LAMB ? (double)NAN : 0;
    return CADRE_OK;
}
