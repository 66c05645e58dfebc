/* SPDX-License-Identifier: Apache-2.0
 * Changing some rows of a variable, as the gradient of a look-up names them.
 * (tf.Variable.scatter_add and its like, with tf.IndexedSlices.)
 *
 * Row i of value->values is applied to row value->indices[i] of the variable, one after the other:
 * a row that is named twice is changed twice. Before that, in replica context, the replicas' values
 * are combined as the variable's aggregation says:
 *
 *     NONE                  each replica applies its own, to its own component
 *     SUM                   all apply those of all replicas, in order of replica ids
 *     MEAN                  likewise, with every value divided by the number of replicas: a row
 *                           that one replica of two names with the factor 4 is multiplied by 2
 *     ONLY_FIRST_REPLICA    all apply those of replica 0
 *
 * In cross-replica context every component gets the same, and it is a change as cadre/assign.h
 * describes: at once, a part of a merge call's step, or a step of its own. In an update only the
 * component at hand is changed, and of a regular variable the one that there is.
 *
 * Of a component on a GPU all of it goes to the host, is changed there, and goes back: a program
 * with large tables changes their rows by a kernel of its own (cadre_variable_write).
 *
 * `replica` is NULL outside of replica context. `value`: values of the variable's type and of its
 * shape behind the first dimension, as many indices, and `rows` the variable's first dimension or
 * CADRE_DIMENSION_ANY; it is not changed. Integers wrap around; halves are computed in float.
 *
 * Of a variable on parameter servers the rows are changed there, at once and in any context, by
 * ADD, SUB and UPDATE (others: FAILED_PRECONDITION).
 *
 * Errors. INVALID_ARGUMENT: shapes or types that do not fit, a scalar variable, truth values or
 * strings (but for update), a division of integers by 0, an index outside of [0, rows), which is
 * named; in replica context all replicas get the error. UNIMPLEMENTED: a variable that is combined
 * when read; min, max and update with SUM or MEAN, which would need an order of the replicas.
 * FAILED_PRECONDITION as for assignments. In replica context a failure fails the step. */
#ifndef CADRE_SCATTER_H
#define CADRE_SCATTER_H

#include "cadre/sparse.h"
#include "cadre/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of a row and the value for it: their sum, difference, product, ..., or the value.
 * (tf.Variable.scatter_add, _sub, _mul, _div, _min, _max, _update.) */
typedef enum cadre_scatter {
    CADRE_SCATTER_ADD = 0,
    CADRE_SCATTER_SUB,
    CADRE_SCATTER_MUL,
    CADRE_SCATTER_DIV,
    CADRE_SCATTER_MIN,
    CADRE_SCATTER_MAX,
    CADRE_SCATTER_UPDATE /* the row becomes the value */
} cadre_scatter;

/* Changes the rows of `variable` that value->indices names, as described above. `replica` is NULL
 * in cross-replica context. */
CADRE_API cadre_status cadre_variable_scatter(
    cadre_replica *replica, cadre_variable *variable, cadre_scatter how, const cadre_sparse *value);

#ifdef __cplusplus
}
#endif
#endif
