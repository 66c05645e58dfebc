/* SPDX-License-Identifier: Apache-2.0
 * Python's rules for slices and indices of a list. Pure. */
#ifndef CADRE_RUNTIME_SLICE_H
#define CADRE_RUNTIME_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/* An absent bound: `None`. */
#define SLICE_NONE INT64_MIN

/* Items first, first + step, ..., `count` of them. */
struct slice {
    int64_t first;
    int64_t count;
    int64_t step;
};

/* [begin:end:step] of a list of `length` >= 0 items; step is not 0. `first` of an empty slice is
 * 0. */
struct slice slice_of(int64_t length, int64_t begin, int64_t end, int64_t step);

/* The item of a number, which counts from the end when it is negative. False: there is none. */
bool slice_item(int64_t length, int64_t number, int64_t *ret_item);

#endif
