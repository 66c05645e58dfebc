/* SPDX-License-Identifier: Apache-2.0
 * The plugin over the stand-in, where a test can see more and cause more: each call of CUDA's fails
 * once, work hangs or fails on the device, and the state that the plugin leaves behind is
 * checked. */
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"
#include "tests/gpu/standin/standin.h"

#define BYTES ((size_t)4096)

/* --- every call fails once --- */

/* All calls of one device; ends what it made, however far it came. */
static cadre_status use_all(struct cadre_error *error)
{
    void *stream = NULL;
    void *other = NULL;
    void *event = NULL;
    void *memory = NULL;
    static unsigned char host[BYTES]; /* a copy may still be under way when this returns */
    struct device_info info;
    cadre_status status = ops->describe(0, &info, error);
    status = status != CADRE_OK ? status : ops->stream_open(0, true, &stream, error);
    status = status != CADRE_OK ? status : ops->stream_open(0, false, &other, error);
    status = status != CADRE_OK ? status : ops->event_open(0, &event, error);
    status = status != CADRE_OK ? status : ops->memory_get(0, BYTES, stream, &memory, error);
    struct device_piece piece = {.data = memory, .offset = BYTES / 2, .bytes = 100};
    status = status != CADRE_OK ? status : ops->fill(memory, 0, BYTES, stream, error);
    status =
        status != CADRE_OK ? status : ops->scale(CADRE_F32, memory, BYTES / 4, 2, stream, error);
    status = status != CADRE_OK
                 ? status
                 : ops->arithmetic(DEVICE_ADD, CADRE_I32, memory, memory, BYTES / 8, stream, error);
    status = status != CADRE_OK ? status : ops->pack(&piece, 1, memory, stream, error);
    status = status != CADRE_OK ? status : ops->event_record(event, stream, error);
    status = status != CADRE_OK ? status : ops->stream_wait(other, event, error);
    status = status != CADRE_OK ? status : ops->copy(host, memory, BYTES, other, error);
    while (status == CADRE_OK || status == CADRE_PENDING) {
        status = ops->stream_test(other, error);
        if (status == CADRE_OK) {
            status = ops->event_test(event, error);
            break;
        }
    }
    ops->memory_give(0, memory, stream);
    ops->event_close(event);
    ops->stream_close(stream);
    ops->stream_close(other);
    return status;
}

/* Memory goes back in the order of a stream, which may still be on its way. */
static bool is_given_back(void *data)
{
    return standin_memory_used(0) == *(size_t *)data;
}

static void test_every_call_fails_once(void **state)
{
    (void)state;
    /* A failure of those without a star is not reported: there is another way, or no caller to
     * report it to. */
    static const char *const names[] = {"*cudaGetDeviceProperties", "cudaMemGetInfo",
        "*cudaStreamCreate", "*cudaEventCreate", "*cudaMallocAsync", "*cudaMemsetAsync",
        "*cudaLaunchKernelExC", "*cudaEventRecord", "*cudaStreamWaitEvent", "*cudaMemcpyAsync",
        "*cudaStreamQuery", "*cudaEventQuery", "cudaFreeAsync", "cudaEventDestroy",
        "cudaStreamDestroy"};
    struct cadre_error error = {.code = CADRE_OK};
    assert_ok(use_all(&error), &error); /* pools are searched for once, before */
    size_t used = 0;
    assert_true(test_wait(is_given_back, &used, PLUGIN_WAIT_US));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool reported = names[i][0] == '*';
        const char *name = names[i] + reported;
        uint64_t before = standin_calls(name);
        assert_ok(use_all(&error), &error);
        uint64_t calls = standin_calls(name) - before;
        if (calls == 0) {
            fail_msg("%s is not called", name);
        }
        for (uint64_t nth = 1; nth <= (reported ? 1 : calls); nth++) {
            standin_fail(name, nth, cudaErrorNotSupported);
            cadre_status status = use_all(&error);
            if (status != (reported ? CADRE_INTERNAL : CADRE_OK)) {
                fail_msg("%s: %d: %s", name, (int)status, error.text);
            }
            if (reported) {
                assert_non_null(strstr(error.text, "GPU 0: "));
                assert_non_null(strstr(error.text, ": cudaErrorNotSupported: "));
            }
            assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
            standin_heal();
            assert_ok(use_all(&error), &error); /* nothing stayed */
            if (!test_wait(is_given_back, &used, PLUGIN_WAIT_US)) {
                fail_msg("%s: %zu bytes are not given back", name, standin_memory_used(0) - used);
            }
        }
    }
}

