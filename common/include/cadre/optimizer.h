/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: what makes a new value of a variable, its gradient and what is remembered of the
 * gradients before. (tf.keras.optimizers.)
 *
 *     cadre_optimizer_options adam = {CADRE_OPTIMIZER_ADAM, 0.001};
 *     CADRE_TRY(cadre_optimizer_create(strategy, &adam, &o));
 *
 *     in the replica function, last of all:
 *     CADRE_TRY(cadre_optimizer_apply(replica, o, gradients, variables, count, NULL));
 *
 *     replica 0   g0 ─┐                       ┌─ clip ─┐                   ┌─▶ slots, variable
 *     replica 1   g1 ─┼─ all-reduce, buckets ─┼─ clip ─┼─ the step counts ─┼─▶ slots, variable
 *     replica 2   g2 ─┘                       └─ clip ─┘                   └─▶ slots, variable
 *
 * What an optimizer remembers of a variable are variables beside it, its *slots*, as checkpoints of
 * parameter servers call them:
 *
 *     SGD                   -
 *     MOMENTUM              "<name>/momentum"
 *     ADAGRAD               "<name>/accumulator"
 *     RMSPROP               "<name>/velocity", with a momentum "<name>/momentum", with `centered`
 *                           "<name>/average_gradient"
 *     ADAM, ADAMW, LAMB     "<name>/m", "<name>/v"
 *     all                   "<name>/updates", i64 [1]: how many updates there were
 *
 * They are state as any variable: in checkpoints, exported, compared, given to tasks that join. The
 * first cadre_optimizer_apply to a variable makes them, as Keras does, in its step and undone with
 * it; cadre_optimizer_build makes them ahead.
 * Each variable counts its own updates, and that count is the step of its schedule and of the bias
 * correction. (Keras has one count for all variables, which is the same where all are updated each
 * time.)
 *
 * Of a variable on parameter servers (cadre/served.h) slots and counts are there, of each shard its
 * own, and cadre_optimizer_slot reads them there. So is the rule: the chief gives it to them, by
 * its first apply, or by cadre_optimizer_build before closures are scheduled that apply.
 * cadre_optimizer_apply is a push then: at once, exactly once and never undone, in a closure, on
 * the chief, or in a replica function, where the first replica makes it. A closure makes the same
 * optimizer: so one model serves all placements. The rate is the rule's, and changes by its
 * schedule, or with cadre_apply_options.push.
 */
#ifndef CADRE_OPTIMIZER_H
#define CADRE_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/buckets.h"
#include "cadre/served.h"
#include "cadre/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With g the gradient, w the variable, t the number of this update (from 1), all elementwise. */
typedef enum cadre_optimizer_kind {
    CADRE_OPTIMIZER_NONE = 0,
    CADRE_OPTIMIZER_SGD,      /* w -= rate * g */
    CADRE_OPTIMIZER_MOMENTUM, /* momentum := beta * momentum - rate * g; w += momentum; or
                                 (nesterov) w += beta * momentum - rate * g */
    CADRE_OPTIMIZER_ADAGRAD, /* accumulator += g * g; w -= rate * g / sqrt(accumulator + epsilon) */
    CADRE_OPTIMIZER_RMSPROP, /* tf.keras.optimizers.RMSprop */
    CADRE_OPTIMIZER_ADAM,    /* m := b1 m + (1 - b1) g; v := b2 v + (1 - b2) g g;
                                w -= rate sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon) */
    CADRE_OPTIMIZER_ADAMW,   /* w -= w * weight_decay * rate; then ADAM */
    CADRE_OPTIMIZER_LAMB     /* You et al. 2019: ADAM's direction and weight_decay * w, as long as
                                the whole variable is, times the rate */
} cadre_optimizer_kind;

/* How the rate of an update follows from how many there were before, s.
 * (tf.keras.optimizers.schedules.) */
typedef enum cadre_rate_kind {
    CADRE_RATE_CONSTANT = 0,
    CADRE_RATE_EXPONENTIAL,  /* rate * decay_rate ^ (s / decay_steps) */
    CADRE_RATE_PIECEWISE,    /* rate while s <= boundaries[0], then rates[0] while s <=
                                boundaries[1], ... */
    CADRE_RATE_POLYNOMIAL,   /* (rate - end_rate) * (1 - s / decay_steps) ^ power + end_rate */
    CADRE_RATE_INVERSE_TIME, /* rate / (1 + decay_rate * s / decay_steps) */
    CADRE_RATE_COSINE /* rate * ((1 - alpha) * (1 + cos(pi * s / decay_steps)) / 2 + alpha) */
} cadre_rate_kind;

#define CADRE_RATE_PIECES_MAX 16 /* boundaries of a piecewise constant rate */

/* How the learning rate changes from step to step. Zeroed: constant. Steps are updates of the
 * variable. INVALID_ARGUMENT: no decay_steps where the kind has them; boundaries that do not grow.
 */
