/* SPDX-License-Identifier: Apache-2.0
 * The peer for devices, with all buffers in the host's memory. */
#include "tests/conformance/mesh/world.h"
#include "worker/library/mesh/mesh_device.h"

const struct world_peer world_peer = {.ops = &mesh_device_ops, .few = true};
