/* SPDX-License-Identifier: Apache-2.0
 * Inner datasets of known lengths, for the tests of flat_map and interleave. */
#ifndef CADRE_TESTS_INPUT_INNER_DATASETS_H
#define CADRE_TESTS_INPUT_INNER_DATASETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/library/input/node/node.h"

#define INNER_MAX 24

/* Inner datasets of any lengths: element v makes 100 v, 100 v + 1, ... */
struct inner {
    int64_t lengths[INNER_MAX];
    atomic_int calls;
    bool sequential; /* not to be read by index */
};

/* A cadre_dataset_function; `user` is a struct inner. */
cadre_status make_inner(const cadre_element *in, cadre_dataset **ret_data, void *user);

/* Options of interleave; valid until the next call. */
const cadre_interleave_options *turns(int64_t cycle, int64_t block, int32_t parallel);

/* The first component, a CADRE_I64. */
int64_t value_of(const cadre_element *in);

/* start, start + 1, ... */
cadre_dataset *range(int64_t start, int64_t stop);

#endif
