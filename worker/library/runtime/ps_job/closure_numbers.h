/* SPDX-License-Identifier: Apache-2.0
 * The numbers of a chief's closures, and of its own pushes: given out in order from 1, done in any
 * order, many thousands at a time. Servers may forget the numbers less than the smallest that is
 * not done. Any thread. */
#ifndef CADRE_RUNTIME_PS_JOB_CLOSURE_NUMBERS_H
#define CADRE_RUNTIME_PS_JOB_CLOSURE_NUMBERS_H

#include <stdint.h>

#include "common/base/error.h"

struct closure_numbers;

/* No number is given out yet. RESOURCE_EXHAUSTED. */
cadre_status closure_numbers_new(struct closure_numbers **ret_numbers, struct cadre_error *error);
/* NULL is allowed. */
void closure_numbers_free(struct closure_numbers *numbers);

/* Gives out the next number, from 1. */
uint64_t closure_numbers_next(struct closure_numbers *numbers);

/* How many were given out. */
uint64_t closure_numbers_count(struct closure_numbers *numbers);

/* Marks a number as done: its pushes are not sent again. A second call, or a number that was not
 * given out, does nothing. */
void closure_numbers_done(struct closure_numbers *numbers, uint64_t number);

/* All smaller numbers are done. */
uint64_t closure_numbers_watermark(struct closure_numbers *numbers);

#endif
