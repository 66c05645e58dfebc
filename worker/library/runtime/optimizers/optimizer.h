/* SPDX-License-Identifier: Apache-2.0
 * The inside of optimizers of variables that are in this process: a rule, and for each variable the
 * variables beside it that the rule remembers by. */
#ifndef CADRE_RUNTIME_OPTIMIZER_H
#define CADRE_RUNTIME_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/optimizer.h"
#include "common/base/error.h"
#include "common/model/limits.h"
#include "worker/library/optimizer/apply.h"

struct optimizer_turn;

/* A variable that was built, and its slots; of one on servers those are there, and not here. */
struct optimized {
    cadre_variable *variable;
    cadre_variable *slots[OPTIMIZER_SLOTS];
    cadre_variable *updates; /* i64 [1] */
};

struct cadre_optimizer {
    cadre_strategy *strategy; /* NULL: of regular variables. It may be gone: optimizer_require */
    uint64_t strategy_number; /* of that one; another may come to live at its address */
    char name[LIMIT_NAME_BYTES];
    struct optimizer_rule rule;
    double clip_norm; /* 0: not; of the three one at most is another number */
    double clip_value;
    double clip_global_norm;
    cadre_variable *learning_rate; /* f64; NULL: the rate is the rule's */
    struct optimized *list;        /* in the order in which they were built */
    size_t count;
    size_t capacity;
    struct optimizer_turn **turns; /* [turn_lists] of each local replica; NULL: it has none yet */
    uint32_t turn_lists;
};

/* What the options come to. INVALID_ARGUMENT names the field. */
cadre_status optimizer_rule_of(const cadre_optimizer_options *options,
    struct optimizer_rule *ret_rule, struct cadre_error *error);

/* Creates a variable of the optimizer's strategy, or a regular one. */
struct optimizer_variable {
    const char *name;
    cadre_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    double initial;
    const cadre_variable *beside; /* it lies where this one does; NULL: in the host's memory */
    bool may_lack;                /* a checkpoint may have been written without it */
    bool counts;
};
cadre_status optimizer_variable_create(const cadre_optimizer *optimizer,
    const struct optimizer_variable *what, cadre_variable **ret_variable,
    struct cadre_error *error);

/* Makes the slots of those that have none. */
cadre_status optimizer_slots_make(cadre_optimizer *optimizer, cadre_variable *const variables[],
    size_t count, struct cadre_error *error);

/* FAILED_PRECONDITION: its strategy, and with it its variables, has ended. */
cadre_status optimizer_require(
    const cadre_optimizer *optimizer, const char *function, struct cadre_error *error);

/* The variable's entry; `likely` is where to look first. NULL: it was not built. */
const struct optimized *optimizer_find(
    const cadre_optimizer *optimizer, const cadre_variable *variable, size_t likely);

/* NOT_FOUND: the variable was not built, or has no slot of that name; names those that there are.
 */
cadre_status optimizer_slot_find(const cadre_optimizer *optimizer, const cadre_variable *variable,
    const char *name, cadre_variable **ret_slot, struct cadre_error *error);

/* What a component's rate is at its next update, of which there were `updates`. */
double optimizer_rate(const cadre_optimizer *optimizer, uint32_t local, uint64_t updates);

#endif
