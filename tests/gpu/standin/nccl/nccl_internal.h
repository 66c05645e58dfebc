/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: what the files of libnccl-standin share. */
#ifndef CADRE_TESTS_GPU_STANDIN_NCCL_NCCL_INTERNAL_H
#define CADRE_TESTS_GPU_STANDIN_NCCL_NCCL_INTERNAL_H

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "nccl.h"
#include "tests/gpu/standin/standin.h"

#define STANDIN_RANKS_MAX 256

enum wire_kind {
    WIRE_ALL_REDUCE,
    WIRE_REDUCE,
    WIRE_BROADCAST,
    WIRE_ALL_GATHER,
    WIRE_REDUCE_SCATTER
};

/* A rank's identity. */
struct wire_hello {
    uint32_t world;
    uint32_t rank;
    char host[64];
    char bus[16];
};

/* A rank has come to an operation; `bytes` of it follow. */
struct wire_call {
    uint32_t kind;
    uint32_t type;
    uint32_t reduction;
    uint32_t root;
    uint64_t count;
    uint64_t bytes;
};

/* To a hello and to a call; `bytes` follow. */
struct wire_answer {
    uint32_t result; /* ncclResult_t */
    char text[188];
    uint64_t bytes;
};

/* --- hub.c: the hub of a communicator's ranks, a thread of the process that made its id --- */

/* The address of an id's hub. */
void hub_address(const ncclUniqueId *id, struct sockaddr_un *ret_address, socklen_t *ret_bytes);

/* --- reduce.c --- */

size_t reduce_element_bytes(uint32_t type); /* 0: no such type */
const char *reduce_type_name(uint32_t type);
/* to[i] = to[i] <reduction> from[i], rounded. */
void reduce_fold(uint32_t type, uint32_t reduction, void *to, const void *from, size_t count);
/* What ncclAvg does to one rank's values before they are added; and to the sum. */
void reduce_before(uint32_t type, uint32_t reduction, void *values, size_t count, uint32_t world);
void reduce_after(uint32_t type, uint32_t reduction, void *values, size_t count, uint32_t world);

/* --- comm.c --- */

struct operation; /* operation.c */

struct ncclComm {
    unsigned int refs;
    int rank;
    int world;
    int device;
    bool blocking;
    ncclUniqueId id;
    int socket;   /* -1: not connected yet */
    int abort_fd; /* readable for ever once it is aborted */
    bool aborted;
    bool forming; /* a thread does it */
    bool formed;
    bool finalizing;
    bool running;               /* one of its operations, on a stream's thread */
    unsigned int outstanding;   /* operations that were enqueued and are not over */
    ncclResult_t failure;       /* for ever */
    uint64_t polls;             /* that ncclInProgress is answered for yet */
    struct operation *queue;    /* that streams have, in the order of their calls */
    struct operation *deferred; /* are enqueued after them */
    struct operation **deferred_last;
};

extern pthread_mutex_t nccl_mutex; /* all communicators' members */
extern pthread_cond_t nccl_changed;

/* Sets the text of ncclGetLastError; returns `result`. */
ncclResult_t nccl_set_error(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void nccl_fail_locked(struct ncclComm *comm, ncclResult_t failure);
void nccl_drop(struct ncclComm *comm);
/* Moves all bytes, with waiting: 1; 0: the communicator was aborted; -1: the other end has
 * closed. */
int nccl_move(struct ncclComm *comm, bool out, void *data, size_t bytes);
/* Until it is aborted. */
void nccl_wait_for_abort(struct ncclComm *comm);
/* Whether the communicator takes a call: formed, whole, and not busy with the last one. */
ncclResult_t nccl_ready(struct ncclComm *comm);
/* In a group of the calling thread. */
bool nccl_grouped(void);
/* The result of a call on a communicator: ncclInProgress where polls of it are required. */
ncclResult_t nccl_begun_locked(struct ncclComm *comm);

/* --- operation.c --- */

/* Enqueues the deferred operations; or drops them. */
void operation_enqueue_deferred(struct ncclComm *comm);
void operation_drop_deferred(struct ncclComm *comm);
/* Those that the calling thread's group holds go on their way. */
ncclResult_t operation_end_group(void);

#endif
