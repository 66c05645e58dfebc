/* SPDX-License-Identifier: Apache-2.0
 * The stand-in's NCCL among three processes, each with one device; and what the others receive when
 * one of them is killed. The program starts itself again for ranks 1 and 2. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl.h"
#include "tests/gpu/standin/standin.h"
#include "tests/lib/test.h"

#define RANKS   3
#define WAIT_US UINT64_C(30000000)

extern char **environ;

struct member {
    ncclComm_t comm;
    cudaStream_t stream;
    float *value;
};

/* Joins, and sums rank + 1 once. False: it failed. */
static bool enter(struct member *member, const ncclUniqueId *id, int rank)
{
    float value = (float)(rank + 1);
    return cudaSetDevice(rank) == cudaSuccess &&
           cudaStreamCreateWithFlags(&member->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cudaMalloc((void **)&member->value, sizeof(float)) == cudaSuccess &&
           cudaMemcpy(member->value, &value, sizeof(value), cudaMemcpyHostToDevice) ==
               cudaSuccess &&
           ncclCommInitRank(&member->comm, RANKS, *id, rank) == ncclSuccess &&
           ncclAllReduce(member->value, member->value, 1, ncclFloat32, ncclSum, member->comm,
               member->stream) == ncclSuccess &&
           cudaMemcpyAsync(&value, member->value, sizeof(value), cudaMemcpyDeviceToHost,
               member->stream) == cudaSuccess &&
           value == 6;
}

/* "sum" ends in order; "die" kills itself once it has summed. */
static int run_rank(const char *self, const char *what, int rank, const char *hex)
{
    ncclUniqueId id;
    struct member member;
    (void)self;
    for (size_t i = 0; i < sizeof(id.internal); i++) {
        unsigned int byte = 0;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) {
            return 1;
        }
        id.internal[i] = (char)byte;
    }
    if (!enter(&member, &id, rank)) {
        return 2;
    }
    if (strcmp(what, "die") == 0 && rank == 2) {
        (void)raise(SIGKILL);
    }
    if (strcmp(what, "die") == 0) { /* waits with the others until it is killed too */
        (void)ncclAllReduce(
            member.value, member.value, 1, ncclFloat32, ncclSum, member.comm, member.stream);
        (void)cudaStreamSynchronize(member.stream);
        return 3;
    }
    return cudaFree(member.value) == cudaSuccess && ncclCommDestroy(member.comm) == ncclSuccess &&
                   cudaStreamDestroy(member.stream) == cudaSuccess
               ? 0
               : 4;
}

static void start(const ncclUniqueId *id, const char *what, pid_t ret_children[RANKS])
{
    char hex[2 * sizeof(id->internal) + 1];
    char rank_text[] = "0";
    char self[] = "/proc/self/exe";
    for (size_t i = 0; i < sizeof(id->internal); i++) {
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)id->internal[i]);
    }
    for (int rank = 1; rank < RANKS; rank++) {
        char *what_text = strdup(what);
        rank_text[0] = (char)('0' + rank);
        char *arguments[] = {self, what_text, rank_text, hex, NULL};
        assert_int_equal(posix_spawn(&ret_children[rank], self, NULL, NULL, arguments, environ), 0);
        free(what_text);
    }
}

static int reap(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_three_processes(void **state)
{
    (void)state;
    ncclUniqueId id;
    pid_t children[RANKS];
    struct member member;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    start(&id, "sum", children);
    assert_true(enter(&member, &id, 0));
    for (int rank = 1; rank < RANKS; rank++) {
        assert_int_equal(reap(children[rank]), 0);
    }
    assert_int_equal(ncclCommDestroy(member.comm), ncclSuccess);
    assert_int_equal(cudaFree(member.value), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(member.stream), cudaSuccess);
}

static bool has_failed(void *data)
{
    ncclResult_t state = ncclSuccess;
    return ncclCommGetAsyncError(data, &state) == ncclSuccess && state != ncclSuccess;
}

/* `reported`: as over sockets; else as over shared memory, where no peer notices. */
static void lose_one(bool reported)
{
    ncclUniqueId id;
    pid_t children[RANKS];
    struct member member;
    if (reported) {
        standin_fail_from("ncclPeerLost", 1, ncclRemoteError);
    }
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    start(&id, "die", children);
    assert_true(enter(&member, &id, 0));
    assert_true(WIFSIGNALED(reap(children[2])));
    assert_int_equal(ncclAllReduce(member.value, member.value, 1, ncclFloat32, ncclSum, member.comm,
                         member.stream),
        ncclSuccess);
    if (reported) {
        assert_true(test_wait(has_failed, member.comm, WAIT_US));
    }
    assert_int_equal(cudaStreamQuery(member.stream), cudaErrorNotReady);
    assert_int_equal(has_failed(member.comm), reported);
    assert_int_equal(ncclCommAbort(member.comm), ncclSuccess);
    assert_int_equal(cudaStreamSynchronize(member.stream), cudaSuccess);
    assert_int_equal(kill(children[1], SIGKILL), 0);
    assert_true(WIFSIGNALED(reap(children[1])));
    assert_int_equal(cudaFree(member.value), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(member.stream), cudaSuccess);
    standin_heal();
}

static void test_killed_and_none_notices(void **state)
{
    (void)state;
    lose_one(false);
}

static void test_killed_and_others_are_reported(void **state)
{
    (void)state;
    lose_one(true);
}

int main(int argc, char **argv)
{
    (void)setenv("CADRE_STANDIN_DEVICES", "3", 1);
    if (argc == 4) {
        return run_rank(argv[0], argv[1], (int)strtol(argv[2], NULL, 10), argv[3]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_processes),
        cmocka_unit_test(test_killed_and_none_notices),
        cmocka_unit_test(test_killed_and_others_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
