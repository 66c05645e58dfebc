/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/mesh/pair.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"

void pair_start(struct pair *pair, int (*run)(const struct pair *pair, uint32_t rank))
{
    struct cadre_error error;
    int ends[2];
    *pair = (struct pair){.members = {{.replicas = 1}, {.replicas = 1}}};
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok(mesh_listener_open(
                      "127.0.0.1", NULL, &pair->listeners[i], pair->members[i].address, &error),
            &error);
    }
    assert_int_equal(pipe(ends), 0);
    pair->is_ready = ends[0];
    pair->ready = ends[1];
    for (uint32_t i = 0; i < 2; i++) {
        pair->pids[i] = fork();
        assert_true(pair->pids[i] >= 0);
        if (pair->pids[i] == 0) {
            _exit(run(pair, i));
        }
    }
    close(pair->ready);
}

int pair_wait(struct pair *pair, uint32_t rank)
{
    int status;
    assert_int_equal(waitpid(pair->pids[rank], &status, 0), pair->pids[rank]);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

bool pair_await(struct pair *pair)
{
    char byte;
    return read(pair->is_ready, &byte, 1) == 1;
}

void pair_finish(struct pair *pair)
{
    close(pair->is_ready);
    mesh_listener_close(pair->listeners[0]);
    mesh_listener_close(pair->listeners[1]);
}

void pair_ready(const struct pair *pair)
{
    if (write(pair->ready, "1", 1) != 1) {
        _exit(1);
    }
}

cadre_status pair_form(const struct pair *pair, uint32_t rank, uint64_t generation,
    struct device **device, struct mesh **ret_mesh, struct cadre_error *error)
{
    struct mesh_config config = {
        .generation = generation,
        .nonce = 2,
        .rank = rank,
        .members = pair->members,
        .member_count = 2,
        .listener = pair->listeners[rank],
        .form_deadline_us = clock_monotonic_us() + PAIR_TIMEOUT_US,
        .devices = device,
    };
    cadre_status status = mesh_device_ops.form_post(&config, ret_mesh, error);
    if (status != CADRE_OK) {
        return status;
    }
    while ((status = mesh_device_ops.form_test(*ret_mesh, error)) == CADRE_PENDING) {
        (void)poll(NULL, 0, 1);
    }
    return status;
}

cadre_status pair_sum(struct mesh *mesh, struct device *device, float *values, size_t count,
    struct cadre_error *error)
{
    size_t bytes = count * sizeof *values;
    struct mesh_buffer buffer = {.bytes = bytes, .dtype = MESH_F32, .on = device};
    CADRE_TRY(device->ops->memory_get(device->index, bytes, device->comm, &buffer.data, error));
    cadre_status status = device->ops->copy(buffer.data, values, bytes, device->comm, error);
    if (status == CADRE_OK) {
        status = mesh_device_ops.all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, error);
    }
    if (status == CADRE_OK) {
        status = device->ops->copy(values, buffer.data, bytes, device->comm, error);
    }
    device->ops->memory_give(device->index, buffer.data, device->comm);
    return status == CADRE_OK ? mesh_device_synchronize(mesh, 0, error) : status;
}
