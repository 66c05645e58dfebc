/* SPDX-License-Identifier: Apache-2.0
 * The inside of variables: components, and the old values to which a failed step returns. */
#ifndef CADRE_RUNTIME_VARIABLE_H
#define CADRE_RUNTIME_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/variable.h"
#include "common/base/error.h"
#include "common/model/limits.h"
#include "worker/library/device/tensor_memory.h"

struct strategy_call;
struct device;
struct served; /* worker/library/runtime/served */
struct variable_host;
struct variable_reset;

struct variable_component {
    struct device *device; /* in whose memory `value` and `kept` are; NULL: the host's */
    void *value;
    void *kept;      /* the value before this step; NULL until the first write */
    uint64_t writes; /* a count of writes: a cached hash of the value stores it */
    bool written;    /* in this step: `kept` is the old value */
    bool settled;    /* on-read: the step wrote the total too, so the fold skips this change */
    bool rebased; /* on-read, a sum: likewise in the middle of a step; `delta` is the value then */
    bool undone;  /* on-read: `kept` is what an interrupted step wrote, because others may have
                   * applied it */
    void *delta;  /* on-read: what this replica adds at the end of a step; then the sum of all */
};

/* How a strategy's variable was created (variable_list.h). */
struct variable_origin {
    bool late;        /* by a step, or with a state, before the program of this task created it */
    bool in_function; /* by a replica function: these names are listed apart */
    bool fresh;       /* by the current step or state sync: it ends with them */
    bool handed;      /* returned to the program of this task, by a call in cross-replica context */
    bool again;       /* it was undone before, and is created once more */
};

struct cadre_variable {
    cadre_strategy *strategy; /* NULL: a regular one, or one that was undone */
    cadre_kind kind;
    char name[LIMIT_NAME_BYTES];
    cadre_dtype dtype;
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    int64_t count;
    size_t bytes; /* of a component */
    cadre_aggregation aggregation;
    bool on_read; /* of kind CADRE_VARIABLE_SYNC_ON_READ */
    bool keep_on_host;
    bool restored;         /* it has the value of the checkpoint from which the job goes on */
    struct served *served; /* its elements are on parameter servers; NULL: here */
    bool counts;           /* i64 [1]: a checkpoint may have several, of which the largest counts */
    const struct cadre_optimizer *slot_of; /* the optimizer whose slot it is; NULL: none, or the
                                            * optimizer has ended */
    enum tensor_memory_kind memory;        /* of components on the host */
    struct variable_host *host;            /* NULL: the first component is on the host */
    struct variable_reset *reset;          /* NULL: only steps change it */
    struct variable_origin origin;
    cadre_variable *next;            /* in the list of fresh ones, or of those that were undone */
    struct variable_component total; /* on-read: the combined value, equal on all tasks */
    cadre_tensor *strings;           /* CADRE_STRING: the value; it has no components */
    cadre_tensor *strings_kept;      /* from before this step; NULL: not written */
    uint32_t room;                   /* for components; strings have none */
    uint32_t component_count;
    /* One for each local replica; one for all of them when it is aggregating or regular, none when
     * it is on servers. */
    struct variable_component components[];
};

/* A variable to be created. `name` and the options were checked. */
struct variable_plan {
    cadre_strategy *strategy; /* NULL: regular */
    const char *name;
    cadre_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    const cadre_variable_options *options;
    struct served *served; /* on servers; NULL: here */
    bool may_lack;         /* may be absent from a checkpoint: then it has its initial value */
    bool counts;           /* cadre_variable.counts */
    bool slot;             /* of an optimizer: an existing variable of its name is used */
};

/* The kind by the strategy and the options. */
cadre_kind variable_kind_of(const struct variable_plan *plan);

/* With memory of its own, all zero, in no strategy's list yet, but in the registry. Owns
 * plan->served, also on error. INVALID_ARGUMENT: no valid shape. RESOURCE_EXHAUSTED. */
cadre_status variable_new(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);

/* NULL is allowed. */
void variable_free(cadre_variable *variable);

/* Frees all that it holds, but not the variable itself, whose address the program may have. */
void variable_clear(cadre_variable *variable);

/* Whether there is such a variable: compares addresses only, since it may be freed. Any thread. */
bool variable_is_registered(const cadre_variable *variable);
/* FAILED_PRECONDITION when there is none. */
cadre_status variable_require_registered(
    const cadre_variable *variable, const char *function, struct cadre_error *error);

/* The first check of each public `function` of cross-replica context: the variable exists, and its
 * strategy has not ended; `call` is then entered (strategy_require_inside). Of a regular variable
 * only the first. FAILED_PRECONDITION: it is on servers, which the function does not support. */
cadre_status variable_enter(const cadre_variable *variable, const char *function,
    struct strategy_call *call, struct cadre_error *error);

/* FAILED_PRECONDITION when the variable is on servers; `instead`: the function to call. */
cadre_status variable_require_local(const cadre_variable *variable, const char *function,
    const char *instead, struct cadre_error *error);

/* The same as variable_enter in replica context: the variable is of the replica's strategy, or
 * regular. */
cadre_status variable_require_own(const cadre_replica *replica, const cadre_variable *variable,
    const char *function, struct cadre_error *error);

