/* SPDX-License-Identifier: Apache-2.0
 * Two processes that reduce memory of their own, one of which is killed in the middle of it: the
 * other one gets an error that names it, and no wrong sum before. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/rounds.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/wire/host.h"

#define FORM_US  (20 * CADRE_US_PER_S)
#define ELEMENTS ((size_t)600000)
#define SPINS    20000 /* about as long as a collective: the kill moves through it */

static struct mesh_listener *listeners[2];
static struct mesh_member members[2];

static struct mesh *form(uint32_t rank, uint64_t generation)
{
    struct cadre_error error;
    struct mesh *mesh = NULL;
    struct mesh_config config = {.generation = generation,
        .rank = rank,
        .members = members,
        .member_count = 2,
        .listener = listeners[rank],
        .form_deadline_us = clock_monotonic_us() + speed_scaled_us(FORM_US)};
    cadre_status status = mesh_host_ops.form_post(&config, &mesh, &error);
    while (status == CADRE_OK || status == CADRE_PENDING) {
        status = mesh_host_ops.form_test(mesh, &error);
        if (status == CADRE_OK) {
            return mesh;
        }
    }
    fprintf(stderr, "rank %u: %s\n", rank, error.text);
    return NULL;
}

/* The sum of both ranks is 3 * (i % 7). */
static cadre_status reduce(
    struct mesh *mesh, uint32_t rank, float *memory, struct cadre_error *error)
{
    for (size_t i = 0; i < ELEMENTS; i++) {
        memory[i] = (float)((rank + 1) * (i % 7));
    }
    struct mesh_buffer buffer = {
        .data = memory, .bytes = ELEMENTS * sizeof *memory, .dtype = MESH_F32};
    return mesh_host_ops.all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, error);
}

/* --- the one that is killed --- */

static atomic_uint reduced;
static unsigned kill_at;

static void *kill_self(void *argument)
{
    (void)argument;
    while (atomic_load(&reduced) < 2) {
    }
    for (volatile unsigned i = 0; i < kill_at; i++) {
    }
    kill(getpid(), SIGKILL);
    return NULL;
}

static _Noreturn void be_killed(uint64_t generation)
{
    struct cadre_error error;
    pthread_t thread;
    float *memory = malloc(ELEMENTS * sizeof *memory);
    struct mesh *mesh = form(1, generation);
    if (memory != NULL && mesh != NULL && pthread_create(&thread, NULL, kill_self, NULL) == 0) {
        while (reduce(mesh, 1, memory, &error) == CADRE_OK) {
            atomic_fetch_add(&reduced, 1);
        }
    }
    _exit(1);
}

/* --- the other one --- */

static void survive(uint64_t generation)
{
    struct cadre_error error;
    float *memory = malloc(ELEMENTS * sizeof *memory);
    struct mesh *mesh = form(0, generation);
    assert_non_null(memory);
    assert_non_null(mesh);
    cadre_status status = CADRE_OK;
    for (unsigned round = 0; status == CADRE_OK; round++) {
        status = reduce(mesh, 0, memory, &error);
        for (size_t i = 0; status == CADRE_OK && i < ELEMENTS; i++) {
            if (memory[i] != (float)(3 * (i % 7))) {
                fail_msg("round %u: element %zu is %g", round, i, (double)memory[i]);
            }
        }
    }
    free(memory); /* no other process writes to it any more */
    assert_error(status, CADRE_ABORTED, &error, "rank 1");
    mesh_host_ops.close(mesh);
}

static void a_killed_task_is_an_error(void **state)
{
    (void)state;
    for (unsigned round = 0; round < TEST_ROUNDS(40); round++) {
        kill_at = round * SPINS;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            be_killed(round + 1);
        }
        survive(round + 1);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}

int main(void)
{
    struct cadre_error error;
    for (uint32_t i = 0; i < 2; i++) {
        members[i].replicas = 1;
        if (mesh_listener_open("127.0.0.1", NULL, &listeners[i], members[i].address, &error) !=
            CADRE_OK) {
            return 1;
        }
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_killed_task_is_an_error)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mesh_listener_close(listeners[0]);
    mesh_listener_close(listeners[1]);
    return failed;
}
