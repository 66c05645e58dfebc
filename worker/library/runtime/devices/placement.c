/* SPDX-License-Identifier: Apache-2.0
 * Tensors assigned to a logical device, split over several, or replicated on all. Replica functions
 * call it. */
#include <stdlib.h>
#include <string.h>

#include "cadre/logical_device.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/devices/logical_device.h"
#include "worker/library/runtime/replica/step_admission.h"

#define PIECES_MAX 1024 /* of one launch's list */

_Static_assert(CADRE_LOGICAL_GPUS_MAX == DEVICES_MAX, "a placement names any device");

static cadre_status devices_placement_enter(const char *function, const cadre_replica *replica,
    const cadre_tensor *tensor, cadre_placement *ret_placement, struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret_placement, function, "ret_placement", error));
    *ret_placement = (cadre_placement){0};
    CADRE_TRY(step_require(replica, function, error));
    return argument_require(tensor, function, "tensor", error);
}

/* The GPUs of the logical devices, to which the pieces go. */
static void note_gpus(const cadre_replica *replica, cadre_placement *placement)
{
    uint32_t count = cadre_logical_devices(replica);
    for (uint32_t i = 0; i < count && i < CADRE_LOGICAL_GPUS_MAX; i++) {
        const struct device *device = logical_device_of(replica, i);
        CADRE_ASSERT(device == NULL || device->index < CADRE_LOGICAL_GPUS_MAX);
        placement->gpus[i] = device == NULL ? 0 : (uint8_t)(device->index + 1);
    }
}

cadre_status cadre_assign_to_logical_device(const cadre_replica *replica,
    const cadre_tensor *tensor, int32_t logical_device, cadre_placement *ret_placement)
{
    struct cadre_error error = {0};
    cadre_status status = devices_placement_enter(__func__, replica, tensor, ret_placement, &error);
    uint32_t count = cadre_logical_devices(replica);
    if (status == CADRE_OK && (logical_device < 0 || (uint32_t)logical_device >= count)) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "a tensor was assigned to logical device %d, and the replica has %u; name one from 0 "
            "to %u",
            (int)logical_device, count, count - 1);
    }
    if (status == CADRE_OK) {
        ret_placement->logical_device = (uint32_t)logical_device;
        ret_placement->pieces = 1;
        note_gpus(replica, ret_placement);
    }
    return api_return(status, &error);
}

static cadre_status check_split(const cadre_tensor *tensor, const int32_t dimensions[],
    uint32_t count, uint32_t devices, struct cadre_error *error)
{
    uint32_t rank = cadre_tensor_rank(tensor);
    if (count != rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%u partition dimensions were given for a tensor of rank %u; give one for each "
            "dimension",
            count, rank);
    }
    uint64_t pieces = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dimensions[i] < 1) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "partition dimension %u is %d; it is at least 1", i, (int)dimensions[i]);
        }
        pieces *= (uint64_t)dimensions[i];
        pieces = pieces > UINT32_MAX ? UINT32_MAX : pieces;
        if (cadre_tensor_dim(tensor, i) % dimensions[i] != 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "dimension %u has size %lld, which cannot be cut into %d equal pieces", i,
                (long long)cadre_tensor_dim(tensor, i), (int)dimensions[i]);
        }
    }
    if (pieces != devices) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the partition dimensions make %llu pieces, and the replica has %u logical devices; "
            "their product must be that number",
            (unsigned long long)pieces, devices);
    }
    return CADRE_OK;
}

cadre_status cadre_split_to_logical_devices(const cadre_replica *replica,
    const cadre_tensor *tensor, const int32_t partition_dimensions[], uint32_t count,
    cadre_placement *ret_placement)
{
    struct cadre_error error = {0};
    cadre_status status = devices_placement_enter(__func__, replica, tensor, ret_placement, &error);
    if (status == CADRE_OK && count > 0) {
        status = argument_require(partition_dimensions, __func__, "partition_dimensions", &error);
    }
    if (status == CADRE_OK) {
        status = check_split(
            tensor, partition_dimensions, count, cadre_logical_devices(replica), &error);
    }
    if (status == CADRE_OK) {
        *ret_placement = (cadre_placement){
            .kind = CADRE_PLACEMENT_SPLIT, .pieces = cadre_logical_devices(replica), .rank = count};
        for (uint32_t i = 0; i < count; i++) {
            ret_placement->partition_dimensions[i] = partition_dimensions[i];
        }
        note_gpus(replica, ret_placement);
    }
    return api_return(status, &error);
}

