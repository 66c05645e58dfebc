/* SPDX-License-Identifier: Apache-2.0
 * Per-replica values of cases, in a strategy of this process; and steps that give tensors back. */
#ifndef CADRE_TESTS_CONFORMANCE_REPLICAS_H
#define CADRE_TESTS_CONFORMANCE_REPLICAS_H

#include "steps.h"

/* The type that "dtype" of `object` names; `otherwise` without it; skipped when it is not known. */
bool case_dtype(struct conformance_case *self, const json_t *object, cadre_dtype otherwise,
    cadre_dtype *ret_dtype);

/* A JSON value as a tensor of the type, until the end of the case; skipped when it is none. */
bool case_tensor(struct conformance_case *self, const json_t *value, cadre_dtype dtype,
    cadre_tensor **ret_tensor);

/* The type that all of a list's values have together: integers, or reals among them. */
cadre_dtype case_dtype_of(const json_t *values);

/* One value a replica, until the end of the case. */
bool case_values(struct conformance_case *self, cadre_strategy *strategy, const json_t *values,
    cadre_dtype dtype, cadre_per_replica **ret_values);

/* A list of all local replicas' tensors of one component; a new reference, which the case
 * releases. */
json_t *case_results(
    struct conformance_case *self, const cadre_per_replica *value, uint32_t component);

/* The tensor as JSON, released by the case. */
json_t *case_json(struct conformance_case *self, const cadre_tensor *tensor);

/* "SUM", "mean": skipped when there is none; an op that the library refuses is its error. */
bool case_op(struct conformance_case *self, cadre_reduce_op *ret_op, cadre_status *ret_status);

/* `status` is the verdict of the call that the case is about: true when the case goes on with its
 * result; else it has passed with the error that it wanted, or failed. */
bool case_verdict(struct conformance_case *self, cadre_status status, const char *what);

void case_release_json(void *value);
void case_release_tensor(void *tensor);
void case_release_values(void *values);

#endif
