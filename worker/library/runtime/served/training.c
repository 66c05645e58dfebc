/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: what programs may ask for, and what checkpoints call their memory. */
#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/served/served.h"

/* ---- parts ---- */

enum served_part served_part(const struct optimizer_rule *rule, uint32_t part, uint32_t *ret_slot)
{
    uint32_t slots = optimizer_slots(rule);
    *ret_slot = part == 0 || part > slots ? 0 : part - 1;
    if (part <= slots) {
        return part == 0 ? PART_VALUE : PART_SLOT;
    }
    part += slots == 0; /* no updates are counted where nothing depends on them */
    return part == slots + 1 ? PART_UPDATES : part == slots + 2 ? PART_STEPS : PART_NONE;
}

uint32_t served_parts(const struct optimizer_rule *rule)
{
    uint32_t slots = optimizer_slots(rule);
    return 2 + slots + (slots > 0);
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

static double given(double number, double otherwise)
{
    return number == 0 ? otherwise : number;
}

cadre_status training_of(const cadre_optimizer_options *optimizer, cadre_dtype dtype,
    struct optimizer_rule *ret_rule, struct cadre_error *error)
{
    static const enum optimizer_kind kinds[] = {[CADRE_OPTIMIZER_NONE] = OPTIMIZER_NONE,
        [CADRE_OPTIMIZER_SGD] = OPTIMIZER_SGD,
        [CADRE_OPTIMIZER_MOMENTUM] = OPTIMIZER_MOMENTUM,
        [CADRE_OPTIMIZER_ADAGRAD] = OPTIMIZER_ADAGRAD,
        [CADRE_OPTIMIZER_ADAM] = OPTIMIZER_ADAM};
    *ret_rule = (struct optimizer_rule){0};
    if ((unsigned)optimizer->kind > CADRE_OPTIMIZER_ADAM) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no kind of optimizer; use one of cadre_optimizer_kind", (int)optimizer->kind);
    }
    if (optimizer->kind == CADRE_OPTIMIZER_NONE) {
        return CADRE_OK;
    }
    if (dtype != CADRE_F32 && dtype != CADRE_F64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "optimizers need f32 or f64, not %s; leave the optimizer out and assign",
            cadre_dtype_name(dtype));
    }
    *ret_rule = (struct optimizer_rule){.kind = kinds[optimizer->kind],
        .rate = optimizer->rate,
        .momentum =
            optimizer->kind == CADRE_OPTIMIZER_MOMENTUM ? given(optimizer->momentum, 0.9) : 0,
        .nesterov = optimizer->kind == CADRE_OPTIMIZER_MOMENTUM && optimizer->nesterov,
        .initial_accumulator = given(optimizer->initial_accumulator, 0.1),
        .beta1 = given(optimizer->beta1, 0.9),
        .beta2 = given(optimizer->beta2, 0.999),
        .epsilon = given(optimizer->epsilon, 1e-7)};
    return optimizer_check(ret_rule, error);
}
