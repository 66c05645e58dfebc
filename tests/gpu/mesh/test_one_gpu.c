/* SPDX-License-Identifier: Apache-2.0
 * Two tasks on one GPU, connected: each sets by NCCL_HOSTID that it is on a host of its own, so
 * NCCL takes the network between them. Sums, another generation, a task that is killed while
 * collectives are under way. With a real GPU it is the one test of several ranks that one GPU is
 * enough for; the times that it prints are those of that way, not NCCL's. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/gpu/mesh/pair.h"
#include "tests/lib/test.h"

#define SKIPPED   77
#define COUNT_MAX ((size_t)1 << 20)

static const size_t counts[] = {1, 1000, 70001, COUNT_MAX};

static void be_a_host(uint32_t rank)
{
    static const char *const settings[][2] = {{"NCCL_SOCKET_IFNAME", "lo"},
        {"NCCL_IB_DISABLE", "1"}, {"NCCL_RAS_ENABLE", "0"}, {"NCCL_MAX_CTAS", "2"},
        {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        setenv(settings[i][0], settings[i][1], 0);
    }
    setenv("NCCL_HOSTID", rank == 0 ? "w0" : "w1", 1);
}

static double ms_since(uint64_t begun_us)
{
    return (double)(clock_monotonic_us() - begun_us) / (double)CADRE_US_PER_MS;
}

/* Whether all became the sum of what fill() set on both. */
static bool is_sum(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i] != 2 * (float)(i % 1000) + 1) {
            return false;
        }
    }
    return true;
}

static void fill(float *values, size_t count, uint32_t rank)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(i % 1000) + (float)rank;
    }
}

static int sums(struct mesh *mesh, struct device *device, float *values, uint32_t rank)
{
    struct cadre_error error = {.text = ""};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t begun_us = clock_monotonic_us();
        fill(values, counts[i], rank);
        PAIR_CHECK(pair_sum(mesh, device, values, counts[i], &error) == CADRE_OK);
        PAIR_CHECK(is_sum(values, counts[i]));
        if (rank == 0) {
            fprintf(stderr, "  a sum of %zu floats: %.2f ms\n", counts[i], ms_since(begun_us));
        }
    }
    return 0;
}

/* Two generations, each connected again. */
static int meet(const struct pair *pair, uint32_t rank, struct device *device, float *values)
{
    struct cadre_error error = {.text = ""};
    for (uint64_t generation = 1; generation <= 2; generation++) {
        struct mesh *mesh = NULL;
        PAIR_CHECK(pair_form(pair, rank, generation, &device, &mesh, &error) == CADRE_OK);
        uint64_t begun_us = clock_monotonic_us();
        PAIR_CHECK(mesh_device_connect(mesh, 0, PAIR_TIMEOUT_US, &error) == CADRE_OK);
        error.text[0] = '\0';
        if (mesh_device_reason(mesh)[0] != '\0') {
            fprintf(stderr, "not connected: %s\n", mesh_device_reason(mesh));
            return 1;
        }
        if (rank == 0) {
            fprintf(stderr, "generation %d connected in %.1f ms\n", (int)generation,
                ms_since(begun_us));
        }
        if (sums(mesh, device, values, rank) != 0) {
            return 1;
        }
        if (generation == 1) {
            begun_us = clock_monotonic_us();
            mesh_device_ops.close(mesh);
            fprintf(stderr, "task %u closed it in %.1f ms\n", rank, ms_since(begun_us));
            continue;
        }
        cadre_status status = CADRE_OK;
        pair_ready(pair);
        while (status == CADRE_OK) { /* rank 1 is killed in here */
            status = pair_sum(mesh, device, values, COUNT_MAX, &error);
        }
        begun_us = clock_monotonic_us();
        PAIR_CHECK(status == CADRE_ABORTED);
        PAIR_CHECK(strstr(error.text, "rank 1") != NULL);
        PAIR_CHECK(mesh_device_await_idle(mesh, PAIR_TIMEOUT_US));
        fprintf(
            stderr, "task %u at rest after %.1f ms: %s\n", rank, ms_since(begun_us), error.text);
        mesh_device_ops.close(mesh);
    }
    return 0;
}

static int run(const struct pair *pair, uint32_t rank)
{
    struct cadre_error error = {.text = ""};
    struct device *device = NULL;
    const char *reason;
    be_a_host(rank);
    if (device_count() == 0) {
        fprintf(stderr, "no GPU here: %s\n", device_absence_reason());
        return SKIPPED;
    }
    PAIR_CHECK(device_open(0, &device, &error) == CADRE_OK);
    if (mesh_device_offer(&device, 1, &reason) == 0) {
        fprintf(stderr, "no NCCL here: %s\n", reason);
        return SKIPPED;
    }
    float *values = malloc(COUNT_MAX * sizeof *values);
    int code = values != NULL ? meet(pair, rank, device, values) : 1;
    free(values);
    return code;
}

static void test_two_tasks_share_a_gpu(void **state)
{
    (void)state;
    struct pair pair;
    pair_start(&pair, run);
    bool met = pair_await(&pair) && pair_await(&pair);
    if (met) {
        assert_int_equal(kill(pair.pids[1], SIGKILL), 0);
    }
    int codes[2] = {pair_wait(&pair, 0), pair_wait(&pair, 1)};
    pair_finish(&pair);
    if (codes[0] == SKIPPED && codes[1] == SKIPPED) {
        test_skip("two tasks cannot be connected on one GPU here: see above");
    }
    assert_true(met);
    assert_int_equal(codes[0], 0);
    assert_int_equal(codes[1], -SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_tasks_share_a_gpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
