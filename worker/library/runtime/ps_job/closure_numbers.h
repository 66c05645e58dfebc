/* SPDX-License-Identifier: Apache-2.0
 * The numbers of a chief's closures, and of its own pushes: given out in order from 1, done in any
 * order, many thousands at a time. What servers may forget is what lies below the least that is not
 * done. Any thread. */
#ifndef CADRE_RUNTIME_PS_JOB_CLOSURE_NUMBERS_H
#define CADRE_RUNTIME_PS_JOB_CLOSURE_NUMBERS_H

#include <stdint.h>

#include "common/base/error.h"

struct closure_numbers;

cadre_status closure_numbers_new(struct closure_numbers **ret_numbers, struct cadre_error *error);
void closure_numbers_free(struct closure_numbers *numbers); /* accepts NULL */

uint64_t closure_numbers_next(struct closure_numbers *numbers);

/* How many were given out. */
uint64_t closure_numbers_count(struct closure_numbers *numbers);

/* One that was given out is done for good. Once more, or one that was not given out: nothing. */
void closure_numbers_done(struct closure_numbers *numbers, uint64_t number);

/* All below it are done. */
uint64_t closure_numbers_watermark(struct closure_numbers *numbers);

#endif
