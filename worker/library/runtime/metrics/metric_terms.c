/* SPDX-License-Identifier: Apache-2.0
 * What each kind of metric counts of a batch, and its result. Pure arithmetic on the host;
 * metric.c calls it. */
#include "worker/library/runtime/metrics/metric_terms.h"

#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/reals.h"
#include "worker/library/runtime/arithmetic/shape.h"

static bool is_by_class(const struct metric_rule *rule)
{
    return rule->kind == CADRE_METRIC_SPARSE_CATEGORICAL_ACCURACY ||
           rule->kind == CADRE_METRIC_SPARSE_TOP_K_ACCURACY;
}

static bool has_targets(const struct metric_rule *rule)
{
    return rule->kind != CADRE_METRIC_SUM && rule->kind != CADRE_METRIC_MEAN;
}

uint32_t metric_state_dims(const struct metric_rule *rule, int64_t ret_dims[2])
{
    CADRE_ASSERT(rule->thresholds >= 2);
    ret_dims[0] = rule->kind == CADRE_METRIC_SUM ? 1 : 2;
    ret_dims[1] = (int64_t)rule->thresholds - 1; /* a value is between two of them */
    return rule->kind == CADRE_METRIC_AUC ? 2 : 1;
}

static double number_at(const cadre_tensor *tensor, int64_t i)
{
    CADRE_ASSERT(i >= 0);
    CADRE_ASSERT(i < cadre_tensor_count(tensor));
    double number;
    reals_double(tensor, i, 1, &number);
    return number;
}

/* --- checks --- */

static cadre_status metric_terms_misfit(const struct metric_rule *rule, const char *what,
    const cadre_tensor *tensor, const cadre_tensor *values, const char *wanted,
    struct cadre_error *error)
{
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char of[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "metric '%s': its %s are %s, of values %s; give %s", rule->name, what,
        tensor == NULL ? "NULL"
                       : tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
                             cadre_tensor_dims(tensor), is),
        tensor_shape_text(
            cadre_tensor_dtype(values), cadre_tensor_rank(values), cadre_tensor_dims(values), of),
        wanted);
}

static bool is_number(const cadre_tensor *tensor)
{
    return cadre_tensor_dtype(tensor) >= CADRE_F64 && cadre_tensor_dtype(tensor) < CADRE_STRING;
}

static cadre_status check_targets(
    const struct metric_rule *rule, const struct metric_batch *batch, struct cadre_error *error)
{
    const cadre_tensor *values = batch->values;
    const cadre_tensor *targets = batch->targets;
    if (!has_targets(rule)) {
        return targets == NULL ? CADRE_OK
                               : metric_terms_misfit(rule, "targets", targets, values,
                                     "NULL: this metric is of the values alone", error);
    }
    if (!is_by_class(rule)) {
        bool fits = targets != NULL && is_number(targets) && shape_same(targets, values);
        return fits ? CADRE_OK
                    : metric_terms_misfit(
                          rule, "targets", targets, values, "numbers of the same shape", error);
    }
    bool fits = cadre_tensor_rank(values) == 2 && cadre_tensor_dim(values, 1) > 0;
    fits = fits && targets != NULL && cadre_tensor_dtype(targets) >= CADRE_I64 &&
           cadre_tensor_dtype(targets) <= CADRE_U8 && cadre_tensor_rank(targets) >= 1 &&
           cadre_tensor_count(targets) == cadre_tensor_dim(values, 0) &&
           cadre_tensor_rows(targets) == cadre_tensor_dim(values, 0);
    return fits ? CADRE_OK
                : metric_terms_misfit(rule, "targets", targets, values,
                      "scores [rows, classes] and one integer for each row", error);
}

/* Terms that the metric adds up: elements, or rows. */
static int64_t terms_of(const struct metric_rule *rule, const struct metric_batch *batch)
{
    return is_by_class(rule) ? cadre_tensor_rows(batch->values) : cadre_tensor_count(batch->values);
}

cadre_status metric_check(
    const struct metric_rule *rule, const struct metric_batch *batch, struct cadre_error *error)
{
    const cadre_tensor *weights = batch->weights;
    if (!is_number(batch->values)) {
        return metric_terms_misfit(rule, "values", batch->values, batch->values, "numbers", error);
    }
    CADRE_TRY(check_targets(rule, batch, error));
    if (weights == NULL) {
        return CADRE_OK;
    }
    int64_t count = cadre_tensor_count(weights);
    bool fits =
        is_number(weights) &&
        (count == 1 || count == terms_of(rule, batch) ||
            (cadre_tensor_rank(batch->values) > 0 && count == cadre_tensor_rows(batch->values)));
    return fits ? CADRE_OK
                : metric_terms_misfit(rule, "weights", weights, batch->values,
                      "one for all, one for each row, or one for each element", error);
}

/* --- terms --- */

static double weight_at(const struct metric_batch *batch, int64_t i, int64_t terms)
{
    if (batch->weights == NULL) {
        return 1;
    }
    int64_t count = cadre_tensor_count(batch->weights);
    CADRE_ASSERT(count > 0);
    CADRE_ASSERT(terms % count == 0);
    return number_at(batch->weights, count == 1 ? 0 : i / (terms / count));
}

/* Whether the class has the first of the greatest scores of a row. */
static bool is_greatest(const cadre_tensor *scores, int64_t row, int64_t class)
{
    int64_t classes = cadre_tensor_dim(scores, 1);
    CADRE_ASSERT(class < classes);
    int64_t best = 0;
    for (int64_t i = 1; i < classes; i++) {
        best = number_at(scores, row * classes + i) > number_at(scores, row * classes + best)
                   ? i
                   : best;
    }
    return best == class;
}

