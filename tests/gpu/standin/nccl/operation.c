/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: collectives. One waits on its stream from when its turn comes until all
 * ranks have come to theirs, or the communicator is aborted, as NCCL's kernels do. */
#include "tests/gpu/standin/nccl/nccl_internal.h"

#include <stdlib.h>
#include <string.h>

struct operation {
    struct operation *next;
    struct operation *later; /* in the communicator's queue */
    struct ncclComm *comm;
    cudaStream_t stream;
    struct wire_call call;
    const void *from;
    void *to;
    size_t to_bytes; /* what this rank receives */
};

static void end_running(struct ncclComm *comm)
{
    pthread_mutex_lock(&nccl_mutex);
    comm->running = false;
    pthread_cond_broadcast(&nccl_changed);
    pthread_mutex_unlock(&nccl_mutex);
}

/* The communicator has failed: its operation never ends by itself. */
static void wait_failed(struct ncclComm *comm, ncclResult_t failure, const char *text)
{
    if (failure != ncclSuccess) {
        (void)nccl_set_error(failure, "%s", text);
        pthread_mutex_lock(&nccl_mutex);
        nccl_fail_locked(comm, failure);
        pthread_mutex_unlock(&nccl_mutex);
    }
    nccl_wait_for_abort(comm);
}

static ncclResult_t peer_lost(void)
{
    STANDIN_CALL("ncclPeerLost");
    return (ncclResult_t)standin_fault;
}

static void meet_others(struct operation *operation, void *from, void *to)
{
    struct ncclComm *comm = operation->comm;
    struct wire_answer answer = {.result = ncclSuccess};
    STANDIN_CALL("ncclOperation");
    if (standin_fault != 0) {
        wait_failed(comm, (ncclResult_t)standin_fault, "stand-in: this operation was to fail");
        return;
    }
    int moved = nccl_move(comm, true, &operation->call, sizeof(operation->call));
    moved = moved == 1 ? nccl_move(comm, true, from, operation->call.bytes) : moved;
    moved = moved == 1 ? nccl_move(comm, false, &answer, sizeof(answer)) : moved;
    if (moved == 1 && answer.result != ncclSuccess) {
        answer.text[sizeof(answer.text) - 1] = '\0';
        wait_failed(comm, (ncclResult_t)answer.result, answer.text);
        return;
    }
    if (moved == 1 && answer.bytes <= operation->to_bytes) {
        moved = nccl_move(comm, false, to, answer.bytes);
    }
    if (moved == -1) { /* the process that made the id has exited */
        wait_failed(comm, peer_lost(), "stand-in: a rank went away");
        return;
    }
    if (operation->call.kind == WIRE_BROADCAST && operation->call.root == (uint32_t)comm->rank &&
        to != from) {
        memmove(to, from, operation->to_bytes);
    }
}

/* Operations of one communicator are done in the order of their calls, on whatever streams. False:
 * it was aborted. */
static bool take_turn(struct operation *operation)
{
    struct ncclComm *comm = operation->comm;
    pthread_mutex_lock(&nccl_mutex);
    while (!comm->aborted && comm->queue != operation) {
        pthread_cond_wait(&nccl_changed, &nccl_mutex);
    }
    bool mine = !comm->aborted;
    comm->running = comm->running || mine;
    pthread_mutex_unlock(&nccl_mutex);
    return mine;
}

static cudaError_t run_operation(void *user)
{
    struct operation *operation = user;
    struct ncclComm *comm = operation->comm;
    void *from = standin_reach(operation->from, operation->call.bytes);
    void *to = standin_reach(operation->to, operation->to_bytes);
    if ((from == NULL && operation->call.bytes > 0) || (to == NULL && operation->to_bytes > 0)) {
        return cudaErrorIllegalAddress;
    }
    standin_idle();
    if (take_turn(operation)) {
        meet_others(operation, from, to);
        end_running(comm);
    }
    return cudaSuccess;
}

static void drop_operation(void *user)
{
    struct operation *operation = user;
    struct ncclComm *comm = operation->comm;
    pthread_mutex_lock(&nccl_mutex);
    struct operation **at = &comm->queue;
    while (*at != NULL && *at != operation) {
        at = &(*at)->later;
    }
    if (*at != NULL) {
        *at = operation->later;
    }
    comm->outstanding--;
    pthread_cond_broadcast(&nccl_changed);
    pthread_mutex_unlock(&nccl_mutex);
    nccl_drop(comm);
    free(operation);
}

static void enqueue_all(struct operation *operation)
{
    while (operation != NULL) {
        struct operation *next = operation->next;
        pthread_mutex_lock(&nccl_mutex);
        struct operation **last = &operation->comm->queue;
        while (*last != NULL) {
            last = &(*last)->later;
        }
        *last = operation;
        pthread_mutex_unlock(&nccl_mutex);
        (void)standin_enqueue(operation->stream, run_operation, drop_operation, operation);
        operation = next;
    }
}

static struct operation *take_deferred(struct ncclComm *comm)
{
    pthread_mutex_lock(&nccl_mutex);
    struct operation *first = comm->deferred;
    comm->deferred = NULL;
    comm->deferred_last = &comm->deferred;
    pthread_mutex_unlock(&nccl_mutex);
    return first;
}

void operation_enqueue_deferred(struct ncclComm *comm)
{
    enqueue_all(take_deferred(comm));
}

void operation_drop_deferred(struct ncclComm *comm)
{
    struct operation *operation = take_deferred(comm);
    while (operation != NULL) {
        struct operation *next = operation->next;
        drop_operation(operation);
        operation = next;
    }
}

