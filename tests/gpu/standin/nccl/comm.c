/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: communicators from their forming to their end. */
#include "tests/gpu/standin/nccl/nccl_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

pthread_mutex_t nccl_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t nccl_changed = PTHREAD_COND_INITIALIZER;

static char last_text[256];
static __thread char error_text_of[256];

ncclResult_t nccl_set_error(ncclResult_t result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    pthread_mutex_lock(&nccl_mutex);
    vsnprintf(last_text, sizeof(last_text), format, list);
    pthread_mutex_unlock(&nccl_mutex);
    va_end(list);
    return result;
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    pthread_mutex_lock(&nccl_mutex);
    memcpy(error_text_of, last_text, sizeof(error_text_of));
    pthread_mutex_unlock(&nccl_mutex);
    return error_text_of;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[ncclNumResults] = {[ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error",
        [ncclSystemError] = "unhandled system error",
        [ncclInternalError] = "internal error",
        [ncclInvalidArgument] = "invalid argument",
        [ncclInvalidUsage] = "invalid usage",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress"};
    return result >= ncclSuccess && result < ncclNumResults ? texts[result] : "unknown result code";
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    return cudaMalloc(ptr, size) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void *ptr)
{
    return cudaFree(ptr) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

void nccl_fail_locked(struct ncclComm *comm, ncclResult_t failure)
{
    if (comm->failure == ncclSuccess) {
        comm->failure = failure;
    }
    pthread_cond_broadcast(&nccl_changed);
}

void nccl_drop(struct ncclComm *comm)
{
    pthread_mutex_lock(&nccl_mutex);
    unsigned int left = --comm->refs;
    pthread_mutex_unlock(&nccl_mutex);
    if (left == 0) {
        if (comm->socket >= 0) {
            (void)close(comm->socket);
        }
        (void)close(comm->abort_fd);
        free(comm);
    }
}

int nccl_move(struct ncclComm *comm, bool out, void *data, size_t bytes)
{
    for (size_t moved = 0; moved < bytes;) {
        char *at = (char *)data + moved;
        ssize_t n = out ? send(comm->socket, at, bytes - moved, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recv(comm->socket, at, bytes - moved, MSG_DONTWAIT);
        if (n > 0) {
            moved += (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return -1;
        }
        struct pollfd polled[2] = {{.fd = comm->abort_fd, .events = POLLIN},
            {.fd = comm->socket, .events = out ? POLLOUT : POLLIN}};
        (void)poll(polled, 2, -1);
        if (polled[0].revents != 0) {
            return 0;
        }
    }
    return 1;
}

void nccl_wait_for_abort(struct ncclComm *comm)
{
    struct pollfd polled = {.fd = comm->abort_fd, .events = POLLIN};
    while (poll(&polled, 1, -1) <= 0) {
    }
}

/* --- forming --- */

static ncclResult_t greet(struct ncclComm *comm)
{
    struct sockaddr_un address;
    socklen_t bytes;
    struct wire_hello hello = {.world = (uint32_t)comm->world, .rank = (uint32_t)comm->rank};
    struct wire_answer answer;
    const char *host = getenv("NCCL_HOSTID");
    if (host != NULL) {
        snprintf(hello.host, sizeof(hello.host), "%s", host);
    } else {
        (void)gethostname(hello.host, sizeof(hello.host) - 1);
    }
    (void)cudaDeviceGetPCIBusId(hello.bus, (int)sizeof(hello.bus), comm->device);
    hub_address(&comm->id, &address, &bytes);
    comm->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (comm->socket < 0 || connect(comm->socket, (const struct sockaddr *)&address, bytes) != 0) {
        return nccl_set_error(ncclSystemError, "stand-in: no process listens for this id");
    }
    if (nccl_move(comm, true, &hello, sizeof(hello)) <= 0 ||
        nccl_move(comm, false, &answer, sizeof(answer)) <= 0) {
        return nccl_set_error(ncclSystemError, "stand-in: who listened for this id went away");
    }
    answer.text[sizeof(answer.text) - 1] = '\0';
    return answer.result == ncclSuccess
               ? ncclSuccess
               : nccl_set_error((ncclResult_t)answer.result, "%s", answer.text);
}

static void *form_main(void *user)
{
    struct ncclComm *comm = user;
    STANDIN_CALL("ncclForm");
    ncclResult_t result = standin_fault != 0
                              ? nccl_set_error((ncclResult_t)standin_fault, "stand-in: was to fail")
                              : greet(comm);
    pthread_mutex_lock(&nccl_mutex);
    comm->forming = false;
    comm->formed = result == ncclSuccess;
    if (result != ncclSuccess) {
        nccl_fail_locked(comm, result);
    }
    pthread_cond_broadcast(&nccl_changed);
    pthread_mutex_unlock(&nccl_mutex);
    nccl_drop(comm);
    return NULL;
}

static ncclResult_t start_forming(struct ncclComm *comm)
{
    pthread_t thread;
    pthread_mutex_lock(&nccl_mutex);
    comm->forming = true;
    comm->refs++;
    pthread_mutex_unlock(&nccl_mutex);
    if (pthread_create(&thread, NULL, form_main, comm) != 0) {
        pthread_mutex_lock(&nccl_mutex);
        comm->forming = false;
        nccl_fail_locked(comm, ncclSystemError);
        pthread_mutex_unlock(&nccl_mutex);
        nccl_drop(comm);
        return ncclSystemError;
    }
    pthread_detach(thread);
    return ncclInProgress;
}

static ncclResult_t wait_formed(struct ncclComm *comm)
{
    pthread_mutex_lock(&nccl_mutex);
    while (comm->forming) {
        pthread_cond_wait(&nccl_changed, &nccl_mutex);
    }
    ncclResult_t result = comm->failure;
    pthread_mutex_unlock(&nccl_mutex);
    return result;
}

/* Communicators that begin to form when the thread's group ends. */
static __thread unsigned int group_depth;
static __thread struct ncclComm *group_forming[STANDIN_RANKS_MAX];
static __thread size_t group_forming_count;

bool nccl_grouped(void)
{
    return group_depth > 0;
}

ncclResult_t ncclGroupStart(void)
{
    STANDIN_CALL("ncclGroupStart");
    if (standin_fault != 0) {
        return nccl_set_error((ncclResult_t)standin_fault, "stand-in: this group was to fail");
    }
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    STANDIN_CALL("ncclGroupEnd");
    if (group_depth == 0) {
        return nccl_set_error(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    }
    if (--group_depth > 0) {
        return ncclSuccess;
    }
    ncclResult_t result = ncclSuccess;
    for (size_t i = 0; i < group_forming_count; i++) {
        ncclResult_t started = start_forming(group_forming[i]);
        result = result == ncclSuccess || result == ncclInProgress ? started : result;
    }
    for (size_t i = 0; i < group_forming_count; i++) {
        if (group_forming[i]->blocking) {
            result = wait_formed(group_forming[i]);
        }
    }
    group_forming_count = 0;
    ncclResult_t enqueued = operation_end_group();
    result = result == ncclSuccess ? enqueued : result;
    return standin_fault != 0
               ? nccl_set_error((ncclResult_t)standin_fault, "stand-in: this group was to fail")
               : result;
}

static uint64_t wanted_polls(void)
{
    STANDIN_CALL("ncclInProgress");
    return standin_fault > 0 ? (uint64_t)standin_fault : 0;
}

ncclResult_t ncclCommInitRankConfig(
    ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
    STANDIN_CALL("ncclCommInitRankConfig");
    *comm = NULL;
    if (standin_fault != 0) {
        return nccl_set_error((ncclResult_t)standin_fault, "stand-in: this rank was to be refused");
    }
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaFree(NULL) != cudaSuccess) {
        return nccl_set_error(ncclUnhandledCudaError, "stand-in: no device is in use");
    }
    if (nranks < 1 || nranks > STANDIN_RANKS_MAX || rank < 0 || rank >= nranks ||
        memcmp(commId.internal, "standin", 8) != 0 ||
        (config != NULL && config->magic != 0xcafebeef)) {
        return nccl_set_error(
            ncclInvalidArgument, "Invalid rank requested : %d/%d, id or config", rank, nranks);
    }
    struct ncclComm *made = calloc(1, sizeof(*made));
    int abort_fd = eventfd(0, EFD_CLOEXEC);
    if (made == NULL || abort_fd < 0 || group_forming_count == STANDIN_RANKS_MAX) {
        free(made);
        return nccl_set_error(ncclSystemError, "stand-in: no memory");
    }
    *made = (struct ncclComm){.refs = 1,
        .rank = rank,
        .world = nranks,
        .device = device,
        .blocking = config == NULL || config->blocking != 0,
        .id = commId,
        .socket = -1,
        .abort_fd = abort_fd};
    made->deferred_last = &made->deferred;
    made->polls = made->blocking ? 0 : wanted_polls();
    made->forming = true;
    *comm = made;
    if (nccl_grouped()) {
        group_forming[group_forming_count++] = made;
        return made->blocking ? ncclSuccess : ncclInProgress;
    }
    ncclResult_t started = start_forming(made);
    return made->blocking ? wait_formed(made) : started;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
    return ncclCommInitRankConfig(comm, nranks, commId, rank, NULL);
}

/* --- while it is open --- */

static ncclResult_t state_locked(const struct ncclComm *comm)
{
    if (comm->failure != ncclSuccess) {
        return comm->failure;
    }
    bool busy = comm->forming || comm->polls > 0 || (comm->finalizing && comm->outstanding > 0);
    return busy ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    STANDIN_CALL("ncclCommGetAsyncError");
    if (comm == NULL || asyncError == NULL) {
        return nccl_set_error(ncclInvalidArgument, "stand-in: no communicator");
    }
    if (standin_fault != 0) {
        *asyncError = (ncclResult_t)standin_fault;
        return ncclSuccess;
    }
    pthread_mutex_lock(&nccl_mutex);
    *asyncError = state_locked(comm);
    comm->polls -= comm->polls > 0;
    bool over = comm->polls == 0;
    pthread_mutex_unlock(&nccl_mutex);
    if (over) {
        operation_enqueue_deferred(comm);
    }
    return ncclSuccess;
}

ncclResult_t nccl_ready(struct ncclComm *comm)
{
    if (comm == NULL) {
        return nccl_set_error(ncclInvalidArgument, "stand-in: no communicator");
    }
    pthread_mutex_lock(&nccl_mutex);
    ncclResult_t state = state_locked(comm);
    bool ended = comm->finalizing;
    pthread_mutex_unlock(&nccl_mutex);
    if (state == ncclInProgress) {
        return nccl_set_error(ncclInvalidArgument,
            "Attempt to use communicator before the previous operation returned ncclSuccess");
    }
    return state == ncclSuccess && ended
               ? nccl_set_error(ncclInvalidUsage, "stand-in: the communicator was finalized")
               : state;
}

ncclResult_t nccl_begun_locked(struct ncclComm *comm)
{
    if (comm->blocking) {
        return ncclSuccess;
    }
    if (comm->polls == 0) {
        comm->polls = wanted_polls();
    }
    return comm->polls > 0 ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->world;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

/* --- the end --- */

static void wait_outstanding(struct ncclComm *comm)
{
    pthread_mutex_lock(&nccl_mutex);
    while (comm->outstanding > 0 || comm->forming) {
        pthread_cond_wait(&nccl_changed, &nccl_mutex);
    }
    pthread_mutex_unlock(&nccl_mutex);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    STANDIN_CALL("ncclCommFinalize");
    ncclResult_t ready = standin_fault != 0 ? (ncclResult_t)standin_fault : nccl_ready(comm);
    if (ready != ncclSuccess) {
        return ready;
    }
    pthread_mutex_lock(&nccl_mutex);
    comm->finalizing = true;
    (void)nccl_begun_locked(comm);
    ncclResult_t state = state_locked(comm);
    pthread_mutex_unlock(&nccl_mutex);
    if (comm->blocking) {
        wait_outstanding(comm);
    }
    return comm->blocking ? ncclSuccess : state;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    STANDIN_CALL("ncclCommDestroy");
    if (comm == NULL) {
        return ncclSuccess;
    }
    operation_enqueue_deferred(comm);
    wait_outstanding(comm);
    nccl_drop(comm);
    return (ncclResult_t)standin_fault;
}

/* Its operation on a stream ends; those in a queue will do nothing. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    STANDIN_CALL("ncclCommAbort");
    if (comm == NULL) {
        return ncclSuccess;
    }
    if (standin_fault < 0) { /* -1: never; else that many milliseconds */
        (void)poll(NULL, 0, standin_fault == -1 ? -1 : -standin_fault);
    }
    uint64_t one = 1;
    pthread_mutex_lock(&nccl_mutex);
    comm->aborted = true;
    pthread_cond_broadcast(&nccl_changed);
    pthread_mutex_unlock(&nccl_mutex);
    (void)!write(comm->abort_fd, &one, sizeof(one));
    operation_drop_deferred(comm);
    pthread_mutex_lock(&nccl_mutex);
    while (comm->running || comm->forming) {
        pthread_cond_wait(&nccl_changed, &nccl_mutex);
    }
    if (comm->socket >= 0) { /* operations in a queue may hold the communicator for long */
        (void)shutdown(comm->socket, SHUT_RDWR);
    }
    pthread_mutex_unlock(&nccl_mutex);
    nccl_drop(comm);
    return standin_fault > 0 ? (ncclResult_t)standin_fault : ncclSuccess;
}
