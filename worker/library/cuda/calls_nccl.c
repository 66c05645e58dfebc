/* SPDX-License-Identifier: Apache-2.0
 * The collectives of one rank of a communicator, and NCCL's errors; comm_nccl.c has them in its
 * table. */
#include "worker/library/cuda/calls_nccl.h"

#include <string.h>

#include "worker/library/cuda/streams_cuda.h"

/* --- failures --- */

/* All of them, so that a new one is seen when this is compiled with its header. */
static cadre_status code_of(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess:
        return CADRE_OK;
    case ncclInProgress:
        return CADRE_PENDING;
    case ncclSystemError:
    case ncclRemoteError:
        return CADRE_UNAVAILABLE;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
        return CADRE_INVALID_ARGUMENT;
    case ncclUnhandledCudaError:
    case ncclInternalError:
    case ncclNumResults:
        break;
    }
    return CADRE_INTERNAL;
}

/* The last error is of the process, and may be of several lines. */
static void write_last_error(ncclComm_t comm, char *ret_text, size_t size)
{
    const char *message = nccl_library()->ncclGetLastError(comm);
    size_t used = 0;
    for (; message != NULL && *message != '\0' && used + 1 < size; message++) {
        bool blank = *message == '\n' || *message == '\r' || *message == '\t' || *message == ' ';
        if (!blank || (used > 0 && ret_text[used - 1] != ' ')) {
            ret_text[used++] = blank ? ' ' : *message;
        }
    }
    while (used > 0 && ret_text[used - 1] == ' ') {
        used--;
    }
    ret_text[used] = '\0';
}

cadre_status nccl_status(const struct device_comm *comm, ncclResult_t result, const char *what,
    struct cadre_error *error)
{
    cadre_status code = code_of(result);
    if (code == CADRE_OK || code == CADRE_PENDING) {
        return code;
    }
    char last[CADRE_ERROR_TEXT_BYTES / 2];
    write_last_error(comm->nccl, last, sizeof last);
    return cadre_error_set(error, code, "NCCL, rank %u of %u on GPU %u: %s: %s%s%s", comm->rank,
        comm->world, comm->device, what, nccl_library()->ncclGetErrorString(result),
        last[0] != '\0' ? ": " : "", last);
}

cadre_status nccl_status_kept(
    struct device_comm *comm, ncclResult_t result, const char *what, struct cadre_error *error)
{
    struct cadre_error own = {.code = CADRE_OK};
    cadre_status code = nccl_status(comm, result, what, &own);
    if (code != CADRE_OK && code != CADRE_PENDING) {
        comm->failure = own;
        cadre_error_set(error, code, "%s", own.text);
    }
    return code;
}

/* --- collectives --- */

static const struct type {
    ncclDataType_t nccl;
    size_t bytes;
    bool reduces;
} types[] = {
    [CADRE_F64] = {ncclFloat64, 8, true},
    [CADRE_F32] = {ncclFloat32, 4, true},
    [CADRE_F16] = {ncclFloat16, 2, true},
    [CADRE_BF16] = {ncclBfloat16, 2, true},
    [CADRE_I64] = {ncclInt64, 8, true},
    [CADRE_I32] = {ncclInt32, 4, true},
    [CADRE_I16] = {ncclUint8, 2, false}, /* NCCL has none, nor of u16: as bytes */
    [CADRE_I8] = {ncclInt8, 1, true},
    [CADRE_U32] = {ncclUint32, 4, true},
    [CADRE_U16] = {ncclUint8, 2, false},
    [CADRE_U8] = {ncclUint8, 1, true},
    [CADRE_BOOL] = {ncclUint8, 1, false},
};

static const struct type *type_of(cadre_dtype dtype)
{
    bool known = dtype > CADRE_DTYPE_NONE && dtype <= CADRE_BOOL;
    return known ? &types[dtype] : NULL;
}

bool calls_take(cadre_dtype dtype)
{
    const struct type *type = type_of(dtype);
    return type != NULL && type->reduces;
}

static cadre_status check_type(
    const struct device_comm *comm, cadre_dtype dtype, bool reduces, struct cadre_error *error)
{
    const struct type *type = type_of(dtype);
    if (type == NULL || (reduces && !type->reduces)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "NCCL, rank %u of %u on GPU %u: vectors of type %d cannot be %s", comm->rank,
            comm->world, comm->device, (int)dtype, reduces ? "reduced" : "sent");
    }
    return CADRE_OK;
}

static cadre_status check_reduction(
    enum device_reduction reduction, ncclRedOp_t *ret_operation, struct cadre_error *error)
{
    static const ncclRedOp_t operations[] = {[DEVICE_REDUCE_SUM] = ncclSum,
        [DEVICE_REDUCE_PROD] = ncclProd,
        [DEVICE_REDUCE_MIN] = ncclMin,
        [DEVICE_REDUCE_MAX] = ncclMax};
    if ((unsigned)reduction > DEVICE_REDUCE_MAX) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "there is no reduction %d", (int)reduction);
    }
    *ret_operation = operations[reduction];
    return CADRE_OK;
}

