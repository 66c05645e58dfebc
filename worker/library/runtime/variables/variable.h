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
#include "worker/library/device/tensor_memory.h"

struct strategy_call;
struct device;
struct served; /* worker/library/runtime/served */
struct variable_host;
struct variable_reset;

struct variable_component {
    struct device *device; /* in whose memory value and kept lie; NULL: the host's */
    void *value;
    void *kept;      /* the value before this step; NULL until it is needed the first time */
    uint64_t writes; /* a count of them, behind each: who keeps a hash of the value knows its age */
    bool written;    /* in this step: `kept` is what it was */
    bool settled;    /* on-read: the step wrote the total too, so this change is no news to it */
    bool rebased; /* on-read, a sum: likewise in the middle of a step; `delta` is the value then */
    bool undone;  /* on-read: `kept` is what an interrupted step wrote, for others may apply it */
    void *delta;  /* on-read: what this replica adds at the end of a step; then what all did */
};

/* How a strategy's variable came to be (variable_list.h). */
struct variable_origin {
    bool late;        /* by a step, or with a state, before the program of this task created it */
    bool in_function; /* by a replica function: the names of those are rows of their own */
    bool fresh;       /* of the step at hand, or a state sync under way: it ends with them */
    bool handed;      /* to the program of this task, by a call in cross-replica context */
    bool again;       /* it was undone before, and is created once more */
};

struct cadre_variable {
    cadre_strategy *strategy; /* NULL: of a regular one, and of one that was undone */
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
    bool restored;         /* it holds what the checkpoint does that the job goes on from */
    struct served *served; /* its elements are on parameter servers; NULL: here */
    bool counts;           /* i64 [1]: a checkpoint may hold several, and it is the largest */
    const struct cadre_optimizer *slot_of; /* that remembers by it; NULL: none, or it has ended */
    enum tensor_memory_kind memory;        /* of components on the host */
    struct variable_host *host;            /* NULL: the first component is there itself */
    struct variable_reset *reset;          /* NULL: it is changed by steps alone */
    struct variable_origin origin;
    cadre_variable *next;            /* in the list of fresh ones, or of those that were undone */
    struct variable_component total; /* on-read: what it is combined to, equal on all tasks */
    cadre_tensor *strings;           /* CADRE_STRING: the value; it has no components */
    cadre_tensor *strings_kept;      /* from before this step; NULL: not written */
    uint32_t room;                   /* for components; strings have none */
    uint32_t component_count;
    /* Of the local replicas; one for all of them when it is aggregating, one when it is regular,
     * none when it is on servers. */
    struct variable_component components[];
};

/* What a variable is to be. `name` and the options were checked. */
struct variable_plan {
    cadre_strategy *strategy; /* NULL: regular */
    const char *name;
    cadre_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    const cadre_variable_options *options;
    struct served *served; /* on servers; NULL: here */
    bool may_lack;         /* in a checkpoint: then it begins anew */
    bool counts;           /* cadre_variable.counts */
    bool slot;             /* of an optimizer: one of its name that the job has is it */
};

cadre_kind variable_kind_of(const struct variable_plan *plan);

/* With memory of its own, all zero, in no strategy's list yet, but known to variable_is_registered.
 * Takes plan->served over, also on error. INVALID_ARGUMENT: no shape. RESOURCE_EXHAUSTED. */
cadre_status variable_new(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);

/* NULL is allowed. */
void variable_free(cadre_variable *variable);

/* Ends all that it holds, but not the memory that the program has the address of. */
void variable_clear(cadre_variable *variable);

/* Whether there is such a variable: never looks into it, it may be gone. Any thread. */
bool variable_is_registered(const cadre_variable *variable);
/* FAILED_PRECONDITION when it does not. */
cadre_status variable_require_registered(
    const cadre_variable *variable, const char *function, struct cadre_error *error);

/* What each public `function` of cross-replica context asks first: that the variable lives, and
 * its strategy too, which `call` then has (strategy_require_inside); of a regular one nothing else.
 * FAILED_PRECONDITION: it is on servers, which the function has not asked for. */
cadre_status variable_enter(const cadre_variable *variable, const char *function,
    struct strategy_call *call, struct cadre_error *error);

/* What functions refuse for which a variable would have to lie in this process:
 * FAILED_PRECONDITION, unless it does. `instead`: what to call. */
cadre_status variable_require_local(const cadre_variable *variable, const char *function,
    const char *instead, struct cadre_error *error);

