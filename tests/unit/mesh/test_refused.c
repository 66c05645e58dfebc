/* SPDX-License-Identifier: Apache-2.0
 * What the system may refuse to a forming mesh: a way around it, or an error that names it. */
#include <pthread.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/mesh.h"

#define TASKS           3
#define WAIT_TIMEOUT_US (20 * CADRE_US_PER_S)

static struct mesh_listener *listeners[TASKS];
static struct mesh_member members[TASKS];
static struct mesh *meshes[TASKS];

/* The listener of the task `odd` (TASKS: none) gets no Unix socket. */
static void listen_all(uint32_t odd)
{
    struct cadre_error error;
    for (uint32_t i = 0; i < TASKS; i++) {
        if (i == odd) {
            fault_arm("mesh.listen_local", 1);
        }
        members[i].replicas = 1;
        assert_ok(mesh_listener_open("127.0.0.1", NULL, &listeners[i], members[i].address, &error),
            &error);
        assert_int_equal(strchr(members[i].address, '/') == NULL, i == odd);
        if (i == odd) {
            assert_true(fault_disarm());
        }
    }
}

static void post_all(void)
{
    struct cadre_error error;
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        struct mesh_config config = {.generation = 1,
            .rank = rank,
            .members = members,
            .member_count = TASKS,
            .listener = listeners[rank],
            .form_deadline_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US)};
        assert_ok(mesh_host_ops.form_post(&config, &meshes[rank], &error), &error);
    }
}

static void close_all(void)
{
    for (uint32_t i = 0; i < TASKS; i++) {
        mesh_host_ops.close(meshes[i]);
        mesh_listener_close(listeners[i]);
    }
}

/* Polls all until every one has formed, or one fails with its error. */
static cadre_status form_all(struct cadre_error *error)
{
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US);
    while (clock_monotonic_us() < end_us) {
        uint32_t formed = 0;
        for (uint32_t i = 0; i < TASKS; i++) {
            cadre_status status = mesh_host_ops.form_test(meshes[i], error);
            if (status != CADRE_OK && status != CADRE_PENDING) {
                return status;
            }
            formed += status == CADRE_OK ? 1 : 0;
        }
        if (formed == TASKS) {
            return CADRE_OK;
        }
    }
    return CADRE_DEADLINE_EXCEEDED;
}

static void *add_one(void *user)
{
    struct mesh *mesh = user;
    struct cadre_error error;
    int64_t one = 1;
    struct mesh_buffer buffer = {.data = &one, .bytes = sizeof one, .dtype = MESH_I64};
    cadre_status status = mesh->ops->all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, &error);
    return (void *)(intptr_t)(status == CADRE_OK ? one : -(int64_t)status);
}

/* It counts as a host of its own, whichever of them it is. */
static void a_task_without_a_local_socket_is_reached_over_tcp(void **state)
{
    (void)state;
    for (uint32_t odd = 0; odd < TASKS; odd++) {
        struct cadre_error error;
        pthread_t threads[TASKS];
        listen_all(odd);
        post_all();
        assert_ok(form_all(&error), &error);
        for (uint32_t i = 0; i < TASKS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, add_one, meshes[i]), 0);
        }
        for (uint32_t i = 0; i < TASKS; i++) {
            void *sum;
            pthread_join(threads[i], &sum);
            assert_int_equal((intptr_t)sum, TASKS);
        }
        close_all();
    }
}

static void a_refused_local_connection_is_reported(void **state)
{
    (void)state;
    struct cadre_error error;
    listen_all(TASKS);
    post_all();
    fault_arm("mesh.connect_local", 1);
    assert_error(form_all(&error), CADRE_PERMISSION_DENIED, &error,
        "does not allow tasks of one host to connect over a Unix socket (to the task of rank 0");
    assert_true(fault_disarm());
    close_all();
}

static void a_mesh_that_cannot_be_watched_does_not_form(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= TASKS; nth++) {
        struct cadre_error error;
        listen_all(TASKS);
        post_all();
        fault_arm("mesh.watch", nth);
        assert_error(form_all(&error), CADRE_UNAVAILABLE, &error, "start the watcher of a mesh");
        assert_true(fault_disarm());
        close_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_without_a_local_socket_is_reached_over_tcp),
        cmocka_unit_test(a_refused_local_connection_is_reported),
        cmocka_unit_test(a_mesh_that_cannot_be_watched_does_not_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