/* Before a call: checks that the communicator did not fail, and that the stream is one of its
 * device, which becomes current. */
static cadre_status calls_nccl_begin(const struct device_comm *comm, void *stream,
    struct cuda_scope *ret_scope, struct cadre_error *error)
{
    uint32_t device = 0;
    if (comm->failure.code != CADRE_OK) {
        return cadre_error_set(error, comm->failure.code, "%s", comm->failure.text);
    }
    CADRE_TRY(streams_device(stream, &device, error));
    if (device != comm->device) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "NCCL, rank %u of %u on GPU %u: the stream is of GPU %u", comm->rank, comm->world,
            comm->device, device);
    }
    return streams_enter(stream, &device, ret_scope, error);
}

/* Whether a call inside of a group was taken. */
static bool calls_nccl_taken(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Ends the group in any case; the first failure counts. */
static cadre_status end_group(struct device_comm *comm, ncclResult_t result,
    const struct cuda_scope *scope, const char *what, struct cadre_error *error)
{
    ncclResult_t ended = nccl_library()->ncclGroupEnd();
    cadre_status status =
        nccl_status_kept(comm, calls_nccl_taken(result) ? ended : result, what, error);
    cuda_leave(scope);
    return status;
}

cadre_status calls_all_reduce(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error)
{
    const struct nccl_library *nccl = nccl_library();
    ncclRedOp_t operation = ncclSum;
    struct cuda_scope scope;
    CADRE_TRY(check_reduction(reduction, &operation, error));
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(check_type(comm, vectors[i].dtype, true, error));
    }
    CADRE_TRY(calls_nccl_begin(comm, stream, &scope, error));
    ncclResult_t result = nccl->ncclGroupStart();
    for (size_t i = 0; i < count && calls_nccl_taken(result); i++) {
        const struct device_vector *vector = &vectors[i];
        if (vector->count > 0) {
            result = nccl->ncclAllReduce(vector->from, vector->to, vector->count,
                types[vector->dtype].nccl, operation, comm->nccl, stream);
        }
    }
    return end_group(comm, result, &scope, "all-reduce", error);
}

cadre_status calls_reduce_scatter(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector *part, void *stream, struct cadre_error *error)
{
    ncclRedOp_t operation = ncclSum;
    struct cuda_scope scope;
    CADRE_TRY(check_reduction(reduction, &operation, error));
    CADRE_TRY(check_type(comm, part->dtype, true, error));
    CADRE_TRY(calls_nccl_begin(comm, stream, &scope, error));
    ncclResult_t result = ncclSuccess;
    if (part->count > 0) {
        result = nccl_library()->ncclReduceScatter(part->from, part->to, part->count,
            types[part->dtype].nccl, operation, comm->nccl, stream);
    }
    cadre_status status = nccl_status_kept(comm, result, "reduce-scatter", error);
    cuda_leave(&scope);
    return status;
}

cadre_status calls_all_gather(struct device_comm *comm, const void *from, size_t bytes, void *to,
    void *stream, struct cadre_error *error)
{
    struct cuda_scope scope;
    CADRE_TRY(calls_nccl_begin(comm, stream, &scope, error));
    ncclResult_t result = ncclSuccess;
    if (bytes > 0) {
        result = nccl_library()->ncclAllGather(from, to, bytes, ncclUint8, comm->nccl, stream);
    }
    cadre_status status = nccl_status_kept(comm, result, "all-gather", error);
    cuda_leave(&scope);
    return status;
}

cadre_status calls_broadcast(struct device_comm *comm, uint32_t root,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error)
{
    const struct nccl_library *nccl = nccl_library();
    struct cuda_scope scope;
    if (root >= comm->world) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "NCCL, rank %u of %u on GPU %u: there is no rank %u to broadcast from", comm->rank,
            comm->world, comm->device, root);
    }
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(check_type(comm, vectors[i].dtype, false, error));
    }
    CADRE_TRY(calls_nccl_begin(comm, stream, &scope, error));
    ncclResult_t result = nccl->ncclGroupStart();
    for (size_t i = 0; i < count && calls_nccl_taken(result); i++) {
        const struct device_vector *vector = &vectors[i];
        if (vector->count > 0) { /* as bytes: nothing is combined */
            result = nccl->ncclBroadcast(vector->from, vector->to,
                vector->count * types[vector->dtype].bytes, ncclUint8, (int)root, comm->nccl,
                stream);
        }
    }
    return end_group(comm, result, &scope, "broadcast", error);
}
