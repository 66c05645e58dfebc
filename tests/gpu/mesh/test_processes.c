/* SPDX-License-Identifier: Apache-2.0
 * Two tasks that are processes: they connect, one is killed in the middle of a collective on the
 * devices, and the other hears of it, by name. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "tests/gpu/standin/standin.h"
#include "tests/lib/test.h"
#include "worker/mesh/mesh_device.h"

#define PATIENCE_US UINT64_C(20000000)

struct task {
    struct mesh_listener *listeners[2];
    struct mesh_member members[2];
    int ready; /* where a task says that it is in the collective */
};

static cadre_status form(
    const struct task *task, uint32_t rank, struct device **device, struct mesh **ret_mesh)
{
    struct cadre_error error;
    struct mesh_config config = {
        .generation = 1,
        .nonce = 2,
        .rank = rank,
        .members = task->members,
        .member_count = 2,
        .listener = task->listeners[rank],
        .form_deadline_us = clock_monotonic_us() + PATIENCE_US,
        .devices = device,
    };
    cadre_status status = mesh_device_ops.form_post(&config, ret_mesh, &error);
    while (status == CADRE_OK) {
        status = mesh_device_ops.form_test(*ret_mesh, &error);
        if (status != CADRE_PENDING) {
            break;
        }
        status = CADRE_OK;
    }
    return status;
}

static cadre_status sum(
    struct mesh *mesh, struct device *device, float *value, struct cadre_error *error)
{
    struct mesh_buffer buffer = {.bytes = sizeof *value, .dtype = MESH_F32, .on = device};
    CADRE_TRY(
        device->ops->memory_get(device->index, sizeof *value, device->comm, &buffer.data, error));
    CADRE_TRY(device->ops->copy(buffer.data, value, sizeof *value, device->comm, error));
    CADRE_TRY(mesh_device_ops.all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, error));
    CADRE_TRY(device->ops->copy(value, buffer.data, sizeof *value, device->comm, error));
    return mesh_device_settle(mesh, 0, error);
}

/* What a process does; 0: all as it should be, else the line of the first check that is not true.
 */
#define CHECK(condition)                                                                           \
    if (!(condition)) {                                                                            \
        fprintf(stderr, "task %u: not true: %s (%s)\n", rank, #condition, error.text);             \
        return 1;                                                                                  \
    }

static int run(const struct task *task, uint32_t rank)
{
    struct cadre_error error = {.text = ""};
    struct mesh *mesh = NULL;
    struct device *device = NULL;
    float value = (float)rank + 1;
    CHECK(device_open(rank, &device, &error) == CADRE_OK);
    CHECK(form(task, rank, &device, &mesh) == CADRE_OK);
    CHECK(mesh_device_connect(mesh, 0, PATIENCE_US, &error) == CADRE_OK);
    CHECK(strcmp(mesh_device_reason(mesh), "") == 0);
    CHECK(sum(mesh, device, &value, &error) == CADRE_OK);
    CHECK(value == 3.0f);
    if (rank == 1) {
        standin_device_hold(1);
        struct mesh_buffer buffer = {.bytes = 4, .dtype = MESH_F32, .on = device};
        CHECK(device->ops->memory_get(device->index, 4, device->comm, &buffer.data, &error) ==
              CADRE_OK);
        CHECK(mesh_device_ops.all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, &error) == CADRE_OK);
        CHECK(write(task->ready, "1", 1) == 1);
        (void)pause(); /* to be killed */
        return 1;
    }
    CHECK(sum(mesh, device, &value, &error) == CADRE_ABORTED);
    CHECK(strstr(error.text, "rank 1") != NULL);
    CHECK(mesh_device_rest(mesh, PATIENCE_US));
    mesh_device_ops.close(mesh);
    return 0;
}

static void test_kill(void **state)
{
    (void)state;
    struct cadre_error error;
    struct task task = {.members = {{.replicas = 1}, {.replicas = 1}}};
    int ends[2];
    pid_t pids[2];
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok(
            mesh_listener_open("127.0.0.1", &task.listeners[i], task.members[i].address, &error),
            &error);
    }
    assert_int_equal(pipe(ends), 0);
    task.ready = ends[1];
    for (uint32_t i = 0; i < 2; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            _exit(run(&task, i));
        }
    }
    close(ends[1]);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(kill(pids[1], SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(ends[0]);
    mesh_listener_close(task.listeners[0]);
    mesh_listener_close(task.listeners[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kill)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
