/* SPDX-License-Identifier: Apache-2.0
 * The descriptions of the variables, in the text beside the tensors: a task that reads it may not
 * have created all of them, and makes the others.
 *
 *     "variables": {"b": "f32 - NONE", "w": "f32 2x3 SUM", "w/m": "f32 2x3 NONE in_function"}
 *
 * Type, dimensions, aggregation; then the flags that are set: on_read, keep_on_host, in_function,
 * counts. Slots of optimizers on parameter servers are included: a job without servers makes
 * variables of them. Absent in checkpoints of versions before it. */
#ifndef CADRE_RUNTIME_CHECKPOINT_MANIFEST_VARIABLES_H
#define CADRE_RUNTIME_CHECKPOINT_MANIFEST_VARIABLES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct cadre_strategy;

/* The JSON object, the caller's. NULL: no memory. */
json_t *manifest_variables(const struct cadre_strategy *strategy);

/* Before the tensors come, and strings are read: makes those that the strategy lacks, which are
 * fresh (variable_list.h). Tensors that are parts of something else are left to that. *ret_made:
 * there was one to make. INVALID_ARGUMENT: it is not such a text; RESOURCE_EXHAUSTED. */
cadre_status manifest_make_variables(struct cadre_strategy *strategy, const char *text,
    size_t bytes, bool *ret_made, struct cadre_error *error);

#endif