static void test_no_memory_is_exhausted(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = stream_of(0);
    void *memory = NULL;
    standin_fail("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
    assert_error(ops->memory_get(0, 12345, stream, &memory, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "no memory of 12345 bytes (");
    standin_fail("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    assert_null(ops->pinned_get(100));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    standin_heal();
    ops->stream_close(stream);
}

static void test_no_devices(void **state)
{
    (void)state;
    char reason[256];
    standin_fail("cudaGetDeviceCount", 1, cudaErrorSystemNotReady);
    assert_int_equal(ops->count(reason), 0);
    assert_non_null(strstr(reason, "cudaErrorSystemNotReady"));
    standin_fail("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
    assert_int_equal(ops->count(reason), 0);
    assert_non_null(strstr(reason, "driver"));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    standin_heal();
    assert_int_equal(ops->count(reason), devices);
    assert_string_equal(reason, "");
}

/* --- the program's state is not changed --- */

static void test_the_current_device_stays(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    int current = -1;
    assert_ok(ops->bind(1, &error), &error);
    assert_ok(use_all(&error), &error); /* on device 0 */
    assert_int_equal(cudaGetDevice(&current), cudaSuccess);
    assert_int_equal(current, 1);
    standin_fail("cudaEventRecord", 1, cudaErrorNotSupported);
    assert_int_equal(use_all(&error), CADRE_INTERNAL);
    standin_heal();
    assert_int_equal(cudaGetDevice(&current), cudaSuccess);
    assert_int_equal(current, 1);
    assert_ok(ops->bind(0, &error), &error);
    assert_int_equal(cudaGetDevice(&current), cudaSuccess);
    assert_int_equal(current, 0);
}

static void test_the_programs_error_stays(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = stream_of(0);
    assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice); /* the program did not check */
    assert_int_equal(ops->stream_test(stream, &error), CADRE_OK);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
    ops->stream_close(stream);
}

static void test_waiting_is_pending(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = stream_of(0);
    void *event = NULL;
    assert_ok(ops->event_open(0, &event, &error), &error);
    void *memory = memory_of(0, BYTES, stream);
    standin_hold(stream);
    assert_ok(ops->fill(memory, 1, BYTES, stream, &error), &error);
    assert_ok(ops->event_record(event, stream, &error), &error);
    assert_int_equal(ops->stream_test(stream, &error), CADRE_PENDING);
    assert_int_equal(ops->event_test(event, &error), CADRE_PENDING);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    standin_release(stream);
    settle(stream);
    assert_int_equal(ops->event_test(event, &error), CADRE_OK);
    ops->memory_give(0, memory, stream);
    settle(stream);
    ops->event_close(event);
    ops->stream_close(stream);
}

/* --- communicators --- */

static struct device_comm *comm_alone(void)
{
    struct cadre_error error = {.code = CADRE_OK};
    uint8_t id[DEVICE_COMM_ID_BYTES];
    uint32_t zero = 0;
    struct device_comm *comm = NULL;
    assert_ok(ops->comm->unique_id(id, &error), &error);
    assert_ok(ops->comm->post(id, 1, 1, &zero, &zero, &comm, &error), &error);
    cadre_status status = CADRE_PENDING;
    while (status == CADRE_PENDING) {
        status = ops->comm->test(comm, &error);
    }
    assert_ok(status, &error);
    return comm;
}

/* Of a graph in the making nothing becomes a part, and the thread's own mode is as it was. */
static void test_a_captured_stream_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    size_t none = 0;
    assert_true(test_wait(is_given_back, &none, PLUGIN_WAIT_US)); /* else the blocks of others are
                                                                   * freed */
    void *stream = stream_of(0);
    void *other = stream_of(0);
    void *memory = memory_of(0, 100, stream);
    void *event = NULL;
    void *more = NULL;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    assert_ok(ops->event_open(0, &event, &error), &error);
    assert_int_equal(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    size_t blocks = standin_memory_blocks(0);
    standin_capture(stream, true);
    const cadre_status refused = CADRE_FAILED_PRECONDITION;
    const char *words = "captured into a graph";
    assert_error(ops->event_record(event, stream, &error), refused, &error, words);
    assert_error(ops->stream_wait(stream, event, &error), refused, &error, words);
    assert_error(ops->stream_test(stream, &error), refused, &error, words);
    assert_error(ops->fill(memory, 0, 100, stream, &error), refused, &error, words);
    assert_error(ops->memory_get(0, 100, stream, &more, &error), refused, &error, words);
    ops->memory_give(0, memory, stream);
    assert_int_equal(standin_memory_blocks(0), blocks);
    assert_ok(ops->fill(memory, 0, 100, other, &error), &error);
    settle(other);
    standin_capture(stream, false);
    mode = cudaStreamCaptureModeGlobal;
    assert_int_equal(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    assert_int_equal(mode, cudaStreamCaptureModeThreadLocal);
    ops->memory_give(0, memory, stream);
    settle(stream);
    assert_int_equal(standin_memory_blocks(0), blocks - 1);
    ops->event_close(event);
    ops->stream_close(stream);
    ops->stream_close(other);
}

static void test_failures_of_communicators(void **state)
{
    (void)state;
    static const struct {
        int result;
        cadre_status status;
    } cases[] = {{ncclRemoteError, CADRE_UNAVAILABLE}, {ncclSystemError, CADRE_UNAVAILABLE},
        {ncclInternalError, CADRE_INTERNAL}, {ncclUnhandledCudaError, CADRE_INTERNAL},
        {ncclInvalidUsage, CADRE_INVALID_ARGUMENT}};
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = stream_of(0);
    float *memory = memory_of(0, BYTES, stream);
    struct device_vector vector = {
        .from = memory, .to = memory, .count = BYTES / 4, .dtype = CADRE_F32};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct device_comm *comm = comm_alone();
        standin_fail("ncclAllReduce", 1, cases[i].result);
        assert_error(ops->comm->all_reduce(comm, DEVICE_REDUCE_SUM, &vector, 1, stream, &error),
            cases[i].status, &error, "NCCL, rank 0 of 1 on GPU 0: all-reduce: ");
        standin_heal();
        /* It stays failed, for whatever comes. */
        assert_error(
            ops->comm->test(comm, &error), cases[i].status, &error, "on GPU 0: all-reduce: ");
        assert_error(ops->comm->broadcast(comm, 0, &vector, 1, stream, &error), cases[i].status,
            &error, "on GPU 0: all-reduce: ");
        ops->comm->destroy(comm); /* which aborts it */
    }
    settle(stream);
    ops->memory_give(0, memory, stream);
    ops->stream_close(stream);
}

static void test_coming_in_fails(void **state)
{
    (void)state;
    static const char *const names[] = {"ncclCommInitRankConfig", "ncclGroupStart", "ncclGroupEnd"};
    struct cadre_error error = {.code = CADRE_OK};
    uint8_t id[DEVICE_COMM_ID_BYTES];
    uint32_t numbers[] = {0, 1};
    struct device_comm *comms[2] = {NULL};
    assert_ok(ops->comm->unique_id(id, &error), &error);
    for (size_t i = 0; i < 3; i++) {
        standin_fail(names[i], 1, ncclSystemError);
        assert_error(ops->comm->post(id, 2, 2, numbers, numbers, comms, &error), CADRE_UNAVAILABLE,
            &error, "joining a communicator: ");
        assert_true(comms[0] == NULL && comms[1] == NULL);
        standin_heal();
    }
    standin_fail("ncclGetUniqueId", 1, ncclSystemError);
    assert_error(ops->comm->unique_id(id, &error), CADRE_UNAVAILABLE, &error, "no name");
    standin_heal();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_fails_once),
        cmocka_unit_test(test_no_memory_is_exhausted),
        cmocka_unit_test(test_no_devices),
        cmocka_unit_test(test_the_current_device_stays),
        cmocka_unit_test(test_the_programs_error_stays),
        cmocka_unit_test(test_waiting_is_pending),
        cmocka_unit_test(test_a_captured_stream_is_refused),
        cmocka_unit_test(test_failures_of_communicators),
        cmocka_unit_test(test_coming_in_fails),
    };
    plugin_open_with_devices(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
