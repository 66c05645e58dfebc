/* SPDX-License-Identifier: Apache-2.0
 * See rule_bytes.h: little-endian numbers of 4 and 8 bytes, without gaps. */
#include "worker/library/optimizer/rule_bytes.h"

#include <string.h>

#include "common/pure/assert.h"

enum { FLAG_NESTEROV = 1, FLAG_CENTERED = 2, FLAG_STAIRCASE = 4, FLAG_CYCLE = 8 };

static uint8_t *rule_bytes_put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
    return at + bytes;
}

static uint8_t *put_real(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return rule_bytes_put(at, bits, 8);
}

static uint64_t rule_bytes_take(const uint8_t **at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)(*at)[i] << (8 * i);
    }
    *at += bytes;
    return value;
}

static double take_real(const uint8_t **at)
{
    uint64_t bits = rule_bytes_take(at, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint8_t *put_schedule(uint8_t *at, const struct schedule *schedule)
{
    at = rule_bytes_put(at, (uint64_t)schedule->kind, 4);
    at = rule_bytes_put(at, schedule->boundaries, 4);
    at = rule_bytes_put(at, schedule->decay_steps, 8);
    at = put_real(at, schedule->decay_rate);
    at = put_real(at, schedule->end_rate);
    at = put_real(at, schedule->power);
    at = put_real(at, schedule->alpha);
    at = rule_bytes_put(at, schedule->warmup_steps, 8);
    at = put_real(at, schedule->warmup_target);
    for (uint32_t i = 0; i < SCHEDULE_BOUNDARIES; i++) {
        at = rule_bytes_put(at, schedule->bounds[i], 8);
        at = put_real(at, schedule->values[i]);
    }
    return at;
}

static void take_schedule(const uint8_t **at, struct schedule *schedule)
{
    schedule->kind = (enum schedule_kind)rule_bytes_take(at, 4);
    schedule->boundaries = (uint32_t)rule_bytes_take(at, 4);
    schedule->decay_steps = rule_bytes_take(at, 8);
    schedule->decay_rate = take_real(at);
    schedule->end_rate = take_real(at);
    schedule->power = take_real(at);
    schedule->alpha = take_real(at);
    schedule->warmup_steps = rule_bytes_take(at, 8);
    schedule->warmup_target = take_real(at);
    for (uint32_t i = 0; i < SCHEDULE_BOUNDARIES; i++) {
        schedule->bounds[i] = rule_bytes_take(at, 8);
        schedule->values[i] = take_real(at);
    }
}

void rule_write(const struct optimizer_rule *rule, uint8_t ret_bytes[RULE_BYTES])
{
    unsigned flags = (rule->nesterov ? FLAG_NESTEROV : 0) | (rule->centered ? FLAG_CENTERED : 0) |
                     (rule->schedule.staircase ? FLAG_STAIRCASE : 0) |
                     (rule->schedule.cycle ? FLAG_CYCLE : 0);
    uint8_t *at = rule_bytes_put(ret_bytes, (uint64_t)rule->kind, 4);
    at = rule_bytes_put(at, flags, 4);
    at = put_real(at, rule->rate);
    at = put_real(at, rule->momentum);
    at = put_real(at, rule->rho);
    at = put_real(at, rule->initial_accumulator);
    at = put_real(at, rule->beta1);
    at = put_real(at, rule->beta2);
    at = put_real(at, rule->epsilon);
    at = put_real(at, rule->weight_decay);
    at = put_schedule(at, &rule->schedule);
    CADRE_ASSERT(at == ret_bytes + RULE_BYTES);
}

void rule_read(const uint8_t bytes[RULE_BYTES], struct optimizer_rule *ret_rule)
{
    const uint8_t *at = bytes;
    memset(ret_rule, 0, sizeof *ret_rule);
    ret_rule->kind = (enum optimizer_kind)rule_bytes_take(&at, 4);
    unsigned flags = (unsigned)rule_bytes_take(&at, 4);
    ret_rule->nesterov = (flags & FLAG_NESTEROV) != 0;
    ret_rule->centered = (flags & FLAG_CENTERED) != 0;
    ret_rule->schedule.staircase = (flags & FLAG_STAIRCASE) != 0;
    ret_rule->schedule.cycle = (flags & FLAG_CYCLE) != 0;
    ret_rule->rate = take_real(&at);
    ret_rule->momentum = take_real(&at);
    ret_rule->rho = take_real(&at);
    ret_rule->initial_accumulator = take_real(&at);
    ret_rule->beta1 = take_real(&at);
    ret_rule->beta2 = take_real(&at);
    ret_rule->epsilon = take_real(&at);
    ret_rule->weight_decay = take_real(&at);
    take_schedule(&at, &ret_rule->schedule);
    CADRE_ASSERT(at == bytes + RULE_BYTES);
}
