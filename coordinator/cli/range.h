/* SPDX-License-Identifier: Apache-2.0
 * How many tasks: "4", or "2:4" for a job that may shrink and grow. */
#ifndef CADRE_CLI_RANGE_H
#define CADRE_CLI_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* "N" or "MIN:MAX" with 1 <= MIN <= MAX <= `limit`. False: it is something else. */
bool range_parse(const char *text, uint32_t limit, uint32_t *ret_least, uint32_t *ret_most);

#endif
