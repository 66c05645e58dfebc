/* SPDX-License-Identifier: Apache-2.0
 * Blocks of devices side by side in a mesh: which device is which logical device of which replica.
 * The program builds an assignment; logical_device.c uses it. */
#include "worker/library/runtime/devices/logical_device.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"

#define DEVICES_MAX (1 << 20) /* of a mesh */

struct axis {
    int32_t devices;
    int32_t shape;     /* of a replica */
    int32_t stride;    /* between its neighbours */
    int32_t footprint; /* of its block */
    int32_t replicas;  /* that fit */
};

static cadre_status check_sizes(
    const char *what, const int32_t sizes[], uint32_t rank, struct cadre_error *error)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (sizes[i] < 1) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s has %d along axis %u; each is at least 1", what, (int)sizes[i], i);
        }
    }
    return CADRE_OK;
}

static cadre_status check_topology(const cadre_topology *topology, struct cadre_error *error)
{
    if (topology->rank < 1 || topology->rank > CADRE_TOPOLOGY_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a mesh of %u axes was given; it has 1 to %d", topology->rank, CADRE_TOPOLOGY_RANK_MAX);
    }
    CADRE_TRY(check_sizes("the mesh of devices", topology->shape, topology->rank, error));
    int64_t devices = 1;
    for (uint32_t i = 0; i < topology->rank; i++) {
        devices *= topology->shape[i];
        if (devices > DEVICES_MAX) {
            return cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "the mesh has more than %d devices", DEVICES_MAX);
        }
    }
    return CADRE_OK;
}

/* The axes of the mesh, with what a replica takes of each. */
static cadre_status take_axes(const cadre_topology *topology,
    const cadre_assignment_options *options, struct axis axes[CADRE_TOPOLOGY_RANK_MAX],
    struct cadre_error *error)
{
    if (options->rank != 0 && options->rank != topology->rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the computation has %u axes and the mesh %u; give equally many", options->rank,
            topology->rank);
    }
    if (options->rank != 0) {
        CADRE_TRY(check_sizes(
            "the computation's shape", options->computation_shape, options->rank, error));
    }
    for (uint32_t i = 0; i < topology->rank; i++) {
        struct axis *axis = &axes[i];
        int32_t stride = options->rank == 0 ? 1 : options->computation_stride[i];
        if (stride < 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the computation's stride is %d along axis %u; it is at least 1", (int)stride, i);
        }
        axis->devices = topology->shape[i];
        axis->shape = options->rank == 0 ? 1 : options->computation_shape[i];
        axis->stride = stride == 0 ? 1 : stride;
        int64_t footprint = (int64_t)axis->shape * axis->stride;
        if (footprint > axis->devices) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "a replica takes %lld devices along axis %u (%d, each %d apart), and the mesh has "
                "%d there",
                (long long)footprint, i, (int)axis->shape, (int)axis->stride, (int)axis->devices);
        }
        axis->footprint = (int32_t)footprint;
        axis->replicas = axis->devices / axis->footprint * axis->stride;
        CADRE_ASSERT(axis->replicas > 0);
    }
    return CADRE_OK;
}

/* The index of number `n` in a box of `sizes`: the last axis counts first, then the others in
 * order. */
static void index_of(uint32_t n, const int32_t sizes[], uint32_t rank, int32_t ret_index[])
{
    CADRE_ASSERT(rank > 0);
    uint32_t size = (uint32_t)sizes[rank - 1];
    ret_index[rank - 1] = (int32_t)(n % size);
    n /= size;
    for (uint32_t i = 0; i + 1 < rank; i++) {
        size = (uint32_t)sizes[i];
        ret_index[i] = (int32_t)(n % size);
        n /= size;
    }
}

static void device_assignment_fill(cadre_device_assignment *assignment, const struct axis axes[])
{
    int32_t replicas[CADRE_TOPOLOGY_RANK_MAX];
    int32_t shape[CADRE_TOPOLOGY_RANK_MAX];
    uint32_t rank = assignment->topology.rank;
    for (uint32_t i = 0; i < rank; i++) {
        replicas[i] = axes[i].replicas;
        shape[i] = axes[i].shape;
    }
    for (uint32_t r = 0; r < assignment->replicas; r++) {
        int32_t block[CADRE_TOPOLOGY_RANK_MAX];
        index_of(r, replicas, rank, block);
        for (uint32_t l = 0; l < assignment->logical_devices; l++) {
            int32_t inside[CADRE_TOPOLOGY_RANK_MAX];
            index_of(l, shape, rank, inside);
            uint32_t number = 0;
            for (uint32_t i = 0; i < rank; i++) {
                int32_t at = block[i] / axes[i].stride * axes[i].footprint +
                             block[i] % axes[i].stride + inside[i] * axes[i].stride;
                number = number * (uint32_t)axes[i].devices + (uint32_t)at;
            }
            CADRE_ASSERT(number < DEVICES_MAX);
            assignment->devices[r * assignment->logical_devices + l] = number;
        }
    }
}

