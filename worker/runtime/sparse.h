/* SPDX-License-Identifier: Apache-2.0
 * Sparse values inside the library. */
#ifndef CADRE_RUNTIME_SPARSE_H
#define CADRE_RUNTIME_SPARSE_H

#include "cadre/sparse.h"
#include "common/base/error.h"

/* INVALID_ARGUMENT when types and shapes do not belong together or an index is out of range. */
cadre_status sparse_check(const cadre_sparse *sparse, struct cadre_error *error);

/* cadre_all_reduce_sparse; *ret_sparse is set on success alone, and the caller's to clear. */
cadre_status sparse_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    const cadre_sparse *input, const cadre_collective_options *options, cadre_sparse *ret_sparse,
    struct cadre_error *error);

#endif
