/* SPDX-License-Identifier: Apache-2.0
 * Comparing calls, and describing them in text. */
#include "worker/library/mesh/agreement.h"

#include <inttypes.h>
#include <stdio.h>

bool mesh_call_shape_equal(const struct call_shape *a, const struct call_shape *b)
{
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->root == b->root &&
           a->count == b->count && a->bytes == b->bytes && a->layout == b->layout &&
           a->key == b->key;
}

void mesh_call_shape_describe(const struct call_shape *shape, char *ret_text, size_t size)
{
    const char *kind = mesh_kind_name(shape->kind);
    const char *dtype =
        shape->dtype == CALL_DTYPE_MIXED ? "mixed types" : mesh_dtype_name(shape->dtype);
    switch (shape->kind) {
    case MESH_ALL_REDUCE:
    case MESH_REDUCE_SCATTER:
        snprintf(ret_text, size, "%s(%s, %s, %" PRIu64 " buffers, %" PRIu64 " bytes)", kind,
            mesh_op_name(shape->op), dtype, shape->count, shape->bytes);
        break;
    case MESH_BROADCAST:
        snprintf(ret_text, size,
            "%s(from replica %" PRIu32 ", %s, %" PRIu64 " buffers, %" PRIu64 " bytes)", kind,
            shape->root, dtype, shape->count, shape->bytes);
        break;
    default:
        snprintf(ret_text, size, "%s", kind);
        break;
    }
}
