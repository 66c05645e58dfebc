/* SPDX-License-Identifier: Apache-2.0
 * The names of variables. A program may give one name to several: then they are made unique.
 *
 *     in cross-replica context     v, v_1, v_2 in the order of creation: the first that is free, or
 *                                  that the job has and this program has not created yet
 *     in a replica function        the k-th call for a name in one run of the function: w, w_1, ...
 *                                  of those that replica functions have; so a later run finds what
 *                                  an earlier one created */
#ifndef CADRE_RUNTIME_CREATE_VARIABLE_NAME_H
#define CADRE_RUNTIME_CREATE_VARIABLE_NAME_H

#include "common/base/error.h"
#include "common/model/limits.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* The names that a local replica has used in its steps, in the order of its calls. */
struct requested_names {
    struct requested_name *list;
    uint32_t count; /* in the current step, and of the one before what is the same */
    uint32_t capacity;
    uint32_t at;    /* calls in the current step */
    uint64_t begun; /* which attempt that is (struct step) */
};

/* The final name of what the program calls `name`. *ret_existing: a variable with that name that is
 * to be returned, because the job has it, and the program of this task, which came later, has not
 * created it yet. NULL: it is to be created. ALREADY_EXISTS: a registered state or a tensor of
 * parameter servers has the name. INVALID_ARGUMENT: it is too long with its number. */
cadre_status variable_name_next(const cadre_strategy *strategy, const char *name,
    char ret_name[LIMIT_NAME_BYTES], cadre_variable **ret_existing, struct cadre_error *error);

/* The same for a call in a replica function, in its thread. */
cadre_status variable_name_in_function(const cadre_replica *replica, const char *name,
    char ret_name[LIMIT_NAME_BYTES], cadre_variable **ret_existing, struct cadre_error *error);

/* ALREADY_EXISTS: a registered state or a tensor on servers is in checkpoints under that name. */
cadre_status variable_name_check(
    const cadre_strategy *strategy, const char *name, struct cadre_error *error);

#endif