/* Whether one component serves all local replicas. */
bool variable_is_single(cadre_kind kind);

/* The component of a local replica. */
struct variable_component *variable_component(cadre_variable *variable, uint32_t local);

/* The variable of that name in the strategy's list; NULL: there is none. */
cadre_variable *variable_lookup(const cadre_strategy *strategy, const char *name);

/* INVALID_ARGUMENT: the value is not of the variable's type and shape. */
cadre_status variable_check_value(
    const cadre_variable *variable, const cadre_tensor *value, struct cadre_error *error);

/* Keeps the old value of a replica's component and returns its memory. RESOURCE_EXHAUSTED. */
cadre_status variable_open_write(
    cadre_variable *variable, uint32_t local, void **ret_value, struct cadre_error *error);

/* The same of any component, the total too. */
cadre_status component_open_write(
    cadre_variable *variable, struct variable_component *component, struct cadre_error *error);

/* Sets `strings` (one reference, owned) as the value in this step. */
void variable_set_strings(cadre_variable *variable, cadre_tensor *strings);

/* At the end of a step: keeps what was written in all variables. No replica runs. */
void variables_commit(cadre_strategy *strategy);
/* At the end of a step: puts the old values back in all variables. No replica runs. */
void variables_restore(cadre_strategy *strategy);

/* A tensor of the variable's type and shape, all of which is `number`. INVALID_ARGUMENT: the type
 * cannot hold it exactly (floating types round). */
cadre_status literal_tensor(const cadre_variable *variable, double number,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* Fills `values` (zeroed, `count` elements) by the initializer. INVALID_ARGUMENT: not for this
 * type. */
cadre_status initializer_fill(const cadre_initializer *initializer, const char *name,
    cadre_dtype dtype, int64_t count, void *values, struct cadre_error *error);

/* A range of a variable's elements, from `first` on. */
struct initializer_of {
    const char *name;
    cadre_dtype dtype;
    int64_t first;
};
/* As initializer_fill, of `count` elements of the range; the values do not depend on the ranges. */
cadre_status initializer_fill_piece(const cadre_initializer *initializer,
    const struct initializer_of *of, int64_t count, void *values, struct cadre_error *error);

/* The variables of a strategy. */
struct variables_part {
    cadre_variable **list; /* in order of name */
    uint32_t count;
    uint32_t capacity;
    cadre_variable **larger; /* of twice the capacity, for the next one; or NULL */
    uint32_t created;        /* by the program of this task, in cross-replica context */
    cadre_variable *fresh;   /* linked by `next` */
    cadre_variable *undone;  /* likewise: not in `list` any more, but the program may have their
                              * addresses */
};

/* --- variables that are combined when read. Each replica has a component of its own; the total is
 * their combination, kept equal on all tasks by folding each step's change into it (protocol, rule
 * 27). The total is the state: it outlives the replicas that added to it. --- */

/* On every replica of a step, after its function returned OK and before the implicit collective:
 * one collective for all these variables, which counts as one of the step; replicas compare `what`
 * and `key`. Does nothing without such variables. */
cadre_status on_read_fold(
    cadre_replica *replica, const char *what, uint64_t key, struct cadre_error *error);

/* The same of one variable, outside of steps: only its components were written. All tasks call it,
 * except one that joins. */
cadre_status on_read_fold_between_steps(cadre_variable *variable, struct cadre_error *error);

/* The component was written together with the total: the fold at the end of the step skips that
 * change. For any kind of variable. */
void on_read_settle(
    const cadre_variable *variable, struct variable_component *component, bool inside_a_step);

/* The components of so many replicas have the initial value: sets the total. (Some replicas may
 * have been lost since.) */
void on_read_begin(cadre_variable *variable, uint32_t replicas);

/* Others applied the step in which this task was interrupted, and the total came from them: the
 * components drop what they wrote in it, which is in that total. Called before the commit. */
void on_read_adopt(cadre_variable *variable);

/* The total was received from a peer: this task's components are initial again (0 of a sum). */
void on_read_reset_components(cadre_variable *variable);

/* The total came from a checkpoint: the components are set to add up to it (an n-th of a sum). */
void on_read_spread(cadre_variable *variable);

/* Replaces a value that is the total by replica `id`'s component of it. */
void on_read_take_part(const cadre_variable *variable, void *value, uint32_t id);
/* Replica `id`'s component when the total is `total`. */
void on_read_part(const cadre_variable *variable, const void *total, uint32_t id, void *ret_part);

/* A short name for a message: of a long name the beginning and the end. Returns `text`. */
#define VARIABLE_SHORT_BYTES 44
/* At most VARIABLE_SHORT_BYTES with the zero. */
const char *variable_short_name(const char *name, char text[VARIABLE_SHORT_BYTES]);

/* In a step, apart from the program's collectives: all replicas sum `count` buffers. `what` is this
 * operation in the message about a replica that does another one; `key` must be equal
 * everywhere. */
struct mesh_buffer;
/* One collective; errors as of a step's collectives. */
cadre_status variables_sum_in_step(cadre_replica *replica, const char *what, uint64_t key,
    const struct mesh_buffer *buffers, size_t count, struct cadre_error *error);

#endif
