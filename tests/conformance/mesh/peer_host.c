/* SPDX-License-Identifier: Apache-2.0
 * The host peer. */
#include "tests/conformance/mesh/world.h"

const struct world_peer world_peer = {.ops = &mesh_host_ops};
