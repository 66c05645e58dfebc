/* SPDX-License-Identifier: Apache-2.0
 * The names of the mesh's operations and element types in messages, and which values are legal at
 * all. */
#ifndef CADRE_WORKER_MESH_NAMES_H
#define CADRE_WORKER_MESH_NAMES_H

#include <stdbool.h>

#include "worker/library/mesh/mesh.h"

/* The kinds of collective; the numbers are sent in frames. */
enum mesh_kind {
    MESH_ALL_REDUCE = 1,
    MESH_BROADCAST,
    MESH_ALL_GATHER,
    MESH_BARRIER,
    MESH_REDUCE_SCATTER
};

#define MESH_OP_COUNT    4
#define MESH_DTYPE_COUNT 11

/* Whether `op` is a value of enum mesh_op. */
bool mesh_op_valid(unsigned op);
/* Whether `dtype` is a value of enum mesh_dtype. */
bool mesh_dtype_valid(unsigned dtype);

/* "all_reduce"; "?" for a value outside of enum mesh_kind. */
const char *mesh_kind_name(unsigned kind);
/* "sum"; "?" for a value outside of enum mesh_op. */
const char *mesh_op_name(unsigned op);
/* "float32"; "?" for a value outside of enum mesh_dtype. */
const char *mesh_dtype_name(unsigned dtype);

#endif
