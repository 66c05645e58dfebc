/* SPDX-License-Identifier: Apache-2.0
 * The stand-in's NCCL among two ranks of this process: results, order, and all faults. */
#include <stdlib.h>
#include <string.h>

#include "nccl.h"
#include "tests/gpu/standin/standin.h"
#include "tests/gpu/standin/tests/kernels.h"
#include "tests/lib/test.h"

#define RANKS             2
#define COUNT             1000
#define WAIT_US           UINT64_C(30000000)
#define assert_nccl(call) assert_int_equal((call), ncclSuccess)
#define assert_cuda(call) assert_int_equal((call), cudaSuccess)

struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    float *in;
    float *out;
};

static struct rank ranks[RANKS];

static bool is_settled(void *data)
{
    ncclResult_t state = ncclInProgress;
    return ncclCommGetAsyncError(data, &state) != ncclSuccess || state != ncclInProgress;
}

static ncclResult_t settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInternalError;
    assert_true(test_wait(is_settled, comm, WAIT_US));
    assert_nccl(ncclCommGetAsyncError(comm, &state));
    return state;
}

static void begin(int blocking, const int devices[RANKS])
{
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    assert_nccl(ncclGetUniqueId(&id));
    assert_nccl(ncclGroupStart());
    for (int i = 0; i < RANKS; i++) {
        assert_cuda(cudaSetDevice(devices[i]));
        ncclResult_t begun = ncclCommInitRankConfig(&ranks[i].comm, RANKS, id, i, &config);
        assert_int_equal(begun, blocking ? ncclSuccess : ncclInProgress);
    }
    (void)ncclGroupEnd();
}

static void connect(int blocking)
{
    begin(blocking, (const int[RANKS]){0, 1});
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(settle(ranks[i].comm), ncclSuccess);
    }
}

static void disconnect(void)
{
    for (int i = 0; i < RANKS; i++) {
        assert_nccl(ncclCommDestroy(ranks[i].comm));
    }
}

static int set_up(void **state)
{
    (void)state;
    int errors = 0;
    for (int i = 0; i < RANKS; i++) {
        errors += (int)cudaSetDevice(i);
        errors += (int)cudaStreamCreateWithFlags(&ranks[i].stream, cudaStreamNonBlocking);
        errors += (int)cudaMalloc((void **)&ranks[i].in, 8 * COUNT * RANKS);
        errors += (int)cudaMalloc((void **)&ranks[i].out, 8 * COUNT * RANKS);
    }
    return errors;
}

static int tear_down(void **state)
{
    (void)state;
    int errors = 0;
    for (int i = 0; i < RANKS; i++) {
        errors += (int)cudaFree(ranks[i].in) + (int)cudaFree(ranks[i].out);
        errors += (int)cudaStreamDestroy(ranks[i].stream);
    }
    return errors;
}

static void fill(int rank, float first, float step, size_t count)
{
    float values[COUNT * RANKS];
    for (size_t i = 0; i < count; i++) {
        values[i] = first + step * (float)i;
    }
    assert_cuda(cudaMemcpyAsync(
        ranks[rank].in, values, count * sizeof(float), cudaMemcpyHostToDevice, ranks[rank].stream));
}

static void fetch(int rank, void *to, size_t bytes)
{
    assert_cuda(
        cudaMemcpyAsync(to, ranks[rank].out, bytes, cudaMemcpyDeviceToHost, ranks[rank].stream));
}

static void test_collectives(void **state)
{
    (void)state;
    float got[COUNT * RANKS];
    connect(1);
    for (int i = 0; i < RANKS; i++) {
        fill(i, (float)i, 1, COUNT);
        assert_nccl(ncclAllReduce(ranks[i].in, ranks[i].out, COUNT, ncclFloat32, ncclSum,
            ranks[i].comm, ranks[i].stream));
    }
    for (int i = 0; i < RANKS; i++) {
        fetch(i, got, COUNT * sizeof(float));
        assert_true(got[0] == 1 && got[999] == 1999);
        assert_nccl(ncclBroadcast(
            ranks[i].in, ranks[i].out, COUNT, ncclFloat32, 1, ranks[i].comm, ranks[i].stream));
    }
    for (int i = 0; i < RANKS; i++) {
        fetch(i, got, COUNT * sizeof(float));
        assert_true(got[0] == 1 && got[999] == 1000);
        assert_nccl(ncclAllGather(
            ranks[i].in, ranks[i].out, COUNT, ncclFloat32, ranks[i].comm, ranks[i].stream));
    }
    for (int i = 0; i < RANKS; i++) {
        fetch(i, got, sizeof(got));
        assert_true(got[0] == 0 && got[999] == 999 && got[1000] == 1 && got[1999] == 1000);
        assert_nccl(ncclReduceScatter(ranks[i].in, ranks[i].out, COUNT / 2, ncclFloat32, ncclMax,
            ranks[i].comm, ranks[i].stream));
    }
    for (int i = 0; i < RANKS; i++) {
        fetch(i, got, COUNT / 2 * sizeof(float));
        assert_true(got[0] == 1 + 500.0f * (float)i && got[499] == 500 + 500.0f * (float)i);
        assert_nccl(ncclReduce(ranks[i].in, ranks[i].out, COUNT, ncclFloat32, ncclAvg, 0,
            ranks[i].comm, ranks[i].stream));
    }
    fetch(0, got, COUNT * sizeof(float));
    assert_true(got[0] == 0.5f && got[999] == 999.5f);
    disconnect();
}