cadre_status cadre_replicate_to_logical_devices(
    const cadre_replica *replica, const cadre_tensor *tensor, cadre_placement *ret_placement)
{
    struct cadre_error error = {0};
    cadre_status status = devices_placement_enter(__func__, replica, tensor, ret_placement, &error);
    if (status == CADRE_OK) {
        *ret_placement = (cadre_placement){
            .kind = CADRE_PLACEMENT_REPLICATED, .pieces = cadre_logical_devices(replica)};
        note_gpus(replica, ret_placement);
    }
    return api_return(status, &error);
}

/* --- pieces --- */

/* A block of a tensor: its first index and its size along each dimension. It consists of runs,
 * whose elements are consecutive in memory: of the axes from `axis` on. */
struct block {
    int64_t first[CADRE_RANK_MAX];
    int64_t dims[CADRE_RANK_MAX];
    uint32_t axis; /* the last one that is cut */
    int64_t runs;
    size_t run_bytes;
};

static void find_runs(const cadre_tensor *tensor, struct block *block)
{
    CADRE_ASSERT(block->axis < cadre_tensor_rank(tensor));
    block->runs = 1;
    block->run_bytes = cadre_dtype_bytes(cadre_tensor_dtype(tensor));
    for (uint32_t axis = 0; axis < cadre_tensor_rank(tensor); axis++) {
        if (axis < block->axis) {
            block->runs *= block->dims[axis];
        } else {
            block->run_bytes *= (size_t)block->dims[axis];
        }
    }
}

/* The first element of the run of this number. */
static const uint8_t *run_at(const cadre_tensor *tensor, const struct block *block, int64_t number)
{
    int64_t at = 0;
    int64_t step = 1; /* elements from one index of the axis to the next */
    for (uint32_t axis = cadre_tensor_rank(tensor); axis-- > 0;) {
        int64_t index = block->first[axis];
        if (axis < block->axis) {
            index += number % block->dims[axis];
            number /= block->dims[axis];
        }
        at += index * step;
        step *= cadre_tensor_dim(tensor, axis);
    }
    const uint8_t *from = cadre_tensor_const_data(tensor);
    return from + (size_t)at * cadre_dtype_bytes(cadre_tensor_dtype(tensor));
}

static void copy_here(const cadre_tensor *tensor, const struct block *block, cadre_tensor *piece)
{
    uint8_t *to = cadre_tensor_data(piece);
    for (int64_t i = 0; i < block->runs; i++) {
        memcpy(to, run_at(tensor, block, i), block->run_bytes);
        to += block->run_bytes;
    }
    CADRE_ASSERT(to == (uint8_t *)cadre_tensor_data(piece) + cadre_tensor_bytes(piece));
}

/* Packs on the device that has both, in the order of its compute stream. */
static cadre_status pack_there(const cadre_tensor *tensor, const struct block *block,
    struct device *device, cadre_tensor *piece, struct cadre_error *error)
{
    size_t room = block->runs < PIECES_MAX ? (size_t)block->runs : PIECES_MAX;
    CADRE_ASSERT(tensor_device(piece) == device);
    struct device_piece *pieces = calloc(room, sizeof *pieces);
    cadre_status status = CADRE_OK;
    if (pieces == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of pieces");
    }
    for (int64_t i = 0; status == CADRE_OK && i < block->runs;) {
        size_t count = 0;
        for (; count < room && i < block->runs; i++) {
            pieces[count++] = (struct device_piece){.bytes = block->run_bytes,
                .data = (void *)(uintptr_t)run_at(tensor, block, i),
                .offset = (size_t)i * block->run_bytes};
        }
        status = device->ops->pack(pieces, count, cadre_tensor_data(piece), device->compute, error);
    }
    free(pieces);
    return status;
}

