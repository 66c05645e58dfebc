/* SPDX-License-Identifier: Apache-2.0
 * How long a mesh of 8 processes takes to form, and an abort to reach all: all of them on one host,
 * and 4 on each of two (two addresses of this machine). A generation is ready when the last task
 * is; an abort is over when the last task has left the collective it was in. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/library/mesh/mesh.h"

#define TASKS       8
#define GENERATIONS 100

/* Shared by all processes. */
struct board {
    pthread_barrier_t barrier;
    _Atomic uint64_t began_us; /* of the last task to post its forming */
    uint64_t ready_us[TASKS];
    uint64_t aborted_us;
    uint64_t left_us[TASKS];
};

static struct board *board;
static struct mesh_listener *listeners[TASKS];
static struct mesh_member members[TASKS];

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static uint64_t last_of(const uint64_t *times)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < TASKS; i++) {
        last = times[i] > last ? times[i] : last;
    }
    return last;
}

static bool form(struct mesh *mesh)
{
    struct cadre_error error;
    cadre_status status;
    while ((status = mesh->ops->form_test(mesh, &error)) == CADRE_PENDING) {
        struct pollfd ready = {.fd = mesh->ops->form_fd(mesh), .events = POLLIN};
        poll(&ready, 1, 1000);
    }
    if (status != CADRE_OK) {
        fprintf(stderr, "mesh_form: %s\n", error.text);
    }
    return status == CADRE_OK;
}

/* One task: forms, waits in a barrier that the last rank aborts, closes. */
static int run_task(uint32_t rank, const char *name)
{
    static uint64_t forming_us[GENERATIONS];
    static uint64_t aborting_us[GENERATIONS];
    for (uint64_t generation = 1; generation <= GENERATIONS; generation++) {
        struct mesh_config config = {.generation = generation,
            .rank = rank,
            .members = members,
            .member_count = TASKS,
            .listener = listeners[rank],
            .form_deadline_us = clock_monotonic_us() + 20 * CADRE_US_PER_S};
        struct mesh *mesh;
        struct cadre_error error;
        pthread_barrier_wait(&board->barrier);
        uint64_t began_us = clock_monotonic_us();
        atomic_store(&board->began_us, began_us);
        if (mesh_host_ops.form_post(&config, &mesh, &error) != CADRE_OK || !form(mesh)) {
            return 1;
        }
        board->ready_us[rank] = clock_monotonic_us();
        pthread_barrier_wait(&board->barrier);
        if (rank == TASKS - 1) {
            poll(NULL, 0, 2); /* the others are in the barrier by then */
            board->aborted_us = clock_monotonic_us();
            mesh_host_ops.abort(mesh, "measured");
        } else {
            (void)mesh_host_ops.barrier(mesh, 0, NULL, &error);
        }
        board->left_us[rank] = clock_monotonic_us();
        pthread_barrier_wait(&board->barrier);
        forming_us[generation - 1] = last_of(board->ready_us) - atomic_load(&board->began_us);
        aborting_us[generation - 1] = last_of(board->left_us) - board->aborted_us;
        mesh_host_ops.close(mesh);
    }
    if (rank == 0) {
        qsort(forming_us, GENERATIONS, sizeof *forming_us, compare);
        qsort(aborting_us, GENERATIONS, sizeof *aborting_us, compare);
        printf("%s_form_ms=%.2f %s_form_worst_ms=%.2f\n", name,
            (double)forming_us[GENERATIONS / 2] / 1000, name,
            (double)forming_us[GENERATIONS - 1] / 1000);
        printf("%s_abort_ms=%.2f %s_abort_worst_ms=%.2f\n", name,
            (double)aborting_us[GENERATIONS / 2] / 1000, name,
            (double)aborting_us[GENERATIONS - 1] / 1000);
        fflush(stdout);
    }
    return 0;
}

static bool measure(const char *name, uint32_t tasks_per_host)
{
    bool good = true;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    memset(board, 0, sizeof *board);
    pthread_barrier_init(&board->barrier, &attributes, TASKS);
    for (uint32_t i = 0; i < TASKS; i++) {
        char host[32];
        struct cadre_error error;
        snprintf(host, sizeof host, "127.0.0.%u", i / tasks_per_host + 1);
        members[i].replicas = 1;
        if (mesh_listener_open(host, NULL, &listeners[i], members[i].address, &error) != CADRE_OK) {
            fprintf(stderr, "mesh_form: %s\n", error.text);
            return false;
        }
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            _exit(run_task(i, name));
        }
        good = good && pid > 0;
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        int status = 0;
        good = wait(&status) > 0 && status == 0 && good;
        mesh_listener_close(listeners[i]);
    }
    return good;
}

int main(void)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        fprintf(stderr, "mesh_form: no memory\n");
        return 1;
    }
    bool good = measure("one_host", 8) && measure("two_hosts", 4);
    return good ? 0 : 1;
}