/* --- groups --- */

static __thread struct operation *group_first;
static __thread struct operation **group_last;

/* Enqueues the operation; or, where NCCL would not have finished the call, keeps it until the
 * caller has polled often enough: a caller that does not poll finds its stream in the wrong
 * order. */
static ncclResult_t begin(struct operation *operation)
{
    struct ncclComm *comm = operation->comm;
    pthread_mutex_lock(&nccl_mutex);
    ncclResult_t result = nccl_begun_locked(comm);
    if (result == ncclInProgress) {
        *comm->deferred_last = operation;
        comm->deferred_last = &operation->next;
    }
    pthread_mutex_unlock(&nccl_mutex);
    if (result == ncclSuccess) {
        enqueue_all(operation);
    }
    return result;
}

ncclResult_t operation_end_group(void)
{
    struct operation *operation = group_first;
    ncclResult_t result = ncclSuccess;
    group_first = NULL;
    group_last = NULL;
    while (operation != NULL) {
        struct operation *next = operation->next;
        operation->next = NULL;
        ncclResult_t begun = begin(operation);
        result = begun != ncclSuccess ? begun : result;
        operation = next;
    }
    return result;
}

static ncclResult_t post(const struct operation *wanted, const char *name)
{
    struct ncclComm *comm = wanted->comm;
    ncclResult_t ready = nccl_ready(comm);
    int device = -1;
    if (ready != ncclSuccess) {
        return ready;
    }
    if (reduce_element_bytes(wanted->call.type) == 0 || wanted->call.reduction >= ncclNumOps ||
        wanted->call.root >= (uint32_t)comm->world) {
        return nccl_set_error(ncclInvalidArgument, "%s : invalid type, op or root", name);
    }
    if (wanted->stream != NULL &&
        (cudaStreamGetDevice(wanted->stream, &device) != cudaSuccess || device != comm->device)) {
        return nccl_set_error(ncclInvalidUsage, "stand-in: %s on a stream of device %d, not %d",
            name, device, comm->device);
    }
    if (wanted->call.count == 0) {
        return ncclSuccess;
    }
    struct operation *operation = malloc(sizeof(*operation));
    if (operation == NULL) {
        return nccl_set_error(ncclSystemError, "stand-in: no memory");
    }
    *operation = *wanted;
    pthread_mutex_lock(&nccl_mutex);
    comm->refs++;
    comm->outstanding++;
    pthread_mutex_unlock(&nccl_mutex);
    if (!nccl_grouped()) {
        return begin(operation);
    }
    if (group_last == NULL) {
        group_last = &group_first;
    }
    *group_last = operation;
    group_last = &operation->next;
    return ncclSuccess;
}

#define ENTER(name, comm, datatype)                                                                \
    STANDIN_CALL(name);                                                                            \
    if (standin_fault != 0) {                                                                      \
        return nccl_set_error((ncclResult_t)standin_fault, "stand-in: %s was to fail", name);      \
    }                                                                                              \
    size_t one = reduce_element_bytes((uint32_t)(datatype));                                       \
    size_t ranks = (comm) != NULL ? (size_t)(comm)->world : 0

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
    ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    ENTER("ncclAllReduce", comm, datatype);
    (void)ranks;
    struct operation operation = {.comm = comm,
        .stream = stream,
        .call = {.kind = WIRE_ALL_REDUCE, .type = datatype, .reduction = op, .count = count},
        .from = sendbuff,
        .to = recvbuff,
        .to_bytes = count * one};
    operation.call.bytes = count * one;
    return post(&operation, "AllReduce");
}

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    ENTER("ncclReduce", comm, datatype);
    (void)ranks;
    bool mine = comm != NULL && comm->rank == root;
    struct operation operation = {.comm = comm,
        .stream = stream,
        .call = {.kind = WIRE_REDUCE, .type = datatype, .reduction = op, .count = count},
        .from = sendbuff,
        .to = mine ? recvbuff : NULL,
        .to_bytes = mine ? count * one : 0};
    operation.call.root = (uint32_t)root;
    operation.call.bytes = count * one;
    return post(&operation, "Reduce");
}

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
    ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    ENTER("ncclBroadcast", comm, datatype);
    (void)ranks;
    bool mine = comm != NULL && comm->rank == root;
    struct operation operation = {.comm = comm,
        .stream = stream,
        .call = {.kind = WIRE_BROADCAST, .type = datatype, .count = count},
        .from = mine ? sendbuff : NULL,
        .to = recvbuff,
        .to_bytes = count * one};
    operation.call.root = (uint32_t)root;
    operation.call.bytes = mine ? count * one : 0;
    return post(&operation, "Broadcast");
}

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
    ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    ENTER("ncclAllGather", comm, datatype);
    struct operation operation = {.comm = comm,
        .stream = stream,
        .call = {.kind = WIRE_ALL_GATHER, .type = datatype, .count = sendcount},
        .from = sendbuff,
        .to = recvbuff,
        .to_bytes = sendcount * one * ranks};
    operation.call.bytes = sendcount * one;
    return post(&operation, "AllGather");
}

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
    ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    ENTER("ncclReduceScatter", comm, datatype);
    struct operation operation = {.comm = comm,
        .stream = stream,
        .call = {.kind = WIRE_REDUCE_SCATTER,
            .type = datatype,
            .reduction = op,
            .count = recvcount},
        .from = sendbuff,
        .to = recvbuff,
        .to_bytes = recvcount * one};
    operation.call.bytes = recvcount * one * ranks;
    return post(&operation, "ReduceScatter");
}
