/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: what programs may ask for, and what checkpoints call their memory. */
#include <math.h>
#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/served/served.h"

uint32_t training_slots(const struct store_training *training)
{
    CADRE_ASSERT(training->optimizer <= STORE_ADAM);
    static const uint32_t slots[] = {[STORE_MOMENTUM] = 1, [STORE_ADAGRAD] = 1, [STORE_ADAM] = 2};
    return slots[training->optimizer];
}

const char *training_slot_name(const struct store_training *training, uint32_t slot)
{
    CADRE_ASSERT(slot < training_slots(training));
    return training->optimizer == STORE_MOMENTUM  ? "momentum"
           : training->optimizer == STORE_ADAGRAD ? "accumulator"
           : slot == 0                            ? "m"
                                                  : "v";
}

/* ---- parts ---- */

enum served_part served_part(
    const struct store_training *training, uint32_t part, uint32_t *ret_slot)
{
    uint32_t slots = training_slots(training);
    *ret_slot = part == 0 || part > slots ? 0 : part - 1;
    if (part <= slots) {
        return part == 0 ? PART_VALUE : PART_SLOT;
    }
    part += slots == 0; /* no updates are counted where nothing depends on them */
    return part == slots + 1 ? PART_UPDATES : part == slots + 2 ? PART_STEPS : PART_NONE;
}

uint32_t served_parts(const struct store_training *training)
{
    uint32_t slots = training_slots(training);
    return 2 + slots + (slots > 0);
}

const char *served_part_name(const char *name, const struct store_training *training, uint32_t part,
    char ret_name[SAFETENSORS_NAME_BYTES])
{
    uint32_t slot = 0;
    enum served_part kind = served_part(training, part, &slot);
    CADRE_ASSERT(kind != PART_NONE);
    snprintf(ret_name, SAFETENSORS_NAME_BYTES, "%s%s%s", name, kind == PART_VALUE ? "" : "/",
        kind == PART_VALUE     ? ""
        : kind == PART_SLOT    ? training_slot_name(training, slot)
        : kind == PART_UPDATES ? "updates"
                               : "steps");
    return ret_name;
}

/* ---- optimizers ---- */

static double given(double number, double otherwise)
{
    return number == 0 ? otherwise : number;
}

/* A number that is out of its range, NaN too. */
static cadre_status refuse(
    const char *field, double value, const char *wanted, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "the optimizer's %s is %g; give one %s",
        field, value, wanted);
}

static cadre_status check_numbers(const struct store_training *training, struct cadre_error *error)
{
    if (!(training->rate > 0) || !isfinite(training->rate)) {
        return refuse("rate", training->rate, "above 0", error);
    }
    if (!(training->momentum >= 0 && training->momentum <= 1)) {
        return refuse("momentum", training->momentum, "from 0 to 1", error);
    }
    if (!(training->initial >= 0) || !isfinite(training->initial)) {
        return refuse("initial_accumulator", training->initial, "of 0 or more", error);
    }
    if (!(training->beta1 >= 0 && training->beta1 < 1)) {
        return refuse("beta1", training->beta1, "from 0 to below 1", error);
    }
    if (!(training->beta2 >= 0 && training->beta2 < 1)) {
        return refuse("beta2", training->beta2, "from 0 to below 1", error);
    }
    if (!(training->epsilon >= 0) || !isfinite(training->epsilon)) {
        return refuse("epsilon", training->epsilon, "of 0 or more", error);
    }
    return CADRE_OK;
}

cadre_status training_of(const cadre_optimizer_options *optimizer, cadre_dtype dtype,
    struct store_training *ret_training, struct cadre_error *error)
{
    static const enum store_optimizer kinds[] = {[CADRE_OPTIMIZER_NONE] = STORE_NO_OPTIMIZER,
        [CADRE_OPTIMIZER_SGD] = STORE_SGD,
        [CADRE_OPTIMIZER_MOMENTUM] = STORE_MOMENTUM,
        [CADRE_OPTIMIZER_ADAGRAD] = STORE_ADAGRAD,
        [CADRE_OPTIMIZER_ADAM] = STORE_ADAM};
    *ret_training = (struct store_training){0};
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
    *ret_training = (struct store_training){.optimizer = kinds[optimizer->kind],
        .rate = optimizer->rate,
        .momentum =
            optimizer->kind == CADRE_OPTIMIZER_MOMENTUM ? given(optimizer->momentum, 0.9) : 0,
        .nesterov = optimizer->kind == CADRE_OPTIMIZER_MOMENTUM && optimizer->nesterov,
        .initial = given(optimizer->initial_accumulator, 0.1),
        .beta1 = given(optimizer->beta1, 0.9),
        .beta2 = given(optimizer->beta2, 0.999),
        .epsilon = given(optimizer->epsilon, 1e-7)};
    return check_numbers(ret_training, error);
}
