/* SPDX-License-Identifier: Apache-2.0
 * Changing variables: the new value depends on what is given, and in which context.
 * (tf.Variable.assign, assign_add, assign_sub.)
 *
 *     what is given                in replica context             in cross-replica context
 *     a tensor                     this replica's value:          to every component
 *                                  combined as the aggregation
 *                                  says, then to all
 *     a host number (literal)      the same everywhere:           to every component
 *                                  nothing is combined
 *     a value per replica          -                              to each component its own
 *
 * In replica context, x_r being what replica r gives, the new value of each component is
 *
 *     aggregation             assign            assign_add              a number c, added
 *     NONE                    x_r, its own      own + x_r               own + c
 *     SUM                     sum of x_r        own + sum of x_r        INVALID_ARGUMENT if n > 1
 *     MEAN                    sum of x_r / n    own + sum of x_r / n    own + c
 *     ONLY_FIRST_REPLICA      x_0               own + x_0               own + c
 *
 * and of a variable that is combined when read always what the row of NONE says.
 *
 * Where components of a mirrored variable come to differ (NONE, a value per replica) the replicas'
 * states do, which is found where they are compared: what each replica is to have for itself
 * belongs into a variable that is combined when read; a program that intends the difference turns
 * the comparison off (CADRE_VERIFY_STATE, cadre/program.h).
 *
 * A change in cross-replica context is done at once before the first step, where the program sets
 * its variables up. After it, it is a step of its own without samples: the position grows by one,
 * it is done on all tasks or on none, and like cadre_run it ends the loan of the last outputs. So
 * `rate *= 0.5` or a metric that is set back between two epochs is as exact as a step. All tasks
 * must assign the same: INVALID_ARGUMENT when they do not, after the first step. In the function of
 * cadre_merge_call it is a part of the step at hand, and is not compared.
 *
 * Regular variables are changed at once, in either context, by each replica that makes the call.
 * Those on parameter servers are changed there, at once and in any context, and no step undoes it
 * (cadre/served.h).
 *
 * Errors of all functions here: INVALID_ARGUMENT for another type or shape, and where a row above
 * says so; FAILED_PRECONDITION for a variable that has ended or of another strategy. In replica
 * context a failure fails the step, also if the function ignores the status. */
#ifndef CADRE_ASSIGN_H
#define CADRE_ASSIGN_H

#include "cadre/replica.h"
#include "cadre/tensor.h"
#include "cadre/values.h"
#include "cadre/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The component gets the combined value; or its old value plus or minus that, which is not for
 * CADRE_BOOL and CADRE_STRING, and not for an ON_READ SUM in cross-replica context. Integers wrap
 * around. (tf.Variable.assign, assign_add, assign_sub.) */
typedef enum cadre_assignment {
    CADRE_ASSIGN = 0,
    CADRE_ASSIGN_ADD,
    CADRE_ASSIGN_SUB,
    CADRE_ASSIGN_UPDATE /* the value is a gradient, of which servers make what the variable's
                           optimizer says (cadre/served.h); others: INVALID_ARGUMENT */
} cadre_assignment;

/* Assigns `value`, of the variable's type and shape, which is not changed. `replica` is NULL in
 * cross-replica context and inside an update. CADRE_STRING: in cross-replica context only
 * (FAILED_PRECONDITION). Of an ON_READ SUM every component gets the n-th part (of integers the
 * first few one more, so that they add up), and the total is `value`. ON_READ without aggregation:
 * only added to in cross-replica context, else INVALID_ARGUMENT. */
CADRE_API cadre_status cadre_variable_assign(cadre_replica *replica, cadre_variable *variable,
    cadre_assignment how, const cadre_tensor *value);

/* Assigns one number to every element, as cadre_variable_assign does. Integers and truth values
 * must hold it exactly, else INVALID_ARGUMENT; floating types round. Replicas that give different
 * numbers: INVALID_ARGUMENT on all of them, unless the aggregation is NONE. */
CADRE_API cadre_status cadre_variable_assign_literal(
    cadre_replica *replica, cadre_variable *variable, cadre_assignment how, double value);

/* In cross-replica context: component r gets the value of replica r, and nothing is combined; of an
 * ON_READ variable that is no SUM the total follows from them. `values` has one component, of
 * the variable's type and shape for each local replica. INVALID_ARGUMENT also for a variable of one
 * component, for strings, and for an ON_READ SUM, which is assigned as a whole. */
CADRE_API cadre_status cadre_variable_assign_values(
    cadre_variable *variable, cadre_assignment how, const cadre_per_replica *values);

/* --- update --- */

/* Writes one component of a variable. Inside it cadre_variable_read(NULL, v) is, of every variable
 * of the strategy, the component of the same replica, and cadre_variable_assign(NULL, v, ...) and
 * its like change that component alone, with nothing combined. `inputs`: this replica's tensors of
 * what cadre_variable_update was given; borrowed. `ret_output`: NULL at first; a tensor, one
 * reference of it, if outputs were requested. It makes no collective. Its failure is that of the
 * update; cadre_fail says why. */
typedef cadre_status (*cadre_update_function)(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user);

/* Calls `function` once for each component of the variable on this task, with that replica's part
 * of `inputs` (NULL: none), for different components perhaps at the same time. In cross-replica
 * context; it is a change as described above, and what the function does to other variables goes
 * with it. An aggregating variable has one component: `inputs` are then of one replica.
 * `ret_outputs` (may be NULL): what the function gave, one of each component, the caller's to
 * release; NULL after an error, and in a task that has joined and has not reached its first step,
 * where the others have done it already. FAILED_PRECONDITION in a replica function: use
 * cadre_merge_call there. INVALID_ARGUMENT: inputs of another number of replicas, a regular
 * variable, strings; outputs that were requested and are missing.
 * (tf.distribute.StrategyExtended.update.) */
CADRE_API cadre_status cadre_variable_update(cadre_strategy *strategy, cadre_variable *variable,
    cadre_update_function function, void *user, const cadre_per_replica *inputs,
    cadre_per_replica **ret_outputs);

/* What cadre_update_non_slot calls for one device, whose canonical name is `device`. What it may
 * do, and `inputs` and `ret_output`, are as in an update of a variable. */
typedef cadre_status (*cadre_non_slot_function)(
    const char *device, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user);

/* Calls `function` once for each of this task's CADRE_PARAMETER_DEVICES (cadre/strategy.h): an
 * update of what belongs to no one variable, such as the count of an optimizer's steps. What it
 * assigns to variables goes to their components there. All contexts, inputs, outputs and errors are
 * as with cadre_variable_update. (tf.distribute.StrategyExtended.update_non_slot.) */
CADRE_API cadre_status cadre_update_non_slot(cadre_strategy *strategy,
    cadre_non_slot_function function, void *user, const cadre_per_replica *inputs,
    cadre_per_replica **ret_outputs);

#ifdef __cplusplus
}
#endif
#endif
