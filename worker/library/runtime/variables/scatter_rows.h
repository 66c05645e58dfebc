/* SPDX-License-Identifier: Apache-2.0
 * Applies sparse values to one component, row by row. */
#ifndef CADRE_RUNTIME_SCATTER_ROWS_H
#define CADRE_RUNTIME_SCATTER_ROWS_H

#include "cadre/scatter.h"
#include "common/base/error.h"
#include "worker/library/runtime/variables/variable.h"

/* True: some values are refused, because integers are divided. */
bool scatter_checks_values(const cadre_variable *variable, cadre_scatter how);

/* Checks of the numbers themselves: INVALID_ARGUMENT for an index that is no row of the variable,
 * and for a division of integers by 0. Shapes and types fit. */
cadre_status scatter_check_rows(const cadre_variable *variable, cadre_scatter how,
    const cadre_sparse *value, struct cadre_error *error);

/* Applies the rows in order to a value of the variable. scatter_check_rows has accepted them, and
 * no other thread can have changed them since. */
void scatter_rows(
    const cadre_variable *variable, void *component, cadre_scatter how, const cadre_sparse *value);

#endif