static void check_type(ncclDataType_t type, const void *one, const void *two, const void *wanted,
    size_t bytes, ncclRedOp_t op)
{
    const void *values[RANKS] = {one, two};
    uint64_t got = 0;
    for (int i = 0; i < RANKS; i++) {
        assert_cuda(cudaMemcpyAsync(
            ranks[i].in, values[i], bytes, cudaMemcpyHostToDevice, ranks[i].stream));
        assert_nccl(
            ncclAllReduce(ranks[i].in, ranks[i].out, 1, type, op, ranks[i].comm, ranks[i].stream));
    }
    for (int i = 0; i < RANKS; i++) {
        fetch(i, &got, bytes);
        assert_memory_equal(&got, wanted, bytes);
    }
}

#define CHECK_TYPE(nccl, type, a, b, c, op)                                                        \
    check_type(nccl, &(type){(type)(a)}, &(type){(type)(b)}, &(type){(type)(c)}, sizeof(type), op)

static void test_types(void **state)
{
    (void)state;
    connect(1);
    CHECK_TYPE(ncclInt8, int8_t, 100, 100, -56, ncclSum);
    CHECK_TYPE(ncclUint8, uint8_t, 200, 3, 203, ncclSum);
    CHECK_TYPE(ncclInt32, int32_t, -7, 6, -42, ncclProd);
    CHECK_TYPE(ncclUint32, uint32_t, 7, UINT32_MAX, UINT32_MAX, ncclMax);
    CHECK_TYPE(ncclInt64, int64_t, -7, INT64_C(1) << 40, -7, ncclMin);
    CHECK_TYPE(ncclUint64, uint64_t, 1, UINT64_MAX, 0, ncclSum);
    CHECK_TYPE(ncclInt32, int32_t, 7, 4, 5, ncclAvg);
    CHECK_TYPE(ncclFloat64, double, 0.25, 1e300, 1e300, ncclSum);
    CHECK_TYPE(ncclFloat16, uint16_t, 0x3c00, 0x4000, 0x4200, ncclSum);  /* 1 + 2 */
    CHECK_TYPE(ncclBfloat16, uint16_t, 0x3f80, 0x4000, 0x4040, ncclSum); /* the same */
    CHECK_TYPE(ncclBfloat16, uint16_t, 0x4380, 0x3f80, 0x4380, ncclSum); /* 256 + 1 rounds */
    disconnect();
}

/* A caller that does not poll until the call is over: its stream is in another order. */
static void test_in_progress(void **state)
{
    (void)state;
    float got = 0;
    uint64_t before = standin_calls("ncclOperation");
    standin_fail_from("ncclInProgress", 1, 3);
    connect(0);
    for (int i = 0; i < RANKS; i++) {
        fill(i, 4, 0, 1);
        assert_int_equal(ncclAllReduce(ranks[i].in, ranks[i].out, 1, ncclFloat32, ncclSum,
                             ranks[i].comm, ranks[i].stream),
            ncclInProgress);
        assert_int_equal(ncclAllReduce(ranks[i].in, ranks[i].out, 1, ncclFloat32, ncclSum,
                             ranks[i].comm, ranks[i].stream),
            ncclInvalidArgument);
        assert_cuda(cudaStreamSynchronize(ranks[i].stream)); /* it is not there yet */
    }
    assert_int_equal(standin_calls("ncclOperation"), before);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(settle(ranks[i].comm), ncclSuccess);
    }
    fetch(1, &got, sizeof(got));
    assert_true(got == 8);
    standin_heal();
    for (int i = 0; i < RANKS; i++) {
        ncclResult_t begun = ncclCommFinalize(ranks[i].comm); /* its operation may be at its end */
        assert_true(begun == ncclSuccess || begun == ncclInProgress);
        assert_int_equal(settle(ranks[i].comm), ncclSuccess);
    }
    disconnect();
}

static bool stands(void *data)
{
    return standin_calls("ncclOperation") > *(uint64_t *)data;
}

