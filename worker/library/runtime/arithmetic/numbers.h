/* SPDX-License-Identifier: Apache-2.0
 * Arithmetic for variables and losses, element by element in each type. Integers wrap around;
 * half-width floats are computed in float32. Only the additions change CADRE_BOOL. */
#ifndef CADRE_RUNTIME_NUMBERS_H
#define CADRE_RUNTIME_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/tensor.h"

/* to += from, or to -= from. */
void numbers_add(void *to, const void *from, int64_t count, cadre_dtype dtype, bool subtract);

/* to := from - to. */
void numbers_take_from(void *to, const void *from, int64_t count, cadre_dtype dtype);

/* values *= times. */
void numbers_multiply(void *values, int64_t count, cadre_dtype dtype, uint32_t times);

/* values := the share of number `index` of `shares`. The shares of integers add up to the value
 * exactly: the first ones are larger by one. */
void numbers_share(void *values, int64_t count, cadre_dtype dtype, uint32_t shares, uint32_t index);

/* values[i] := value, rounded to the type, towards zero if it is one of integers; not for
 * CADRE_STRING. A value that does not fit must not be stored: a conversion out of range is
 * undefined. */
void numbers_store(void *values, int64_t i, cadre_dtype dtype, double value);
/* Whether numbers_store may store the value. */
bool numbers_fit(double value, cadre_dtype dtype);

#endif
