/* SPDX-License-Identifier: Apache-2.0
 * Option values with two numbers: how many tasks, "4", or "2:4" for an elastic job; the job to
 * restore from, "3", or "3@400" for a step of it. */
#ifndef CADRE_CLI_RANGE_H
#define CADRE_CLI_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* "N" or "MIN:MAX" with 1 <= MIN <= MAX <= `limit`. False: it is something else. */
bool range_parse(const char *text, uint32_t limit, uint32_t *ret_least, uint32_t *ret_most);

/* "JOB" or "JOB@STEP" with 1 <= JOB and 1 <= STEP < 2^63; *ret_step 0: none is named. False: it is
 * something else. */
bool restore_point_parse(const char *text, uint64_t *ret_job, uint64_t *ret_step);

#endif
