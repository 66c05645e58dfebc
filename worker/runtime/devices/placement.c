/* SPDX-License-Identifier: Apache-2.0
 * Tensors assigned to a logical device, split over them, replicated on all. */
#include <string.h>

#include "cadre/logical_device.h"
#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/runtime/border.h"
#include "worker/runtime/step/step.h"

static cadre_status enter(const char *function, const cadre_replica *replica,
    const cadre_tensor *tensor, cadre_placement *ret_placement, struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret_placement, function, "ret_placement", error));
    *ret_placement = (cadre_placement){0};
    CADRE_TRY(step_require(replica, function, error));
    return argument_require(tensor, function, "tensor", error);
}

cadre_status cadre_assign_to_logical_device(const cadre_replica *replica,
    const cadre_tensor *tensor, int32_t logical_device, cadre_placement *ret_placement)
{
    struct cadre_error error = {0};
    cadre_status status = enter(__func__, replica, tensor, ret_placement, &error);
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
    }
    return border(status, &error);
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
    cadre_status status = enter(__func__, replica, tensor, ret_placement, &error);
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
    }
    return border(status, &error);
}

cadre_status cadre_replicate_to_logical_devices(
    const cadre_replica *replica, const cadre_tensor *tensor, cadre_placement *ret_placement)
{
    struct cadre_error error = {0};
    cadre_status status = enter(__func__, replica, tensor, ret_placement, &error);
    if (status == CADRE_OK) {
        *ret_placement = (cadre_placement){
            .kind = CADRE_PLACEMENT_REPLICATED, .pieces = cadre_logical_devices(replica)};
    }
    return border(status, &error);
}

/* --- pieces --- */

/* A block of a tensor: where it begins and how large it is along each dimension. */
struct block {
    int64_t first[CADRE_RANK_MAX];
    int64_t dims[CADRE_RANK_MAX];
};

/* Copies the block, dimension by dimension; `at` counts elements. */
static uint8_t *copy_block(const cadre_tensor *tensor, const struct block *block, uint32_t axis,
    int64_t at, size_t size, uint8_t *to)
{
    uint32_t rank = cadre_tensor_rank(tensor);
    at = at * cadre_tensor_dim(tensor, axis) + block->first[axis];
    if (axis + 1 == rank) {
        size_t bytes = (size_t)block->dims[axis] * size;
        const uint8_t *from = cadre_tensor_const_data(tensor);
        memcpy(to, from + (size_t)at * size, bytes);
        return to + bytes;
    }
    for (int64_t i = 0; i < block->dims[axis]; i++) {
        to = copy_block(tensor, block, axis + 1, at + i, size, to);
    }
    return to;
}

static cadre_status cut(cadre_tensor *tensor, const cadre_placement *placement, uint32_t number,
    cadre_tensor **ret_piece, struct cadre_error *error)
{
    struct block block = {{0}, {0}};
    uint32_t rank = cadre_tensor_rank(tensor);
    bool rows = true; /* only the first dimension is cut */
    for (uint32_t axis = rank; axis-- > 0;) {
        uint32_t pieces = (uint32_t)placement->partition_dimensions[axis];
        block.dims[axis] = cadre_tensor_dim(tensor, axis) / pieces;
        block.first[axis] = block.dims[axis] * (number % pieces);
        number /= pieces;
        rows = rows && (axis == 0 || pieces == 1);
    }
    if (rank == 0) {
        *ret_piece = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    if (rows) {
        return tensor_view_rows(tensor, block.first[0], block.dims[0], ret_piece, error);
    }
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    if (dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of strings can be split along its first dimension only");
    }
    CADRE_TRY(tensor_create_unset(dtype, rank, block.dims, ret_piece, error));
    if (cadre_tensor_count(*ret_piece) > 0) {
        copy_block(tensor, &block, 0, 0, cadre_dtype_bytes(dtype), cadre_tensor_data(*ret_piece));
    }
    return CADRE_OK;
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
            "logical device %u was asked for its piece of a tensor that is on %u", logical_device,
            placement->pieces);
    }
    if (placement->kind == CADRE_PLACEMENT_REPLICATED) {
        *ret_piece = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    if (placement->kind != CADRE_PLACEMENT_SPLIT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a kind of placement; use one that the library gave", (int)placement->kind);
    }
    CADRE_TRY(check_split(tensor, placement->partition_dimensions,
        placement->rank > CADRE_RANK_MAX ? 0 : placement->rank, placement->pieces, error));
    return cut(tensor, placement, logical_device, ret_piece, error);
}

cadre_status cadre_placement_piece(cadre_tensor *tensor, const cadre_placement *placement,
    uint32_t logical_device, cadre_tensor **ret_piece)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_piece, __func__, "ret_piece", &error);
    if (status == CADRE_OK) {
        *ret_piece = NULL;
        status = tensor_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(placement, __func__, "placement", &error);
    }
    if (status == CADRE_OK) {
        status = piece_of(tensor, placement, logical_device, ret_piece, &error);
    }
    return border(status, &error);
}
