/* SPDX-License-Identifier: Apache-2.0
 * Two tasks that are processes: they connect, one is killed in the middle of a collective on the
 * devices, and the other receives that, with its rank. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/gpu/mesh/pair.h"
#include "tests/gpu/standin/standin.h"
#include "tests/lib/test.h"

static int run(const struct pair *pair, uint32_t rank)
{
    struct cadre_error error = {.text = ""};
    struct mesh *mesh = NULL;
    struct device *device = NULL;
    float value = (float)rank + 1;
    PAIR_CHECK(device_open(rank, &device, &error) == CADRE_OK);
    PAIR_CHECK(pair_form(pair, rank, 1, &device, &mesh, &error) == CADRE_OK);
    PAIR_CHECK(mesh_device_connect(mesh, 0, PAIR_TIMEOUT_US, &error) == CADRE_OK);
    PAIR_CHECK(strcmp(mesh_device_reason(mesh), "") == 0);
    PAIR_CHECK(pair_sum(mesh, device, &value, 1, &error) == CADRE_OK);
    PAIR_CHECK(value == 3.0f);
    if (rank == 1) {
        standin_device_hold(1);
        struct mesh_buffer buffer = {.bytes = 4, .dtype = MESH_F32, .on = device};
        PAIR_CHECK(device->ops->memory_get(device->index, 4, device->comm, &buffer.data, &error) ==
                   CADRE_OK);
        PAIR_CHECK(
            mesh_device_ops.all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, &error) == CADRE_OK);
        pair_ready(pair);
        (void)pause(); /* to be killed */
        return 1;
    }
    PAIR_CHECK(pair_sum(mesh, device, &value, 1, &error) == CADRE_ABORTED);
    PAIR_CHECK(strstr(error.text, "rank 1") != NULL);
    PAIR_CHECK(mesh_device_await_idle(mesh, PAIR_TIMEOUT_US));
    mesh_device_ops.close(mesh);
    return 0;
}

static void test_kill(void **state)
{
    (void)state;
    struct pair pair;
    pair_start(&pair, run);
    assert_true(pair_await(&pair));
    assert_int_equal(kill(pair.pids[1], SIGKILL), 0);
    assert_int_equal(pair_wait(&pair, 1), -SIGKILL);
    assert_int_equal(pair_wait(&pair, 0), 0);
    pair_finish(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kill)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
