/* SPDX-License-Identifier: Apache-2.0
 * Metrics: numbers about a training that all replicas count together. (tf.keras.metrics in a
 * strategy's scope.)
 *
 *     cadre_metric_create          as a variable is created: best before the first step
 *     cadre_metric_update          in the replica function: what this replica saw, no collective
 *     cadre_metric_result          between steps: over all replicas and steps since the reset
 *     cadre_metric_reset           between epochs
 *
 * The state of a metric is one variable of its name, CADRE_F64, combined by sum when it
 * is read: {sum}, {sum, weight}, or of an AUC the weights of positive and of negative
 * samples between one threshold and the next. So it is in checkpoints, and nothing is
 * lost with a replica: a result counts every sample of every step exactly once, whichever
 * task died, and a step that is done again is not counted twice. Counts are exact up to
 * 2^53. With central storage, where variables have one component, an update is a
 * collective.
 *
 * They count on the host: FAILED_PRECONDITION for tensors on a GPU, which are copied before
 * (cadre_tensor_copy_to_host), best when a kernel has made few numbers of many. */
#ifndef CADRE_METRIC_H
#define CADRE_METRIC_H

#include <stdint.h>

#include "cadre/tensor.h"
#include "cadre/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A metric with its variables, which are combined when read. */
typedef struct cadre_metric cadre_metric;

/* What is counted of `values`, the predictions p and `targets` y; w are the weights. */
typedef enum cadre_metric_kind {
    CADRE_METRIC_SUM = 0,            /* sum of w p */
    CADRE_METRIC_MEAN,               /* sum of w p / sum of w */
    CADRE_METRIC_MEAN_SQUARED_ERROR, /* the mean of (p - y)^2 */
    CADRE_METRIC_BINARY_ACCURACY,    /* how often p > threshold and y = 1, or neither */
    /* How often the greatest of a row's scores p [rows, classes] is that of its class y [rows] or
     * [rows, 1], the first of equal ones. */
    CADRE_METRIC_SPARSE_CATEGORICAL_ACCURACY,
    /* How often fewer than k scores of the row are greater than that of its class. */
    CADRE_METRIC_SPARSE_TOP_K_ACCURACY,
    /* The area under the curve of true over false positives, p in [0, 1] and y 0 or 1, from as many
     * thresholds, by trapezia; 0 without samples of both kinds. */
    CADRE_METRIC_AUC
} cadre_metric_kind;

/* Numbers that some kinds of metrics have. Zeroed: the defaults. */
typedef struct cadre_metric_options {
    double threshold;    /* BINARY_ACCURACY: 0 means 0.5 */
    uint32_t k;          /* SPARSE_TOP_K_ACCURACY: 0 means 5 */
    uint32_t thresholds; /* AUC: 0 means 200; 2 to 100000, evenly from 0 to 1 */
} cadre_metric_options;

/* Creates a metric, the caller's, to be given to cadre_metric_release. `strategy` NULL as for
 * cadre_variable_create, whose rules and errors hold for `name` and for when it may be called.
 * In a replica function each replica makes a metric of its own in each run, of the one variable.
 * `options` may be NULL. INVALID_ARGUMENT: no such kind, options out of range. */
CADRE_API cadre_status cadre_metric_create(cadre_strategy *strategy, cadre_metric_kind kind,
    const char *name, const cadre_metric_options *options, cadre_metric **ret_metric);

/* Ends it; its variable is the strategy's and stays. NULL is allowed. */
CADRE_API void cadre_metric_release(cadre_metric *metric);

/* Counts values of any type but CADRE_STRING; 0 rows count nothing. `targets`: of the shape of
 * `values` unless the kind says otherwise; NULL of SUM and MEAN. `weights`: NULL (all 1), one
 * number, one for each row, or one for each element, of any number type.
 * Called in replica context, or, with `replica` NULL, of a metric that was created outside of any
 * strategy. INVALID_ARGUMENT names what does not fit: shapes, a class that there is not, a value of
 * an AUC outside of [0, 1]; nothing is counted then, and in replica context the step fails.
 * FAILED_PRECONDITION: another context. (tf.keras.metrics.Metric.update_state.) */
CADRE_API cadre_status cadre_metric_update(cadre_replica *replica, cadre_metric *metric,
    const cadre_tensor *values, const cadre_tensor *targets, const cadre_tensor *weights);

/* The value over all replicas, after the last step; no collective. 0 when nothing was counted. In a
 * replica function: of what this replica counted, as its component of the variable says.
 * (tf.keras.metrics.Metric.result.) */
CADRE_API cadre_status cadre_metric_result(
    const cadre_replica *replica, const cadre_metric *metric, double *ret_result);

/* Sets it back to 0, in cross-replica context, on all tasks between the same two steps. It is no
 * step of the ledger but the beginning of the one that comes: if that is undone and done again, so
 * is the reset, and in the function of cadre_merge_call it is a part of the step at hand. A
 * checkpoint that is taken before the step still holds what was counted, and that a reset follows:
 * a job that goes on from it reads the same results. ABORTED or INVALID_ARGUMENT in the next
 * cadre_run: another task did not reset it.
 * Of a metric whose variable a step has created (cadre_variable_create) a reset is a step of the
 * ledger, as an assignment is. (tf.keras.metrics.Metric.reset_state.) */
CADRE_API cadre_status cadre_metric_reset(cadre_metric *metric);

#ifdef __cplusplus
}
#endif
#endif
