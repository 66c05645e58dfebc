/* SPDX-License-Identifier: Apache-2.0
 * The inside of optimizers of variables in this process: a rule, and for each variable the slots
 * beside it. */
#ifndef CADRE_RUNTIME_OPTIMIZER_H
#define CADRE_RUNTIME_OPTIMIZER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/optimizer.h"
#include "common/base/error.h"
#include "common/model/limits.h"
#include "worker/library/optimizer/apply.h"

struct pending_update;

/* A variable that was built, and its slots; those of a variable on servers are on the servers
 * only. */
struct optimized {
    cadre_variable *variable;
    cadre_variable *slots[OPTIMIZER_SLOTS];
    cadre_variable *updates; /* i64 [1] */
    /* The attempt at a step that created the slots, and its position. They exist in that attempt
     * and once the job is behind that position; else they were undone. 0: they exist. */
    uint64_t attempt;
    uint64_t position;
};

/* Replicas of a task add to it while others read it. */
struct optimizer_list {
    pthread_mutex_t lock;
    struct optimized **entries; /* in the order in which they were built */
    size_t count;
    size_t capacity;
};

struct cadre_optimizer {
    cadre_strategy *strategy; /* NULL: of regular variables. It may have ended: optimizer_require */
    uint64_t strategy_number; /* of that strategy; another may be allocated at its address */
    char name[LIMIT_NAME_BYTES];
    struct optimizer_rule rule;
    double clip_norm; /* 0: off; at most one of the three is another number */
    double clip_value;
    double clip_global_norm;
    cadre_variable *learning_rate; /* f64; NULL: the rate is the rule's */
    struct optimizer_list *list;
    struct pending_update *
        *turns; /* [pending_lists] of each local replica; NULL: it has none yet */
    uint32_t pending_lists;
};

/* The rule of the options. INVALID_ARGUMENT names the field. */
cadre_status optimizer_rule_of(const cadre_optimizer_options *options,
    struct optimizer_rule *ret_rule, struct cadre_error *error);

/* A variable that the optimizer creates. */
struct optimizer_variable {
    const char *name;
    cadre_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    double initial;
    const cadre_variable *beside; /* it is on the device of this one; NULL: in the host's memory */
    bool may_lack;                /* a checkpoint may be without it */
    bool counts;
    bool slot;
};
/* Creates it in the optimizer's strategy, or as a regular one. */
cadre_status optimizer_variable_create(const cadre_optimizer *optimizer,
    const struct optimizer_variable *what, const char *function, cadre_variable **ret_variable,
    struct cadre_error *error);

/* INVALID_ARGUMENT: it cannot be updated, or not by this one. `index` is its index in a list. */
cadre_status optimizer_check_variable(const cadre_optimizer *optimizer,
    const cadre_variable *variable, size_t index, const char *function, struct cadre_error *error);

/* Makes the slots of a variable that was checked and has none, for the public `function`; in a
 * replica function all replicas do, and an undone step removes them. */
cadre_status optimizer_slots_make(cadre_optimizer *optimizer, cadre_variable *variable,
    const char *function, struct cadre_error *error);

/* FAILED_PRECONDITION: its strategy, and with it its variables, has ended. */
cadre_status optimizer_require(
    const cadre_optimizer *optimizer, const char *function, struct cadre_error *error);

/* --- the list (optimizer_list.c): any thread --- */

/* The attempt at a step that the calling thread's replica runs; 0: none. */
uint64_t optimizer_attempt(const cadre_optimizer *optimizer);

/* The variable's entry, if its slots exist now; `likely` is the index to look at first, `attempt`
 * the caller's. It stays at its address. NULL: it was not built. */
const struct optimized *optimizer_find(const cadre_optimizer *optimizer,
    const cadre_variable *variable, size_t likely, uint64_t attempt);
/* Entry i; NULL: its slots do not exist now. i < optimizer_count. */
const struct optimized *optimizer_at(const cadre_optimizer *optimizer, size_t i, uint64_t attempt);
/* How many entries there are. */
size_t optimizer_count(const cadre_optimizer *optimizer);

/* Adds an entry, unless another replica of this attempt, or thread, has. *ret_put: it was added.
 * FAILED_PRECONDITION: the slots are another optimizer's. RESOURCE_EXHAUSTED. */
cadre_status optimizer_put(cadre_optimizer *optimizer, const struct optimized *made, bool *ret_put,
    struct cadre_error *error);

/* Room for so many more entries. RESOURCE_EXHAUSTED. */
cadre_status optimizer_list_room(
    cadre_optimizer *optimizer, size_t more, struct cadre_error *error);
/* Releases the slots, unless they are the strategy's. */
void optimized_release(const cadre_optimizer *optimizer, const struct optimized *of);

/* An empty list. RESOURCE_EXHAUSTED. */
cadre_status optimizer_list_make(cadre_optimizer *optimizer, struct cadre_error *error);
/* Frees the list and its entries. `attempts`: the optimizer's strategy has not ended, so its slots
 * exist. */
void optimizer_list_free(cadre_optimizer *optimizer, bool attempts);

/* NOT_FOUND: the variable was not built, or has no slot of that name; names those that it has. */
cadre_status optimizer_slot_find(const cadre_optimizer *optimizer, const cadre_variable *variable,
    const char *name, cadre_variable **ret_slot, struct cadre_error *error);

/* The rate of a component's next update, after `updates` ones. */
double optimizer_rate(const cadre_optimizer *optimizer, uint32_t local, uint64_t updates);

#endif
