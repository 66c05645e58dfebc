/* SPDX-License-Identifier: Apache-2.0
 * Forming and ending communicators of NCCL; see comm.h. All communicators are non-blocking: a call
 * that NCCL cannot end at once continues in a thread of NCCL's own, so that no thread of ours is
 * ever inside when it has to be aborted. plugin_cuda.c has its table. */
#include "worker/library/cuda/comm.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/library/cuda/call_cuda.h"
#include "worker/library/cuda/calls_nccl.h"

#define DESTROY_US (10 * CADRE_US_PER_S) /* it is aborted when its work has not ended by then */

_Static_assert(NCCL_UNIQUE_ID_BYTES == DEVICE_COMM_ID_BYTES, "the id is NCCL's");

static cadre_status comm_unique_id(uint8_t ret_id[DEVICE_COMM_ID_BYTES], struct cadre_error *error)
{
    ncclUniqueId id;
    ncclResult_t result = nccl_library()->ncclGetUniqueId(&id);
    if (result != ncclSuccess) {
        const char *last = nccl_library()->ncclGetLastError(NULL);
        return cadre_error_set(error,
            result == ncclSystemError ? CADRE_UNAVAILABLE : CADRE_INTERNAL,
            "NCCL makes no name for a communicator: %s: %s",
            nccl_library()->ncclGetErrorString(result), last != NULL ? last : "");
    }
    memcpy(ret_id, id.internal, DEVICE_COMM_ID_BYTES);
    memset(&id, 0, sizeof id);
    return CADRE_OK;
}

/* --- joining --- */

static void end_all(struct device_comm *comms[], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (comms[i] != NULL && comms[i]->nccl != NULL) {
            (void)nccl_library()->ncclCommAbort(comms[i]->nccl);
        }
        free(comms[i]);
        comms[i] = NULL;
    }
}

/* One rank, inside of a group. */
static cadre_status init_rank(
    const ncclUniqueId *id, struct device_comm *comm, struct cadre_error *error)
{
    struct cuda_scope scope;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CADRE_TRY(cuda_enter(comm->device, &scope, error));
    ncclResult_t result = nccl_library()->ncclCommInitRankConfig(
        &comm->nccl, (int)comm->world, *id, (int)comm->rank, &config);
    cuda_leave(&scope);
    cadre_status status = nccl_status(comm, result, "joining a communicator", error);
    return status == CADRE_PENDING ? CADRE_OK : status;
}

/* NCCL returns from the end of the group at once, and forms the communicators by itself. */
static cadre_status init_group(
    const ncclUniqueId *id, struct device_comm *comms[], uint32_t count, struct cadre_error *error)
{
    const char *what = "joining a communicator";
    cadre_status status = nccl_status(comms[0], nccl_library()->ncclGroupStart(), what, error);
    if (status != CADRE_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count && status == CADRE_OK; i++) {
        status = init_rank(id, comms[i], error);
    }
    ncclResult_t ended = nccl_library()->ncclGroupEnd();
    if (status == CADRE_OK) {
        status = nccl_status(comms[0], ended, what, error);
    }
    if (status != CADRE_OK && status != CADRE_PENDING) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (comms[i]->nccl == NULL) {
            return nccl_status(comms[i], ncclInternalError, what, error);
        }
    }
    return CADRE_OK;
}

static cadre_status comm_post(const uint8_t id[DEVICE_COMM_ID_BYTES], uint32_t world,
    uint32_t count, const uint32_t ranks[], const uint32_t devices[],
    struct device_comm *ret_comms[], struct cadre_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_comms[i] = NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (world > INT32_MAX || ranks[i] >= world) {
            end_all(ret_comms, i);
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "a communicator of %u ranks has no rank %u", world, ranks[i]);
        }
        ret_comms[i] = calloc(1, sizeof *ret_comms[i]);
        if (ret_comms[i] == NULL) {
            end_all(ret_comms, i);
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a rank of a communicator");
        }
        ret_comms[i]->rank = ranks[i];
        ret_comms[i]->world = world;
        ret_comms[i]->device = devices[i];
    }
    ncclUniqueId name;
    memcpy(name.internal, id, DEVICE_COMM_ID_BYTES);
    cadre_status status = count > 0 ? init_group(&name, ret_comms, count, error)
                                    : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                                          "a task joins a communicator with one device at least");
    memset(&name, 0, sizeof name);
    if (status != CADRE_OK) {
        end_all(ret_comms, count);
    }
    return status;
}

static cadre_status comm_test(struct device_comm *comm, struct cadre_error *error)
{
    if (comm->failure.code != CADRE_OK) {
        return cadre_error_set(error, comm->failure.code, "%s", comm->failure.text);
    }
    ncclResult_t state = ncclSuccess;
    ncclResult_t asked = nccl_library()->ncclCommGetAsyncError(comm->nccl, &state);
    return nccl_status_kept(
        comm, asked != ncclSuccess ? asked : state, "work of the communicator failed", error);
}

static void *comm_raw(const struct device_comm *comm)
{
    return comm->nccl;
}

/* --- the end --- */

static void comm_abort(struct device_comm *comm)
{
    if (comm == NULL) {
        return;
    }
    (void)nccl_library()->ncclCommAbort(comm->nccl);
    free(comm);
}

static cadre_status comm_nccl_rest(struct device_comm *comm, uint64_t deadline_us)
{
    cadre_status status = comm_test(comm, NULL);
    while (status == CADRE_PENDING && clock_monotonic_us() < deadline_us) {
        (void)poll(NULL, 0, 1);
        status = comm_test(comm, NULL);
    }
    return status;
}

/* NCCL requires a call to be over before the next one: before it is finalized, and after. */
static void comm_destroy(struct device_comm *comm)
{
    if (comm == NULL) {
        return;
    }
    uint64_t deadline_us = clock_monotonic_us() + DESTROY_US;
    cadre_status status = comm_nccl_rest(comm, deadline_us);
    if (status == CADRE_OK) {
        status =
            nccl_status_kept(comm, nccl_library()->ncclCommFinalize(comm->nccl), "ending it", NULL);
        status = status == CADRE_PENDING ? comm_nccl_rest(comm, deadline_us) : status;
    }
    if (status != CADRE_OK) {
        comm_abort(comm);
        return;
    }
    (void)nccl_library()->ncclCommDestroy(comm->nccl);
    free(comm);
}

static const struct device_comm_ops table = {
    .unique_id = comm_unique_id,
    .post = comm_post,
    .test = comm_test,
    .all_reduce = calls_all_reduce,
    .reduce_scatter = calls_reduce_scatter,
    .all_gather = calls_all_gather,
    .broadcast = calls_broadcast,
    .takes = calls_take,
    .raw = comm_raw,
    .destroy = comm_destroy,
    .abort = comm_abort,
};

const struct device_comm_ops *comm_ops(void)
{
    return nccl_library()->version > 0 ? &table : NULL;
}

uint32_t comm_library(char *ret_from, size_t bytes)
{
    const struct nccl_library *nccl = nccl_library();
    size_t length = strnlen(nccl->from, bytes - 1);
    memcpy(ret_from, nccl->from, length);
    ret_from[length] = '\0';
    return (uint32_t)nccl->version;
}
