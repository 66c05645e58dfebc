/* SPDX-License-Identifier: Apache-2.0
 * A world (tests/conformance/mesh/world.h) whose replicas are on devices of the stand-in, with
 * buffers there. */
#ifndef CADRE_TESTS_GPU_MESH_PLACED_BUFFERS_H
#define CADRE_TESTS_GPU_MESH_PLACED_BUFFERS_H

#include "tests/conformance/mesh/world.h"
#include "worker/library/mesh/mesh_device.h"

#define PLACED_ON_HOST UINT32_MAX

/* The device of each replica by its global index, or PLACED_ON_HOST; as they are when a mesh is
 * formed. The first ones unless a test sets others. */
extern uint32_t placed_devices[WORLD_REPLICAS_MAX];
void placed_default_devices(void);

/* NULL: on the host. */
struct device *placed_device(const struct seat *seat);

/* A buffer of this replica's, in its memory, with the content of `data`; its end. */
struct mesh_buffer placed_buffer(
    const struct seat *seat, enum mesh_dtype dtype, const void *data, size_t bytes);
void placed_buffer_drop(const struct seat *seat, struct mesh_buffer *buffer);
/* Its content, after all that was enqueued; the replica has synchronized. */
void placed_buffer_read(const struct seat *seat, const struct mesh_buffer *buffer, void *into);

/* Bodies. Connects; OK whether or not that was possible. */
cadre_status placed_connect(struct seat *seat);
/* A sum of `count` ones on the replicas' devices, settled and compared. */
cadre_status placed_sum(struct seat *seat, size_t count);
cadre_status placed_sum_small(struct seat *seat);

/* Forms, and connects; the reason must be "". */
void placed_connect_all(struct world *world);

#endif