typedef struct cadre_rate_schedule {
    cadre_rate_kind kind;
    uint64_t decay_steps;
    double decay_rate; /* EXPONENTIAL, INVERSE_TIME */
    bool staircase;    /* the same two: s / decay_steps is rounded down */
    double end_rate;   /* POLYNOMIAL */
    double power;      /* POLYNOMIAL; 0: 1 */
    bool cycle;        /* POLYNOMIAL: decay_steps are doubled, tripled, ... once they are over */
    double alpha;      /* COSINE: the part of the rate that is left at the end */
    /* Of any kind, before all that: in so many steps the rate goes straight from `rate` to
     * warmup_target, which is the formula's rate then, and s counts from there. 0: none. */
    uint64_t warmup_steps;
    double warmup_target;
    uint32_t pieces; /* PIECEWISE: how many boundaries there are; rates[i] holds behind the i-th */
    uint64_t boundaries[CADRE_RATE_PIECES_MAX];
    double rates[CADRE_RATE_PIECES_MAX];
} cadre_rate_schedule;

/* The rule of an optimizer, and its numbers. Zeroed numbers mean Keras' defaults: momentum 0.9 (of
 * MOMENTUM; of RMSPROP none), rho 0.9, beta1 0.9, beta2 0.999, epsilon 1e-7 (LAMB 1e-6),
 * initial_accumulator 0.1, weight_decay of ADAMW 0.004. The rate has to be given. */
typedef struct cadre_optimizer_options {
    cadre_optimizer_kind kind;
    double rate; /* that a schedule begins with */
    cadre_rate_schedule schedule;
    double momentum;
    bool nesterov; /* MOMENTUM */
    double rho;    /* RMSPROP */
    bool centered; /* RMSPROP */
    double beta1;
    double beta2;
    double epsilon;
    double initial_accumulator; /* ADAGRAD */
    /* Decoupled, of any kind: w -= w * weight_decay * rate before the update. Of LAMB a part of its
     * direction. */
    double weight_decay;
    /* At most one of the three (INVALID_ARGUMENT); after the all-reduce. 0: none. */
    double clip_norm;        /* each gradient: g * clip / max(|g|, clip) */
    double clip_value;       /* each element: into [-clip, clip] */
    double clip_global_norm; /* all gradients of a call, as if they were one vector */
    const char *name;        /* of what belongs to no one variable; NULL: "optimizer" */
} cadre_optimizer_options;

/* A rule with the slots of the variables that it updates. */
typedef struct cadre_optimizer cadre_optimizer;
typedef struct cadre_variable cadre_variable; /* cadre/variable.h */

/* Creates an optimizer in the strategy's scope: `strategy` NULL means as in cadre_variable_create;
 * outside of any it is for regular variables. With it goes a variable "<name>/learning_rate" (f64,
 * the rate), unless the rate follows a schedule, or the strategy is of parameter servers, which
 * have it. It creates variables, so all tasks make the same calls in the same order.
 * INVALID_ARGUMENT names what is out of its range. The caller's to release, before or after the
 * strategy; not in a step that applies it. */
CADRE_API cadre_status cadre_optimizer_create(cadre_strategy *strategy,
    const cadre_optimizer_options *options, cadre_optimizer **ret_optimizer);

/* Frees it; its variables are the strategy's, and stay; those of regular variables end. NULL is
 * allowed. */
CADRE_API void cadre_optimizer_release(cadre_optimizer *optimizer);

/* Makes the slots of variables that have none yet ahead of the first apply, in cross-replica
 * context. It has to be called where that could not make them: for a second optimizer of the
 * same variables, whose slots then get names of their own ("w/m_1"); for what
 * cadre_variable_update and the replica functions of closures apply to; on the chief, for
 * variables on servers that closures apply to. In a job that goes on from a checkpoint slots
 * begin with what it holds, whichever call makes them. INVALID_ARGUMENT: a variable of
 * another type than f32 and f64, one that is combined when read, or of another strategy.
 * FAILED_PRECONDITION in a replica function. Of variables on servers ALREADY_EXISTS: it has
 * another optimizer there. In closures nothing is made.
 * (tf.keras.optimizers.Optimizer.build.) */
CADRE_API cadre_status cadre_optimizer_build(
    cadre_optimizer *optimizer, cadre_variable *const variables[], size_t count);

/* What becomes of the replicas' gradients before they are applied. */
typedef enum cadre_gradients {
    CADRE_GRADIENTS_SUM = 0, /* the sum: what apply_gradients does. A loss that is divided by
                                the global batch (cadre/loss.h) makes it the mean over it */
    CADRE_GRADIENTS_MEAN,    /* the sum divided by the number of replicas */
    CADRE_GRADIENTS_REDUCED  /* nothing: each replica has the same already, as of cadre/buckets.h
                                (experimental_aggregate_gradients=False) */
} cadre_gradients;