/* The same as variable_enter in replica context, of the strategy that the replica is of, or
 * regular. */
cadre_status variable_require_own(const cadre_replica *replica, const cadre_variable *variable,
    const char *function, struct cadre_error *error);

/* Whether one component serves all local replicas. */
bool variable_is_single(cadre_kind kind);

/* The component of a local replica. */
struct variable_component *variable_component(cadre_variable *variable, uint32_t local);

/* The one of that name in the strategy's list; NULL: there is none. */
cadre_variable *variable_lookup(const cadre_strategy *strategy, const char *name);

/* INVALID_ARGUMENT: the value is not of the variable's type and shape. */
cadre_status variable_check_value(
    const cadre_variable *variable, const cadre_tensor *value, struct cadre_error *error);

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

/* A tensor of the variable's type and shape, all of which is `number`. INVALID_ARGUMENT: the type
 * cannot hold it exactly (floating types round). */
cadre_status literal_tensor(const cadre_variable *variable, double number,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* Fills `values` (zeroed, `count` elements) as `initializer` says. INVALID_ARGUMENT: not for this
 * type. */
cadre_status initializer_fill(const cadre_initializer *initializer, const char *name,
    cadre_dtype dtype, int64_t count, void *values, struct cadre_error *error);

/* The same of `count` elements from element `first` on: however they are cut, they come out the
 * same. */
struct initializer_of {
    const char *name;
    cadre_dtype dtype;
    int64_t first;
};
cadre_status initializer_fill_piece(const cadre_initializer *initializer,
    const struct initializer_of *of, int64_t count, void *values, struct cadre_error *error);

/* The variables of a strategy. */
struct variables_part {
    cadre_variable **list; /* in order of name */
    uint32_t count;
    uint32_t capacity;
    cadre_variable **larger; /* of twice the capacity, for the next one; or NULL */
    uint32_t created;        /* by the program of this task, in cross-replica context */
    cadre_variable *fresh;   /* a list of them */
    cadre_variable *undone; /* likewise: in the list above no more, but the program may have them */
};

/* --- variables that are combined when read. Each replica has a component that is its own; the
 * total is what they come to, kept equal on all tasks by folding each step's change into it (rule
 * 27). The total is the state: it survives the replicas that added to it. --- */

/* On every replica of a step, after its function returned OK and before the implicit collective:
 * one collective for all of them, which counts as one of the step; `what` and `key` are how the
 * replicas compare it. Does nothing without such variables. */
cadre_status on_read_fold(
    cadre_replica *replica, const char *what, uint64_t key, struct cadre_error *error);

/* The same of one variable, outside of steps: its components were written, and nothing else. All
 * tasks call it, but one that arrives. */
cadre_status on_read_fold_between_steps(cadre_variable *variable, struct cadre_error *error);

/* The component was written together with the total: that is no news to it at the end of the step.
 * Of any kind of variable. */
void on_read_settle(
    const cadre_variable *variable, struct variable_component *component, bool inside_a_step);

/* The components of so many replicas hold the initial value: sets the total. (Others may have been
 * lost since.) */
void on_read_begin(cadre_variable *variable, uint32_t replicas);

/* The step that this task was interrupted in was applied by others, and the total came from them:
 * the components take back what they wrote in it, which is in that total. To do before the
 * commit. */
void on_read_adopt(cadre_variable *variable);

/* The total was taken over from a peer: this task's components begin anew (0 of a sum). */
void on_read_reset_components(cadre_variable *variable);

/* The total came from a checkpoint: the components are what adds up to it (an n-th of a sum). */
void on_read_spread(cadre_variable *variable);

/* What replica `id`'s component is when the total is `total`; the same of a value that holds the
 * total, and then that part. */
void on_read_take_part(const cadre_variable *variable, void *value, uint32_t id);
void on_read_part(const cadre_variable *variable, const void *total, uint32_t id, void *ret_part);

/* The name for a sentence that has little room: of a long one the beginning and the end. Returns
 * `text`. */
#define VARIABLE_SHORT_BYTES 44
const char *variable_short_name(const char *name, char text[VARIABLE_SHORT_BYTES]);

/* In a step, outside of the collectives that the program asks for: all replicas meet, and sum
 * `count` buffers. `what` stands in the message about one that does something else; `key` must be
 * equal everywhere. */
struct mesh_buffer;
cadre_status variables_sum_in_step(cadre_replica *replica, const char *what, uint64_t key,
    const struct mesh_buffer *buffers, size_t count, struct cadre_error *error);

#endif
