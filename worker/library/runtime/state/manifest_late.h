/* SPDX-License-Identifier: Apache-2.0
 * Variables that steps have created, in the text beside the tensors: a task that reads it may not
 * have created them, and makes them.
 *
 *     "late": [{"name": "w/m", "dtype": "f32", "dims": [2, 3], "aggregation": 0,
 *               "on_read": false, "keep_on_host": false, "in_function": true}]
 *
 * Absent without any. */
#ifndef CADRE_RUNTIME_MANIFEST_LATE_H
#define CADRE_RUNTIME_MANIFEST_LATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct cadre_strategy;

/* NULL: no memory. An empty list: there are none. */
json_t *manifest_late(const struct cadre_strategy *strategy);

/* Before the tensors come, and strings are read: makes those that the strategy lacks, which are
 * fresh (variable_list.h), and notes that the others are late. *ret_made: there was one to make.
 * INVALID_ARGUMENT: it is no such text; RESOURCE_EXHAUSTED. */
cadre_status manifest_make_late(struct cadre_strategy *strategy, const char *text, size_t bytes,
    bool *ret_made, struct cadre_error *error);

#endif
