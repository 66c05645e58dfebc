/* SPDX-License-Identifier: Apache-2.0
 * Gives a variable on servers its optimizer, after its creation: its shards get the rule and zero
 * slots, then the slots of a checkpoint. Only then the chief records the rule. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/optimizer/rule_bytes.h"
#include "worker/library/runtime/served/served_call.h"
#include "worker/library/runtime/served/served_values.h"

static cadre_status train_shards(
    cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    const struct request like = {.kind = REQUEST_TRAIN, .rule = rule};
    return served_call_shards(variable, &like, &requests, error);
}

cadre_status served_find_rule(
    const cadre_variable *variable, struct optimizer_rule *ret_rule, struct cadre_error *error)
{
    uint8_t bytes[RULE_BYTES];
    const struct served_shard *first = &variable->served->shards[0];
    struct request request = {
        .kind = REQUEST_RULE, .server = first->server, .shard = first->number, .into = bytes};
    CADRE_TRY(served_send(variable, &request, 1, error));
    rule_read(bytes, ret_rule);
    return CADRE_OK;
}

static bool is_same(const struct optimizer_rule *a, const struct optimizer_rule *b)
{
    uint8_t one[RULE_BYTES];
    uint8_t other[RULE_BYTES];
    rule_write(a, one);
    rule_write(b, other);
    return memcmp(one, other, sizeof one) == 0;
}

static cadre_status served_train_check(
    const cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error)
{
    if (variable->served->rule.kind != OPTIMIZER_NONE) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "variable '%s' has an optimizer on its servers already, of another kind or with other "
            "numbers; build one optimizer for it",
            variable->name);
    }
    return served_checkpoint_parts_check(variable->strategy, variable->name, rule, error);
}

cadre_status served_train(
    cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error)
{
    struct served *served = variable->served;
    CADRE_TRY(served_require_no_slot(variable, error));
    if (served_role(served->all) != ROLE_CHIEF || is_same(&served->rule, rule)) {
        return CADRE_OK;
    }
    CADRE_TRY(served_train_check(variable, rule, error));
    CADRE_TRY(train_shards(variable, rule, error));
    atomic_store(&served->kind, (int)rule->kind);
    CADRE_TRY(served_restore_slots(variable, rule, error));
    served->rule = *rule;
    cadre_status status = served_checkpoint_parts_add(variable, true, error);
    if (status != CADRE_OK) {
        served->rule = (struct optimizer_rule){.kind = OPTIMIZER_NONE};
    }
    return status;
}
