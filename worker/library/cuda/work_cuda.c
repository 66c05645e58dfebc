/* SPDX-License-Identifier: Apache-2.0
 * Copies, and launches of the plugin's kernels, for plugin_cuda.c. */
#include "worker/library/cuda/plugin_cuda.h"

#include <stdbool.h>

#include "worker/library/cuda/kernels.h"
#include "worker/library/cuda/streams_cuda.h"

/* One row for each type of numbers. A kernel with an address that is not aligned to its elements
 * ends the use of the device, so alignment is checked here. */
static const struct number {
    size_t bytes;
    enum kernel_number kernel;
    bool floating;
} numbers[] = {
    [CADRE_F64] = {8, KERNEL_F64, true},
    [CADRE_F32] = {4, KERNEL_F32, true},
    [CADRE_F16] = {2, KERNEL_F16, true},
    [CADRE_BF16] = {2, KERNEL_BF16, true},
    [CADRE_I64] = {8, KERNEL_WORD64, false},
    [CADRE_I32] = {4, KERNEL_WORD32, false},
    [CADRE_I16] = {2, KERNEL_WORD16, false},
    [CADRE_I8] = {1, KERNEL_WORD8, false},
    [CADRE_U32] = {4, KERNEL_WORD32, false},
    [CADRE_U16] = {2, KERNEL_WORD16, false},
    [CADRE_U8] = {1, KERNEL_WORD8, false},
};

static const struct number *number_of(cadre_dtype dtype)
{
    bool known = dtype > CADRE_DTYPE_NONE && dtype <= CADRE_U8;
    return known ? &numbers[dtype] : NULL;
}

static bool work_cuda_aligned(const void *data, size_t bytes)
{
    return (uintptr_t)data % bytes == 0;
}

cadre_status work_copy(
    void *to, const void *from, size_t bytes, void *stream, struct cadre_error *error)
{
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = cudaSuccess;
    if (bytes > 0) {
        result = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
    }
    cadre_status status = CADRE_OK;
    if (result != cudaSuccess) {
        status = cuda_fail(error, result, device, "a copy of %zu bytes", bytes);
    }
    cuda_leave(&scope);
    return status;
}

cadre_status work_fill(
    void *to, uint8_t byte, size_t bytes, void *stream, struct cadre_error *error)
{
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = bytes > 0 ? cudaMemsetAsync(to, byte, bytes, stream) : cudaSuccess;
    cadre_status status = CADRE_OK;
    if (result != cudaSuccess) {
        status = cuda_fail(error, result, device, "%zu bytes to be set to %u", bytes, byte);
    }
    cuda_leave(&scope);
    return status;
}

cadre_status work_scale(cadre_dtype dtype, void *data, size_t count, double factor, void *stream,
    struct cadre_error *error)
{
    const struct number *number = number_of(dtype);
    if (number == NULL || !number->floating || !work_cuda_aligned(data, number->bytes)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "elements of type %d at %p cannot be scaled: floating types can, at addresses that are "
            "aligned to an element",
            (int)dtype, data);
    }
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = cudaSuccess;
    if (count > 0) {
        result = kernel_scale(number->kernel, data, count, factor, stream);
    }
    cadre_status status = CADRE_OK;
    if (result != cudaSuccess) {
        status = cuda_fail(error, result, device, "scaling of %zu elements", count);
    }
    cuda_leave(&scope);
    return status;
}

cadre_status work_arithmetic(enum device_arithmetic how, cadre_dtype dtype, void *to,
    const void *from, size_t count, void *stream, struct cadre_error *error)
{
    static const enum kernel_how hows[] = {
        [DEVICE_ADD] = KERNEL_ADD, [DEVICE_SUB] = KERNEL_SUB, [DEVICE_MUL] = KERNEL_MUL};
    if (how == DEVICE_SET && dtype == CADRE_BOOL) {
        return work_copy(to, from, count, stream, error);
    }
    const struct number *number = number_of(dtype);
    if (number == NULL || (unsigned)how > DEVICE_MUL || !work_cuda_aligned(to, number->bytes) ||
        !work_cuda_aligned(from, number->bytes)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "elements of type %d at %p and %p cannot be combined by operation %d: numbers can be "
            "set, added, subtracted and multiplied, at addresses that are aligned to an element",
            (int)dtype, to, from, (int)how);
    }
    if (how == DEVICE_SET) {
        return work_copy(to, from, count * number->bytes, stream, error);
    }
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = cudaSuccess;
    if (count > 0) {
        result = kernel_arithmetic(hows[how], number->kernel, to, from, count, stream);
    }
    cadre_status status = CADRE_OK;
    if (result != cudaSuccess) {
        status = cuda_fail(error, result, device, "arithmetic on %zu elements", count);
    }
    cuda_leave(&scope);
    return status;
}

cadre_status work_update(
    const struct device_update *update, void *stream, struct cadre_error *error)
{
    const struct number *number = number_of(update->dtype);
    bool fits = (update->dtype == CADRE_F32 || update->dtype == CADRE_F64) &&
                work_cuda_aligned(update->values, number->bytes) &&
                work_cuda_aligned(update->gradient, number->bytes);
    for (size_t i = 0; fits && i < 3; i++) {
        fits = work_cuda_aligned(update->slots[i], number->bytes);
    }
    if (!fits) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "elements of type %d at %p cannot be updated: f32 and f64 can, at addresses that are "
            "aligned to an element",
            (int)update->dtype, update->values);
    }
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = cudaSuccess;
    if (update->count > 0) {
        const struct kernel_update launch = {.kind = update->kind,
            .terms = update->terms,
            .values = update->values,
            .slots = {update->slots[0], update->slots[1], update->slots[2]},
            .gradient = update->gradient,
            .count = update->count};
        result = kernel_update_elements(number->kernel, &launch, stream);
    }
    cadre_status status = CADRE_OK;
    if (result != cudaSuccess) {
        status = cuda_fail(error, result, device, "an update of %zu elements", update->count);
    }
    cuda_leave(&scope);
    return status;
}

