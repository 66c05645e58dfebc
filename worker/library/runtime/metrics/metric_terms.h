/* SPDX-License-Identifier: Apache-2.0
 * What metrics count of one batch: numbers that add up to the metric's state. */
#ifndef CADRE_RUNTIME_METRIC_TERMS_H
#define CADRE_RUNTIME_METRIC_TERMS_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/metric.h"
#include "common/base/error.h"

#define METRIC_THRESHOLDS_MAX 100000

/* Its parameters, with the defaults filled in. */
struct metric_rule {
    cadre_metric_kind kind;
    const char *name;
    double threshold;
    uint32_t k;
    uint32_t thresholds;
};

struct metric_batch {
    const cadre_tensor *values;
    const cadre_tensor *targets; /* NULL: none */
    const cadre_tensor *weights; /* NULL: all 1 */
};

/* The shape of the state. */
uint32_t metric_state_dims(const struct metric_rule *rule, int64_t ret_dims[2]);

/* INVALID_ARGUMENT: types or shapes that the metric cannot count. */
cadre_status metric_check(
    const struct metric_rule *rule, const struct metric_batch *batch, struct cadre_error *error);

/* Adds what the batch, which was checked, counts to `state`. INVALID_ARGUMENT: a number that is out
 * of range; `state` is invalid then. */
cadre_status metric_count(const struct metric_rule *rule, const struct metric_batch *batch,
    double *state, struct cadre_error *error);

/* The metric of a state. */
double metric_result(const struct metric_rule *rule, const double *state);

#endif
