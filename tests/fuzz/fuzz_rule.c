/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as the rule of an optimizer, as a server receives it. It is refused
 * with a sentence, or variables are updated by it; written again it has the same bytes. */
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/optimizer/apply.h"
#include "worker/library/optimizer/rule_bytes.h"

#define COUNT 19

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void update(const struct optimizer_rule *rule, cadre_dtype dtype, uint64_t updates)
{
    double values[COUNT] = {1, 2, 3};
    double gradient[COUNT] = {4, 5, 6};
    double room[OPTIMIZER_SLOTS][COUNT] = {{0}};
    void *slots[OPTIMIZER_SLOTS] = {room[0], room[1], room[2]};
    struct optimizer_norms norms = {0};
    double rate = schedule_rate(&rule->schedule, rule->rate, updates);
    if (rule->kind == OPTIMIZER_LAMB) {
        optimizer_norms_add(rule, dtype, updates, 3, COUNT, values, gradient, slots, &norms);
    }
    optimizer_apply(
        rule, dtype, rate, updates, COUNT, values, gradient, slots, optimizer_trust(&norms));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[RULE_BYTES] = {0};
    uint8_t again[RULE_BYTES];
    struct optimizer_rule rule;
    struct optimizer_rule read;
    struct cadre_error error = {0};
    memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
    rule_read(bytes, &rule);
    if (optimizer_check(&rule, &error) != CADRE_OK) {
        CADRE_ASSERT(error.text[0] != 0);
        return 0;
    }
    rule_write(&rule, bytes);
    rule_read(bytes, &read);
    rule_write(&read, again);
    CADRE_ASSERT(memcmp(bytes, again, sizeof bytes) == 0);
    if (rule.kind != OPTIMIZER_NONE) {
        for (uint32_t i = 0; i < optimizer_slots(&rule); i++) {
            CADRE_ASSERT(optimizer_slot_name(&rule, i)[0] != 0);
        }
        const uint64_t updates[] = {0, 1, 1000, UINT64_MAX - 1};
        for (size_t i = 0; i < 4; i++) {
            update(&rule, CADRE_F32, updates[i]);
            update(&rule, CADRE_F64, updates[i]);
        }
    }
    return 0;
}