/* What becomes of the gradients of one call. Zeroed: the defaults. */
typedef struct cadre_apply_options {
    cadre_gradients gradients;
    /* NULL: all are dense. Else [count]: where gradients[i] is NULL and sparse[i].values is not,
     * the gradient of the rows that `indices` name, others being 0: they are joined over the
     * replicas, and rows that come several times are summed. Only these rows of the variable
     * change, and only these of its slots: what is remembered of the others stays as it is (Keras
     * lets it fade), and weight decay passes them over. (tf.IndexedSlices.) */
    const cadre_sparse *sparse;
    cadre_bucket_options buckets; /* of the all-reduce */
    /* Of variables on parameter servers: synchronous, with a bound of staleness, or with another
     * rate. NULL: none of it. */
    const cadre_push_options *push;
} cadre_apply_options;

/* Reduces gradients and updates variables, in a replica function, on all replicas, under the rules
 * of cadre/collective.h. It reduces the gradients, clips them, and has the variables updated once
 * the step counts, after what this replica's cadre_on_apply asked for before. Until then the
 * variables are read as they were; no old value is kept. A step that fails leaves variables and
 * slots as they are, and so does one that is taken over from other tasks, with them.
 *
 * gradients[i], of the type and shape of variables[i], is reduced and clipped in place; what it
 * holds is not touched until cadre_run returns (a reference is kept). NULL: there is none, and the
 * variable stays as it is; all replicas alike. INVALID_ARGUMENT where all are missing, as in Keras.
 *
 * Slots that are missing are made, of all variables that have a gradient: in the first step, and
 * again when another variable is given. They begin with what the job holds under their names: so a
 * task that joins finds them, and an optimizer that comes after another of the same rule that was
 * released goes on with its slots. FAILED_PRECONDITION: another optimizer has slots of the variable
 * (see cadre_optimizer_build). Of an aggregating variable, one component for all replicas, there is
 * one update.
 *
 * In the function of cadre_variable_update (cadre/assign.h) `replica` is NULL, and
 * CADRE_GRADIENTS_REDUCED: the component at hand is updated at once, and undone with the step; it
 * was built. With regular variables it is done at once, in any context, and nothing is reduced.
 *
 * Gradients of variables on servers are pushed, one variable after the other, in any context: each
 * exactly once, never undone, as cadre_variable_push does (CADRE_ASSIGN_UPDATE); in a replica
 * function they are reduced before, and the first replica pushes. Elsewhere in cross-replica
 * context FAILED_PRECONDITION, as in TensorFlow.
 *
 * LAMB of a variable that is cut into shards has the norms of all of them: they are requested
 * first, then the shards get the gradient once more, with the ratio, so that it is sent twice; of a
 * synchronous step (options->push->contributions) it is sent once, and the last contributor sends
 * the ratio to the shards. The last bits of the ratio are of the cut.
 * (tf.keras.optimizers.Optimizer.apply_gradients.) */
CADRE_API cadre_status cadre_optimizer_apply(cadre_replica *replica, cadre_optimizer *optimizer,
    cadre_tensor *const gradients[], cadre_variable *const variables[], size_t count,
    const cadre_apply_options *options);

/* The slot of a variable that was built or applied to, by the end of its name: "m", "updates"; with
 * `variable` NULL what belongs to no one variable: "learning_rate", which is assigned as any
 * variable, between steps (cadre_variable_assign_literal). They are read as any variable; who
 * assigns slots knows why. NOT_FOUND names those that there are. Any context.
 * Of a variable on parameter servers it is one of kind CADRE_VARIABLE_SERVED, in the same shards:
 * reads copy and may fail, as of that variable, and see updates while they are applied; "updates"
 * is in no shards, and reads as the most updates that one of the variable's shards has applied. It
 * lives as long as the variable, is found by no name, and is only read: writing it, or giving it to
 * an optimizer, is FAILED_PRECONDITION (cadre_optimizer_apply changes it). In closures and
 * evaluators give the variable to cadre_optimizer_build of an optimizer of the same kind before.
 * FAILED_PRECONDITION: the chief has given the servers none yet, or one of another kind. */
CADRE_API cadre_status cadre_optimizer_slot(const cadre_optimizer *optimizer,
    const cadre_variable *variable, const char *name, cadre_variable **ret_slot);

/* How often the most updated of its variables was: 0 before, and of NULL. In cross-replica context,
 * and in a replica function. Of variables on parameter servers these are asked, in any context:
 * what counts are the updates that the most updated shard of them has applied, of all tasks, by
 * cadre_optimizer_apply or cadre_variable_push (CADRE_ASSIGN_UPDATE), each once, however often it
 * was sent; a synchronous step is one, and so is a push of rows for each shard that has some. -1: a
 * server cannot be asked; cadre_error_message says why. (tf.keras.optimizers.Optimizer.iterations.)
 */
CADRE_API int64_t cadre_optimizer_iterations(const cadre_optimizer *optimizer);

/* The rate of that variable's next update. Likewise; servers are asked only where it follows a
 * schedule, and NaN is returned when they cannot be. (Optimizer.learning_rate.) */
CADRE_API double cadre_optimizer_learning_rate(const cadre_optimizer *optimizer);

#ifdef __cplusplus
}
#endif
#endif
