/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: what programs may ask for, and what checkpoints call their memory. */
#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/served/served.h"

/* ---- parts ---- */

/* Whether how many updates each shard had is worth knowing. */
static bool has_updates(const struct optimizer_rule *rule)
{
    return optimizer_slots(rule) > 0 || optimizer_counts(rule);
}

enum served_part served_part(const struct optimizer_rule *rule, uint32_t part, uint32_t *ret_slot)
{
    uint32_t slots = optimizer_slots(rule);
    *ret_slot = part == 0 || part > slots ? 0 : part - 1;
    if (part <= slots) {
        return part == 0 ? PART_VALUE : PART_SLOT;
    }
    part += !has_updates(rule);
    return part == slots + 1 ? PART_UPDATES : part == slots + 2 ? PART_STEPS : PART_NONE;
}

uint32_t served_parts(const struct optimizer_rule *rule)
{
    uint32_t slots = optimizer_slots(rule);
    return 2 + slots + has_updates(rule);
}

const char *served_part_name(const char *name, const struct optimizer_rule *rule, uint32_t part,
    char ret_name[SAFETENSORS_NAME_BYTES])
{
    uint32_t slot = 0;
    enum served_part kind = served_part(rule, part, &slot);
    CADRE_ASSERT(kind != PART_NONE);
    snprintf(ret_name, SAFETENSORS_NAME_BYTES, "%s%s%s", name, kind == PART_VALUE ? "" : "/",
        kind == PART_VALUE     ? ""
        : kind == PART_SLOT    ? optimizer_slot_name(rule, slot)
        : kind == PART_UPDATES ? "updates"
                               : "steps");
    return ret_name;
}

/* ---- optimizers ---- */

cadre_status training_of(const cadre_optimizer_options *optimizer, cadre_dtype dtype,
    struct optimizer_rule *ret_rule, struct cadre_error *error)
{
    CADRE_TRY(optimizer_rule_of(optimizer, ret_rule, error));
    if (ret_rule->kind != OPTIMIZER_NONE && dtype != CADRE_F32 && dtype != CADRE_F64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "optimizers need f32 or f64, not %s; leave the optimizer out and assign",
            cadre_dtype_name(dtype));
    }
    return CADRE_OK;
}