/* One rank alone waits on its stream; abort frees it, and the queue behind it is done. */
static void test_abort(void **state)
{
    (void)state;
    uint64_t before = standin_calls("ncclOperation");
    connect(0);
    assert_nccl(ncclAllReduce(
        ranks[0].in, ranks[0].out, 1, ncclFloat32, ncclSum, ranks[0].comm, ranks[0].stream));
    assert_nccl(ncclAllReduce(
        ranks[0].in, ranks[0].out, 1, ncclFloat32, ncclSum, ranks[0].comm, ranks[0].stream));
    assert_true(test_wait(stands, &before, WAIT_US));
    assert_int_equal(cudaStreamQuery(ranks[0].stream), cudaErrorNotReady);
    assert_nccl(ncclCommAbort(ranks[0].comm));
    assert_cuda(cudaStreamSynchronize(ranks[0].stream));
    assert_nccl(ncclAllReduce(
        ranks[1].in, ranks[1].out, 1, ncclFloat32, ncclSum, ranks[1].comm, ranks[1].stream));
    assert_int_equal(settle(ranks[1].comm), ncclSuccess); /* it receives no message */
    assert_int_equal(cudaStreamQuery(ranks[1].stream), cudaErrorNotReady);
    assert_nccl(ncclCommAbort(ranks[1].comm));
    assert_cuda(cudaStreamSynchronize(ranks[1].stream));
}

static bool has_failed(void *data)
{
    ncclResult_t state = ncclSuccess;
    return ncclCommGetAsyncError(data, &state) == ncclSuccess && state != ncclSuccess;
}

static bool one_has_failed(void *data)
{
    ncclResult_t states[RANKS] = {ncclSuccess, ncclSuccess};
    (void)data;
    for (int i = 0; i < RANKS; i++) {
        assert_nccl(ncclCommGetAsyncError(ranks[i].comm, &states[i]));
    }
    return states[0] == ncclSystemError || states[1] == ncclSystemError;
}

static void test_failures_of_operations(void **state)
{
    (void)state;
    connect(0);
    standin_fail("ncclOperation", 1, ncclSystemError);
    assert_nccl(ncclAllReduce(
        ranks[0].in, ranks[0].out, 1, ncclFloat32, ncclSum, ranks[0].comm, ranks[0].stream));
    assert_true(test_wait(has_failed, ranks[0].comm, WAIT_US));
    assert_int_equal(settle(ranks[0].comm), ncclSystemError);
    assert_int_equal(cudaStreamQuery(ranks[0].stream), cudaErrorNotReady); /* never by itself */
    assert_nccl(ncclCommAbort(ranks[0].comm));
    assert_cuda(cudaStreamSynchronize(ranks[0].stream));
    assert_nccl(ncclCommAbort(ranks[1].comm));

    connect(0); /* calls that differ */
    assert_nccl(ncclAllReduce(
        ranks[0].in, ranks[0].out, 1, ncclFloat32, ncclSum, ranks[0].comm, ranks[0].stream));
    assert_nccl(ncclAllReduce(
        ranks[1].in, ranks[1].out, 2, ncclFloat32, ncclSum, ranks[1].comm, ranks[1].stream));
    for (int i = 0; i < RANKS; i++) {
        assert_true(test_wait(has_failed, ranks[i].comm, WAIT_US));
        assert_int_equal(settle(ranks[i].comm), ncclInvalidUsage);
        assert_nccl(ncclCommAbort(ranks[i].comm));
    }

    standin_fail_from("ncclPeerLost", 1, ncclRemoteError);
    connect(0);
    assert_nccl(ncclAllReduce(
        ranks[0].in, ranks[0].out, 1, ncclFloat32, ncclSum, ranks[0].comm, ranks[0].stream));
    assert_nccl(ncclCommAbort(ranks[1].comm));
    assert_true(test_wait(has_failed, ranks[0].comm, WAIT_US));
    assert_int_equal(settle(ranks[0].comm), ncclRemoteError);
    assert_nccl(ncclCommAbort(ranks[0].comm));
    standin_heal();
}

static void test_refused(void **state)
{
    (void)state;
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    begin(0, (const int[RANKS]){1, 1});
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(settle(ranks[i].comm), ncclInvalidUsage);
        assert_non_null(strstr(ncclGetLastError(NULL), "Duplicate GPU detected"));
    }
    for (int i = 0; i < RANKS; i++) {
        assert_nccl(ncclCommAbort(ranks[i].comm));
    }
    standin_fail("ncclForm", 2, ncclSystemError);
    begin(0, (const int[RANKS]){0, 1});
    assert_true(test_wait(one_has_failed, NULL, WAIT_US));
    for (int i = 0; i < RANKS; i++) { /* the other one waits for it until it is aborted */
        assert_nccl(ncclCommAbort(ranks[i].comm));
    }
    assert_nccl(ncclGetUniqueId(&id));
    assert_int_equal(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
    standin_fail("ncclCommInitRankConfig", 1, ncclInternalError);
    assert_int_equal(ncclCommInitRank(&comm, 1, id, 0), ncclInternalError);
    standin_heal();
    assert_nccl(ncclCommInitRank(&comm, 1, id, 0));
    assert_nccl(ncclCommDestroy(comm));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_in_progress),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_failures_of_operations),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