/* Copies a block that is not a range of rows. */
static cadre_status copy_block(const cadre_tensor *tensor, struct block *block,
    cadre_tensor **ret_piece, struct cadre_error *error)
{
    struct device *device = tensor_device(tensor);
    CADRE_ASSERT(block->axis > 0); /* else it is a view */
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    uint32_t rank = cadre_tensor_rank(tensor);
    cadre_status status =
        device == NULL ? tensor_create_unset(dtype, rank, block->dims, ret_piece, error)
                       : tensor_create_on(device, NULL, dtype, rank, block->dims, ret_piece, error);
    if (status != CADRE_OK || cadre_tensor_count(*ret_piece) == 0) {
        return status;
    }
    find_runs(tensor, block);
    if (device == NULL) {
        copy_here(tensor, block, *ret_piece);
        return CADRE_OK;
    }
    status = pack_there(tensor, block, device, *ret_piece, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_piece);
        *ret_piece = NULL;
    }
    return status;
}

static cadre_status devices_placement_cut(cadre_tensor *tensor, const cadre_placement *placement,
    uint32_t number, cadre_tensor **ret_piece, struct cadre_error *error)
{
    struct block block = {.axis = 0};
    uint32_t rank = cadre_tensor_rank(tensor);
    for (uint32_t axis = rank; axis-- > 0;) {
        uint32_t pieces = (uint32_t)placement->partition_dimensions[axis];
        block.dims[axis] = cadre_tensor_dim(tensor, axis) / pieces;
        block.first[axis] = block.dims[axis] * (number % pieces);
        number /= pieces;
        block.axis = block.axis == 0 && pieces > 1 ? axis : block.axis;
    }
    CADRE_ASSERT(number == 0); /* it was one of the pieces */
    if (rank == 0) {
        *ret_piece = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    if (block.axis == 0) { /* only the first dimension is cut, or none */
        return tensor_view_rows(tensor, block.first[0], block.dims[0], ret_piece, error);
    }
    if (cadre_tensor_dtype(tensor) == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of strings can be split along its first dimension only");
    }
    return copy_block(tensor, &block, ret_piece, error);
}

static cadre_status piece_of(cadre_tensor *tensor, const cadre_placement *placement,
    uint32_t logical_device, cadre_tensor **ret_piece, struct cadre_error *error)
{
    if (placement->kind == CADRE_PLACEMENT_ASSIGNED) {
        if (logical_device != placement->logical_device) {
            return cadre_error_set(error, CADRE_NOT_FOUND,
                "logical device %u has nothing of a tensor that is assigned to %u", logical_device,
                placement->logical_device);
        }
        *ret_piece = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    if (logical_device >= placement->pieces) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "logical device %u has no piece of a tensor that is on %u", logical_device,
            placement->pieces);
    }
    if (placement->kind == CADRE_PLACEMENT_REPLICATED) {
        *ret_piece = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    if (placement->kind != CADRE_PLACEMENT_SPLIT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a kind of placement; use one that the library made", (int)placement->kind);
    }
    CADRE_TRY(check_split(tensor, placement->partition_dimensions,
        placement->rank > CADRE_RANK_MAX ? 0 : placement->rank, placement->pieces, error));
    return devices_placement_cut(tensor, placement, logical_device, ret_piece, error);
}

/* Copies those pieces to their GPU that are in another GPU's memory. */
static cadre_status devices_placement_bring(const cadre_placement *placement,
    uint32_t logical_device, cadre_tensor **piece, struct cadre_error *error)
{
    uint32_t gpu = logical_device < CADRE_LOGICAL_GPUS_MAX ? placement->gpus[logical_device] : 0;
    const struct device *from = tensor_device(*piece);
    if (gpu == 0 || from == NULL || from->index == gpu - 1) {
        return CADRE_OK;
    }
    struct device *device = NULL;
    cadre_tensor *there = NULL;
    cadre_status status = device_open(gpu - 1, &device, error);
    if (status == CADRE_OK) {
        status = tensor_copy_begin(device, *piece, &there, error);
    }
    cadre_tensor_release(*piece);
    *piece = there;
    return status;
}

cadre_status cadre_placement_piece(cadre_tensor *tensor, const cadre_placement *placement,
    uint32_t logical_device, cadre_tensor **ret_piece)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_piece, __func__, "ret_piece", &error);
    if (status == CADRE_OK) {
        *ret_piece = NULL;
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(placement, __func__, "placement", &error);
    }
    if (status == CADRE_OK) {
        status = piece_of(tensor, placement, logical_device, ret_piece, &error);
    }
    if (status == CADRE_OK) {
        status = devices_placement_bring(placement, logical_device, ret_piece, &error);
    }
    return api_return(status, &error);
}