static cadre_status device_assignment_build(const cadre_topology *topology,
    const cadre_assignment_options *options, cadre_device_assignment **ret_assignment,
    struct cadre_error *error)
{
    struct axis axes[CADRE_TOPOLOGY_RANK_MAX] = {{0}};
    CADRE_TRY(check_topology(topology, error));
    CADRE_TRY(take_axes(topology, options, axes, error));
    uint64_t room = 1;
    uint64_t logical = 1;
    uint32_t replicas = options->num_replicas == 0 ? 1 : options->num_replicas;
    for (uint32_t i = 0; i < topology->rank; i++) {
        room *= (uint64_t)axes[i].replicas;
        logical *= (uint64_t)axes[i].shape;
    }
    if (replicas > room) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%u replicas were requested, and the mesh has room for %llu", replicas,
            (unsigned long long)room);
    }
    if (logical > CADRE_LOGICAL_DEVICES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a replica would have %llu logical devices; at most %d are possible",
            (unsigned long long)logical, CADRE_LOGICAL_DEVICES_MAX);
    }
    cadre_device_assignment *assignment =
        malloc(sizeof *assignment + replicas * (size_t)logical * sizeof assignment->devices[0]);
    if (assignment == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for an assignment of devices");
    }
    *assignment = (cadre_device_assignment){
        .topology = *topology, .replicas = replicas, .logical_devices = (uint32_t)logical};
    device_assignment_fill(assignment, axes);
    *ret_assignment = assignment;
    return CADRE_OK;
}

cadre_device_assignment *device_assignment_copy(const cadre_device_assignment *assignment)
{
    size_t devices = (size_t)assignment->replicas * assignment->logical_devices;
    size_t bytes = sizeof *assignment + devices * sizeof assignment->devices[0];
    cadre_device_assignment *copy = malloc(bytes);
    if (copy != NULL) {
        memcpy(copy, assignment, bytes);
    }
    return copy;
}

cadre_status cadre_device_assignment_build(const cadre_topology *topology,
    const cadre_assignment_options *options, cadre_device_assignment **ret_assignment)
{
    struct cadre_error error = {0};
    const cadre_assignment_options defaults = {0};
    cadre_status status = argument_require(ret_assignment, __func__, "ret_assignment", &error);
    if (status == CADRE_OK) {
        *ret_assignment = NULL;
        status = argument_require(topology, __func__, "topology", &error);
    }
    if (status == CADRE_OK) {
        status = device_assignment_build(
            topology, options == NULL ? &defaults : options, ret_assignment, &error);
    }
    return api_return(status, &error);
}

void cadre_device_assignment_release(cadre_device_assignment *assignment)
{
    free(assignment);
}

cadre_status cadre_device_assignment_coordinates(const cadre_device_assignment *assignment,
    uint32_t replica, uint32_t logical_device, int32_t ret_coordinates[CADRE_TOPOLOGY_RANK_MAX])
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(assignment, __func__, "assignment", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_coordinates, __func__, "ret_coordinates", &error);
    }
    if (status == CADRE_OK &&
        (replica >= assignment->replicas || logical_device >= assignment->logical_devices)) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "logical device %u of replica %u was requested; there are %u replicas of %u logical "
            "devices",
            logical_device, replica, assignment->replicas, assignment->logical_devices);
    }
    if (status == CADRE_OK) {
        uint32_t at = assignment->devices[replica * assignment->logical_devices + logical_device];
        for (uint32_t i = assignment->topology.rank; i-- > 0;) {
            uint32_t size = (uint32_t)assignment->topology.shape[i];
            ret_coordinates[i] = (int32_t)(at % size);
            at /= size;
        }
        CADRE_ASSERT(at == 0);
    }
    return api_return(status, &error);
}
