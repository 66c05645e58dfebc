/* SPDX-License-Identifier: Apache-2.0
 * A rule as bytes, as it is sent to servers, kept by them and copied. Equal rules have equal
 * bytes. */
#ifndef CADRE_OPTIMIZER_RULE_BYTES_H
#define CADRE_OPTIMIZER_RULE_BYTES_H

#include "worker/library/optimizer/rule.h"

#define RULE_BYTES (136 + 16 * SCHEDULE_BOUNDARIES)

/* Writes all RULE_BYTES. */
void rule_write(const struct optimizer_rule *rule, uint8_t ret_bytes[RULE_BYTES]);
/* Reads any bytes; optimizer_check decides whether the rule is valid. */
void rule_read(const uint8_t bytes[RULE_BYTES], struct optimizer_rule *ret_rule);

#endif