/* --- pieces --- */

/* Launches the collected pieces, and empties the list. */
static cudaError_t work_cuda_launch(struct kernel_pieces *batch, void *stream)
{
    cudaError_t result = batch->count > 0 ? kernel_copy_pieces(batch, stream) : cudaSuccess;
    batch->count = 0;
    batch->tiles = 0;
    return result;
}

static cudaError_t work_cuda_add(
    struct kernel_pieces *batch, void *to, const void *from, size_t bytes, void *stream)
{
    cudaError_t result = cudaSuccess;
    uint64_t tiles = kernel_piece_tiles(to, bytes);
    if (batch->count == KERNEL_PIECES_MAX || tiles > INT32_MAX - batch->tiles) {
        result = work_cuda_launch(batch, stream);
    }
    if (result == cudaSuccess && tiles > INT32_MAX) { /* 32 TiB */
        return cudaErrorInvalidValue;
    }
    batch->to[batch->count] = to;
    batch->from[batch->count] = from;
    batch->bytes[batch->count] = bytes;
    batch->first_tile[batch->count++] = batch->tiles;
    batch->tiles += (uint32_t)tiles;
    return result;
}

static cadre_status print_pieces(
    cudaError_t result, uint32_t device, size_t count, const char *what, struct cadre_error *error)
{
    if (result != cudaSuccess) {
        return cuda_fail(error, result, device, "%zu pieces to be %s", count, what);
    }
    return CADRE_OK;
}

cadre_status work_pack(const struct device_piece pieces[], size_t count, void *pack, void *stream,
    struct cadre_error *error)
{
    uint32_t device = 0;
    struct cuda_scope scope;
    struct kernel_pieces batch = {.count = 0};
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = cudaSuccess;
    for (size_t i = 0; i < count && result == cudaSuccess; i++) {
        if (pieces[i].bytes > 0) {
            result = work_cuda_add(
                &batch, (char *)pack + pieces[i].offset, pieces[i].data, pieces[i].bytes, stream);
        }
    }
    result = result == cudaSuccess ? work_cuda_launch(&batch, stream) : result;
    cuda_leave(&scope);
    return print_pieces(result, device, count, "packed", error);
}

cadre_status work_unpack(const struct device_piece pieces[], size_t count, const void *pack,
    void *stream, struct cadre_error *error)
{
    uint32_t device = 0;
    struct cuda_scope scope;
    struct kernel_pieces batch = {.count = 0};
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = cudaSuccess;
    for (size_t i = 0; i < count && result == cudaSuccess; i++) {
        if (pieces[i].bytes > 0) {
            result = work_cuda_add(&batch, pieces[i].data, (const char *)pack + pieces[i].offset,
                pieces[i].bytes, stream);
        }
    }
    result = result == cudaSuccess ? work_cuda_launch(&batch, stream) : result;
    cuda_leave(&scope);
    return print_pieces(result, device, count, "unpacked", error);
}

/* --- hashes --- */

_Static_assert(KERNEL_CHUNK_BYTES == DEVICE_CHUNK_BYTES, "the kernel's chunks are the table's");

static cudaError_t launch_chunks(struct kernel_chunks *batch, void *stream)
{
    cudaError_t result = batch->count > 0 ? kernel_hash_chunks(batch, stream) : cudaSuccess;
    batch->count = 0;
    batch->chunks = 0;
    return result;
}

static cudaError_t add_chunks(
    struct kernel_chunks *batch, const struct device_chunks *piece, void *stream)
{
    cudaError_t result = cudaSuccess;
    if (piece->count > INT32_MAX || piece->stride > INT32_MAX) { /* 128 TiB */
        return cudaErrorInvalidValue;
    }
    if (batch->count == KERNEL_CHUNKS_MAX || piece->count > INT32_MAX - batch->chunks) {
        result = launch_chunks(batch, stream);
    }
    batch->data[batch->count] = piece->data;
    batch->hashes[batch->count] = piece->hashes;
    batch->stride[batch->count] = (uint32_t)piece->stride;
    batch->first[batch->count++] = batch->chunks;
    batch->chunks += (uint32_t)piece->count;
    return result;
}

cadre_status work_hash(
    const struct device_chunks pieces[], size_t count, void *stream, struct cadre_error *error)
{
    uint32_t device = 0;
    struct cuda_scope scope;
    struct kernel_chunks batch = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        if (!work_cuda_aligned(pieces[i].data, 16) ||
            !work_cuda_aligned(pieces[i].hashes, sizeof(uint64_t))) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "chunks at %p cannot be hashed to %p: addresses are aligned to 16 and 8 bytes",
                pieces[i].data, (void *)pieces[i].hashes);
        }
    }
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cudaError_t result = cudaSuccess;
    for (size_t i = 0; i < count && result == cudaSuccess; i++) {
        if (pieces[i].count > 0) {
            result = add_chunks(&batch, &pieces[i], stream);
        }
    }
    result = result == cudaSuccess ? launch_chunks(&batch, stream) : result;
    cuda_leave(&scope);
    return print_pieces(result, device, count, "hashed", error);
}
