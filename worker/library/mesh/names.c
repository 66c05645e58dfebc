/* SPDX-License-Identifier: Apache-2.0
 * One table per enum: name and, for element types, size. */
#include "worker/library/mesh/names.h"

#include "common/pure/assert.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [MESH_F64] = {.name = "float64", .bytes = 8},
    [MESH_F32] = {.name = "float32", .bytes = 4},
    [MESH_F16] = {.name = "float16", .bytes = 2},
    [MESH_BF16] = {.name = "bfloat16", .bytes = 2},
    [MESH_I64] = {.name = "int64", .bytes = 8},
    [MESH_I32] = {.name = "int32", .bytes = 4},
    [MESH_I16] = {.name = "int16", .bytes = 2},
    [MESH_I8] = {.name = "int8", .bytes = 1},
    [MESH_U32] = {.name = "uint32", .bytes = 4},
    [MESH_U16] = {.name = "uint16", .bytes = 2},
    [MESH_U8] = {.name = "uint8", .bytes = 1},
};

static const char *const ops[] = {
    [MESH_SUM] = "sum", [MESH_PROD] = "prod", [MESH_MIN] = "min", [MESH_MAX] = "max"};

static const char *const kinds[] = {[MESH_ALL_REDUCE] = "all_reduce",
    [MESH_BROADCAST] = "broadcast",
    [MESH_ALL_GATHER] = "all_gather",
    [MESH_BARRIER] = "barrier",
    [MESH_REDUCE_SCATTER] = "reduce_scatter"};

_Static_assert(CADRE_COUNT_OF(dtypes) == MESH_DTYPE_COUNT, "one row per element type");
_Static_assert(CADRE_COUNT_OF(ops) == MESH_OP_COUNT, "one row per operation");

bool mesh_op_valid(unsigned op)
{
    return op < MESH_OP_COUNT;
}

bool mesh_dtype_valid(unsigned dtype)
{
    return dtype < MESH_DTYPE_COUNT;
}

size_t mesh_dtype_bytes(enum mesh_dtype dtype)
{
    CADRE_ASSERT(mesh_dtype_valid((unsigned)dtype));
    return dtypes[dtype].bytes;
}

const char *mesh_kind_name(unsigned kind)
{
    return kind < CADRE_COUNT_OF(kinds) && kinds[kind] != NULL ? kinds[kind] : "?";
}

const char *mesh_op_name(unsigned op)
{
    return mesh_op_valid(op) ? ops[op] : "?";
}

const char *mesh_dtype_name(unsigned dtype)
{
    return mesh_dtype_valid(dtype) ? dtypes[dtype].name : "?";
}
