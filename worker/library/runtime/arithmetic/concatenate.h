/* SPDX-License-Identifier: Apache-2.0
 * The tensors of all replicas, put one after the other along an axis. */
#ifndef CADRE_RUNTIME_CONCATENATE_H
#define CADRE_RUNTIME_CONCATENATE_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

struct concatenation {
    cadre_tensor *result;
    uint8_t *pieces; /* where the replicas' tensors are to come, whole, one after the other */
    uint8_t *apart;  /* memory of its own for them, where they must be put in order; else NULL */
    const int64_t *sizes;
    uint32_t count;
    size_t outer; /* rows of bytes that each piece has */
    size_t inner; /* bytes of one step along the axis in a row */
};

/* Where `own` is on a device all is, and nothing is put in order: what comes before the axis has
 * one entry. `own` with the size along `axis` that all `count` sizes come to; `sizes` is borrowed
 * until the end. ret_bytes[count]: of each piece. INVALID_ARGUMENT: a size is negative or they come
 * to more than a tensor holds. RESOURCE_EXHAUSTED. */
cadre_status concatenation_begin(struct concatenation *ret_concatenation, const cadre_tensor *own,
    uint32_t axis, const int64_t *sizes, uint32_t count, size_t *ret_bytes,
    struct cadre_error *error);

/* All pieces have come: the tensor of them is the caller's. */
cadre_tensor *concatenation_end(struct concatenation *concatenation);

/* They will not come. */
void concatenation_drop(struct concatenation *concatenation);

#endif
