/* SPDX-License-Identifier: Apache-2.0
 * The tensors of all replicas, joined along an axis. */
#ifndef CADRE_RUNTIME_CONCATENATE_H
#define CADRE_RUNTIME_CONCATENATE_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

struct concatenation {
    cadre_tensor *result;
    uint8_t *pieces; /* memory for the replicas' tensors, whole, one behind the other */
    uint8_t *apart;  /* memory of its own for them, when they must be reordered; else NULL */
    const int64_t *sizes;
    uint32_t count;
    size_t outer; /* rows of bytes in each piece */
    size_t inner; /* bytes of one step along the axis in a row */
};

/* Prepares the result for `own` with the sum of the `count` sizes along `axis`; `sizes` is borrowed
 * until the end. When `own` is on a device all memory is there, and no piece is reordered, so the
 * axes before `axis` must have one entry. ret_bytes[count]: of each piece. INVALID_ARGUMENT: a size
 * is negative or their sum is more than a tensor holds. RESOURCE_EXHAUSTED. */
cadre_status concatenation_begin(struct concatenation *ret_concatenation, const cadre_tensor *own,
    uint32_t axis, const int64_t *sizes, uint32_t count, size_t *ret_bytes,
    struct cadre_error *error);

/* All pieces were written: returns the joined tensor, the caller's. */
cadre_tensor *concatenation_end(struct concatenation *concatenation);

/* Frees it without a result. */
void concatenation_drop(struct concatenation *concatenation);

#endif
