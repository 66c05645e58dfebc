/* SPDX-License-Identifier: Apache-2.0
 * The inside of variables: components, and the old values that a failed step goes back to. */
#ifndef CADRE_RUNTIME_VARIABLE_H
#define CADRE_RUNTIME_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/variable.h"
#include "common/base/error.h"
#include "common/model/limits.h"

struct variable_component {
    void *value;
    void *kept;   /* the value before this step; NULL until it is needed the first time */
    bool written; /* in this step: `kept` is what it was */
};

struct cadre_variable {
    cadre_strategy *strategy;
    char name[LIMIT_NAME_BYTES];
    cadre_dtype dtype;
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    int64_t count;
    size_t bytes;
    cadre_aggregation aggregation;
    uint32_t component_count;
    struct variable_component components[]; /* of the local replicas */
};

/* NULL is allowed. */
void variable_free(cadre_variable *variable);

/* The component of a replica to write to, its old value kept. RESOURCE_EXHAUSTED. */
cadre_status variable_open_write(
    cadre_variable *variable, uint32_t local, void **ret_value, struct cadre_error *error);

/* At the end of a step: keeps what was written, or undoes it, in all variables. No replica runs. */
void variables_commit(cadre_strategy *strategy);
void variables_restore(cadre_strategy *strategy);

/* Fills `values` (zeroed, `count` elements) as `initializer` says. INVALID_ARGUMENT: not for this
 * type. */
cadre_status initializer_fill(const cadre_initializer *initializer, const char *name,
    cadre_dtype dtype, int64_t count, void *values, struct cadre_error *error);

#endif