static bool is_among(const cadre_tensor *scores, int64_t row, int64_t class, uint32_t k)
{
    int64_t classes = cadre_tensor_dim(scores, 1);
    double own = number_at(scores, row * classes + class);
    uint64_t greater = 0;
    for (int64_t i = 0; i < classes; i++) {
        greater += number_at(scores, row * classes + i) > own ? 1 : 0;
    }
    return isfinite(own) && greater < k;
}

static cadre_status term_by_class(const struct metric_rule *rule, const struct metric_batch *batch,
    int64_t row, double *ret_term, struct cadre_error *error)
{
    double class = number_at(batch->targets, row);
    if (class < 0 || class >= (double)cadre_tensor_dim(batch->values, 1)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "metric '%s': the class of row %lld is %.0f, and there are scores for %lld classes; "
            "give one from 0 on that is less",
            rule->name, (long long)row, class, (long long)cadre_tensor_dim(batch->values, 1));
    }
    bool hit = rule->kind == CADRE_METRIC_SPARSE_TOP_K_ACCURACY
                   ? is_among(batch->values, row, (int64_t) class, rule->k)
                   : is_greatest(batch->values, row, (int64_t) class);
    *ret_term = hit ? 1 : 0;
    return CADRE_OK;
}

static double term_of(const struct metric_rule *rule, const struct metric_batch *batch, int64_t i)
{
    double value = number_at(batch->values, i);
    if (rule->kind == CADRE_METRIC_MEAN_SQUARED_ERROR) {
        double difference = value - number_at(batch->targets, i);
        return difference * difference;
    }
    if (rule->kind == CADRE_METRIC_BINARY_ACCURACY) {
        double predicted = value > rule->threshold ? 1 : 0;
        return predicted == number_at(batch->targets, i) ? 1 : 0;
    }
    return value;
}

static cadre_status count_terms(const struct metric_rule *rule, const struct metric_batch *batch,
    double *state, struct cadre_error *error)
{
    int64_t terms = terms_of(rule, batch);
    for (int64_t i = 0; i < terms; i++) {
        double weight = weight_at(batch, i, terms);
        double term = 0;
        if (is_by_class(rule)) {
            CADRE_TRY(term_by_class(rule, batch, i, &term, error));
        } else {
            term = term_of(rule, batch, i);
        }
        state[0] += weight * term;
        if (rule->kind != CADRE_METRIC_SUM) {
            state[1] += weight;
        }
    }
    return CADRE_OK;
}

/* --- the area under the curve --- */

/* Thresholds are just under 0, then i / (thresholds - 1), at the end just over 1: the greatest i
 * that the value exceeds. */
static uint32_t metric_terms_exceeded(const struct metric_rule *rule, double value)
{
    double last = rule->thresholds - 1;
    CADRE_ASSERT(value >= 0);
    uint32_t i = (uint32_t)(value * last);
    i = i > rule->thresholds - 2 ? rule->thresholds - 2 : i;
    while (i > 0 && !(value > i / last)) {
        i--;
    }
    while (i + 1 < rule->thresholds - 1 && value > (i + 1) / last) {
        i++;
    }
    CADRE_ASSERT(i < rule->thresholds - 1);
    return i;
}

static cadre_status count_by_threshold(const struct metric_rule *rule,
    const struct metric_batch *batch, double *state, struct cadre_error *error)
{
    int64_t terms = terms_of(rule, batch);
    for (int64_t i = 0; i < terms; i++) {
        double value = number_at(batch->values, i);
        double target = number_at(batch->targets, i);
        if (!(value >= 0 && value <= 1) || (target != 0 && target != 1)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "metric '%s': element %lld is %g with the target %g; give values in [0, 1] and "
                "targets 0 or 1",
                rule->name, (long long)i, value, target);
        }
        double *counts = target == 1 ? state : state + rule->thresholds - 1;
        counts[metric_terms_exceeded(rule, value)] += weight_at(batch, i, terms);
    }
    return CADRE_OK;
}

/* From the highest threshold to the lowest: the values above them grow in number. */
static double metric_terms_area(const struct metric_rule *rule, const double *state)
{
    const double *positive = state;
    const double *negative = state + rule->thresholds - 1;
    double all[2] = {0, 0};
    for (uint32_t i = 0; i < rule->thresholds - 1; i++) {
        all[0] += positive[i];
        all[1] += negative[i];
    }
    if (!(all[0] > 0) || !(all[1] > 0)) {
        return 0;
    }
    double above[2] = {0, 0};
    double sum = 0;
    for (uint32_t i = rule->thresholds - 1; i > 0; i--) {
        double before[2] = {above[0], above[1]};
        above[0] += positive[i - 1];
        above[1] += negative[i - 1];
        sum += (above[1] - before[1]) / all[1] * (above[0] + before[0]) / (2 * all[0]);
    }
    return sum;
}

/* --- the result --- */

cadre_status metric_count(const struct metric_rule *rule, const struct metric_batch *batch,
    double *state, struct cadre_error *error)
{
    return rule->kind == CADRE_METRIC_AUC ? count_by_threshold(rule, batch, state, error)
                                          : count_terms(rule, batch, state, error);
}

double metric_result(const struct metric_rule *rule, const double *state)
{
    if (rule->kind == CADRE_METRIC_SUM) {
        return state[0];
    }
    if (rule->kind == CADRE_METRIC_AUC) {
        return metric_terms_area(rule, state);
    }
    return state[1] == 0 ? 0 : state[0] / state[1];
}
