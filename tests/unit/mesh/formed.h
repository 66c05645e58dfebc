/* SPDX-License-Identifier: Apache-2.0
 * Waiting for meshes of this process that were posted together. */
#ifndef CADRE_TESTS_UNIT_MESH_FORMED_H
#define CADRE_TESTS_UNIT_MESH_FORMED_H

#include "worker/library/mesh/mesh.h"

/* Until all of them have formed; none may fail. */
void await_formed(struct mesh *const *meshes, uint32_t count);

#endif
