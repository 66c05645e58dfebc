/* SPDX-License-Identifier: Apache-2.0
 * Locals that are given back where they go out of scope, on every way out of it: also where
 * CADRE_TRY leaves the function.
 *
 *     CADRE_RELEASE_AT_EXIT(tensor) images = NULL; // a cadre_tensor *
 *     CADRE_TRY(cadre_tensor_copy(inputs[0], &images));
 *     CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &images, 1, NULL));
 *
 * The variable is set from its beginning, to NULL as a rule; what it holds at the end is released,
 * unless it is NULL. To keep what it holds, take it out: `*ret = images; images = NULL;`. exit(),
 * and so CADRE_CHECK where it fails, runs none of this.
 *
 *     tensor        cadre_tensor_release
 *     per_replica   cadre_per_replica_release
 *     dataset       cadre_dataset_release
 *     strategy      cadre_strategy_release, which does nothing after cadre_finish
 *     iterator      cadre_iterator_release
 *     metric        cadre_metric_release
 *     optimizer     cadre_optimizer_release
 *
 * An element is no pointer: `CADRE_RELEASE_ELEMENT_AT_EXIT cadre_element element = {0};`.
 *
 * For gcc and clang, in C and C++. With another compiler the macros are not there, and a program
 * that uses them does not compile, for without their effect it would leak. */
#ifndef CADRE_AT_EXIT_H
#define CADRE_AT_EXIT_H

#include "cadre/dataset.h"
#include "cadre/metric.h"
#include "cadre/optimizer.h"
#include "cadre/strategy.h"
#include "cadre/tensor.h"
#include "cadre/values.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)

/* Before the name of a local: a pointer to a `type` of the list above, without its cadre_, whose
 * object is released where the local goes out of scope. */
#define CADRE_RELEASE_AT_EXIT(type)                                                                \
    __attribute__((cleanup(cadre_release_##type##_at_exit))) cadre_##type *
/* Before the declaration of a local cadre_element: its tensors are released at the end. */
#define CADRE_RELEASE_ELEMENT_AT_EXIT __attribute__((cleanup(cadre_element_release)))

/* --- what the macro calls. Programs call the release functions themselves. --- */

/* Releases the tensor that the local holds. */
static inline void cadre_release_tensor_at_exit(cadre_tensor **tensor)
{
    cadre_tensor_release(*tensor);
}

/* Releases the value of replicas that the local holds. */
static inline void cadre_release_per_replica_at_exit(cadre_per_replica **value)
{
    cadre_per_replica_release(*value);
}

/* Releases the dataset that the local holds. */
static inline void cadre_release_dataset_at_exit(cadre_dataset **data)
{
    cadre_dataset_release(*data);
}

/* Releases the strategy that the local holds. */
static inline void cadre_release_strategy_at_exit(cadre_strategy **strategy)
{
    cadre_strategy_release(*strategy);
}

/* Releases the iterator that the local holds. */
static inline void cadre_release_iterator_at_exit(cadre_iterator **iterator)
{
    cadre_iterator_release(*iterator);
}

/* Releases the optimizer that the local holds. */
static inline void cadre_release_optimizer_at_exit(cadre_optimizer **optimizer)
{
    cadre_optimizer_release(*optimizer);
}

/* Releases the metric that the local holds. */
static inline void cadre_release_metric_at_exit(cadre_metric **metric)
{
    cadre_metric_release(*metric);
}

#endif

#ifdef __cplusplus
}
#endif
#endif
