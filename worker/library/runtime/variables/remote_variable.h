/* SPDX-License-Identifier: Apache-2.0
 * Variables whose elements are on parameter servers, not in this process. Public functions reach
 * them by one table of functions, which the folder of these variables (../served) sets, because it
 * is above this one.
 *
 *     cadre_variable_create, _find, _value, _gather, _slice, _assign, _scatter, _print, ...
 *       components in this process      variables/, state/
 *       variable->served != NULL        struct remote_variable_ops ─▶ ../served ─▶ the servers
 *
 * These calls are neither a part of a step nor undone with one, and any thread may make them. */
#ifndef CADRE_RUNTIME_VARIABLES_REMOTE_VARIABLE_H
#define CADRE_RUNTIME_VARIABLES_REMOTE_VARIABLE_H

#include "cadre/served.h"
#include "cadre/sparse.h"
#include "worker/library/runtime/variables/variable.h"

/* Some rows of a variable, or all of it: a scalar is one row. */
struct variable_rows {
    const int64_t *ids; /* by number, in any order; NULL: those from `first` on */
    uint64_t first;
    uint64_t count;
};

/* One change; `values` and `ids` were checked, and are in the host's memory. */
struct variable_push {
    cadre_assignment how;
    const void *values;
    const struct variable_rows *rows; /* by number; NULL: all */
    void *into;                       /* receives the rows afterwards; NULL: not read */
    const cadre_push_options *options;
};

/* A shard: its rows and server. */
struct variable_shard {
    int64_t first; /* rows */
    int64_t rows;
    const char *device;
};

struct optimizer_rule;

struct remote_variable_ops {
    /* On the chief creates it; in a closure finds it, and compares it with `plan`, which passed the
     * checks of all variables. */
    cadre_status (*create)(
        const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);
    /* NOT_FOUND names those that there are. FAILED_PRECONDITION: the process has no servers. */
    cadre_status (*find)(
        const char *name, cadre_variable **ret_variable, struct cadre_error *error);
    uint32_t (*shards)(const cadre_variable *variable);
    /* shard < shards. */
    struct variable_shard (*shard)(const cadre_variable *variable, uint32_t shard);
    /* Into the host's memory, after `step` synchronous steps. */
    cadre_status (*read)(const cadre_variable *variable, const struct variable_rows *rows,
        uint64_t step, void *into, struct cadre_error *error);
    cadre_status (*push)(const cadre_variable *variable, const struct variable_push *push,
        struct cadre_error *error);
    /* Gives it its optimizer: on the chief, once; elsewhere nothing. ALREADY_EXISTS: it has another
     * one. */
    cadre_status (*train)(
        cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error);
    /* The optimizer's slot of that name, or "updates": a read-only variable on the same servers,
     * which ends with it. FAILED_PRECONDITION: the servers have no slot of that name. */
    cadre_status (*slot)(cadre_variable *variable, const char *name, cadre_variable **ret_slot,
        struct cadre_error *error);
    /* The largest count of updates among its shards. */
    cadre_status (*updates)(
        const cadre_variable *variable, int64_t *ret_updates, struct cadre_error *error);
    /* Whether the calling thread runs a closure: it finds what the chief has created, and creates
     * nothing. */
    bool (*in_closure)(void);
    /* NULL is allowed. */
    void (*free)(struct served *served);
};

/* Once in a process, before there is such a variable. */
void remote_variable_set_ops(const struct remote_variable_ops *remote);
/* NULL: remote_variable_set_ops was not called. */
const struct remote_variable_ops *remote_variable_ops(void);

/* Whether variables are on servers by default: of such a strategy, and in closures. */
bool variable_scope_has_servers(const cadre_strategy *strategy);

/* Whether `plan` is of a variable on servers: by its placement, else by its strategy; in a closure,
 * by the chief's. INVALID_ARGUMENT, FAILED_PRECONDITION: it cannot be placed so. */
cadre_status variable_is_remote(
    const struct variable_plan *plan, bool *ret_remote, struct cadre_error *error);

/* --- of several replicas in a step, which change it together --- */

/* Whether `replica`, or with NULL the replica whose function the calling thread runs, is one of
 * several; then *ret_replica is that one. */
bool variable_is_changed_together(cadre_replica *replica, cadre_replica **ret_replica);

/* The values of all replicas combined by the variable's aggregation; the caller's.
 * INVALID_ARGUMENT: it has no aggregation. */
cadre_status variable_combine(cadre_replica *replica, const cadre_variable *variable,
    const char *function, const cadre_tensor *value, cadre_tensor **ret_combined,
    struct cadre_error *error);
/* Likewise of rows, in the host's memory: those of all replicas, one behind the other. */
cadre_status variable_combine_rows(cadre_replica *replica, cadre_variable *variable,
    const char *function, const cadre_sparse *value, cadre_sparse *ret_combined,
    struct cadre_error *error);

/* The first replica pushes, in the order of the closure whose thread it runs in; the others wait
 * for it. `push` is equal on all of them. */
cadre_status variable_push_together(cadre_replica *replica, const cadre_variable *variable,
    const char *function, const struct variable_push *push, struct cadre_error *error);

/* All of it, as a tensor in the host's memory that is the caller's. */
cadre_status variable_read_remote(
    const cadre_variable *variable, cadre_tensor **ret_value, struct cadre_error *error);

#endif
