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
    bool settled; /* on-read: the step wrote the total too, so this change is no news to it */
    bool undone;  /* on-read: `kept` is what an interrupted step wrote, for others may apply it */
    void *delta;  /* on-read: what this replica adds at the end of a step; then what all did */
};

struct cadre_variable {
    cadre_strategy *strategy;
    char name[LIMIT_NAME_BYTES];
    cadre_dtype dtype;
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    int64_t count;
    size_t bytes; /* of a component */
    cadre_aggregation aggregation;
    bool on_read;
    struct variable_component total; /* on-read: what it is combined to, equal on all tasks */
    cadre_tensor *strings;           /* CADRE_STRING: the value; it has no components */
    cadre_tensor *strings_kept;      /* from before this step; NULL: not written */
    uint32_t component_count;
    struct variable_component components[]; /* of the local replicas */
};

/* With memory of its own, all zero, in no strategy's list yet. INVALID_ARGUMENT: no shape.
 * RESOURCE_EXHAUSTED. The options were checked. */
cadre_status variable_new(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const cadre_variable_options *options,
    cadre_variable **ret_variable, struct cadre_error *error);

/* NULL is allowed. */
void variable_free(cadre_variable *variable);

/* The component of a replica to write to, its old value kept. RESOURCE_EXHAUSTED. */
cadre_status variable_open_write(
    cadre_variable *variable, uint32_t local, void **ret_value, struct cadre_error *error);

/* The same of any component, the total too. */
cadre_status component_open_write(
    cadre_variable *variable, struct variable_component *component, struct cadre_error *error);

/* Takes `strings` (one reference) as the value in this step. */
void variable_set_strings(cadre_variable *variable, cadre_tensor *strings);

/* At the end of a step: keeps what was written, or undoes it, in all variables. No replica runs. */
void variables_commit(cadre_strategy *strategy);
void variables_restore(cadre_strategy *strategy);

/* Fills `values` (zeroed, `count` elements) as `initializer` says. INVALID_ARGUMENT: not for this
 * type. */
cadre_status initializer_fill(const cadre_initializer *initializer, const char *name,
    cadre_dtype dtype, int64_t count, void *values, struct cadre_error *error);

/* --- variables that are combined when read. Each replica has a component that is its own; the
 * total is what they come to, kept equal on all tasks by folding each step's change into it (rule
 * 27). The total is the state: it survives the replicas that added to it. --- */

/* On every replica of a step, after its function returned OK and before the implicit collective:
 * one collective for all of them, which counts as one of the step. Does nothing without such
 * variables. */
cadre_status on_read_fold(cadre_replica *replica, struct cadre_error *error);

/* The components of so many replicas hold the initial value: sets the total. (Others may have been
 * lost since.) */
void on_read_begin(cadre_variable *variable, uint32_t replicas);

/* The step that this task was interrupted in was applied by others, and the total came from them:
 * the components take back what they wrote in it, which is in that total. To do before the
 * commit. */
void on_read_adopt(cadre_variable *variable);

/* The total was taken over from a peer: this task's components begin anew (0 of a sum). */
void on_read_join(cadre_variable *variable);

/* The total came from a checkpoint: the components are what adds up to it (an n-th of a sum). */
void on_read_spread(cadre_variable *variable);

/* What replica `id`'s component is when the total is `total`. */
void on_read_part(const cadre_variable *variable, const void *total, uint32_t id, void *ret_part);

/* In a step, outside of the collectives that the program asks for: all replicas meet, and sum
 * `count` buffers. `what` stands in the message about one that does something else; `key` must be
 * equal everywhere. */
struct mesh_buffer;
cadre_status variables_meet(cadre_replica *replica, const char *what, uint64_t key,
    const struct mesh_buffer *buffers, size_t count, struct cadre_error *error);

#endif
