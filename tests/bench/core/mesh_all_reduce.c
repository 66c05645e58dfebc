/* SPDX-License-Identifier: Apache-2.0
 * The host mesh's all-reduce of as many bytes as digits has of gradients, over two replicas:
 * threads of one task, and two tasks over TCP (here two meshes of one process). Beside it the
 * floor: one thread that adds two such arrays and copies the sum to the second.
 *
 *     bench_mesh_all_reduce [TIMES] */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/library/mesh/mesh.h"

#define ELEMENTS 85002 /* of float: 340 KB */
#define BYTES    ((size_t)ELEMENTS * sizeof(float))

static int times = 2000;
static int warm = 200;

struct seat {
    struct mesh *mesh;
    uint32_t local;
    float *values;
    uint64_t took_us;
    bool failed;
};

static void *reduce(void *user)
{
    struct seat *seat = user;
    struct mesh_buffer buffer = {.data = seat->values, .bytes = BYTES, .dtype = MESH_F32};
    struct cadre_error error;
    uint64_t began_us = 0;
    for (int i = 0; i < warm + times && !seat->failed; i++) {
        began_us = i == warm ? clock_monotonic_us() : began_us;
        seat->failed = seat->mesh->ops->all_reduce(
                           seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &error) != CADRE_OK;
    }
    seat->took_us = clock_monotonic_us() - began_us;
    if (seat->failed) {
        fprintf(stderr, "mesh_all_reduce: %s\n", error.text);
    }
    return NULL;
}

/* Zeros stay finite however often they are summed; the time does not depend on the values. */
static float *new_values(void)
{
    float *values = malloc(BYTES);
    if (values == NULL) {
        fprintf(stderr, "mesh_all_reduce: no memory\n");
        exit(1);
    }
    memset(values, 0, BYTES);
    return values;
}

static bool measure(struct mesh *first, struct mesh *second, const char *name)
{
    struct seat seats[2] = {{.mesh = first, .values = new_values()},
        {.mesh = second, .local = first == second, .values = new_values()}};
    pthread_t thread;
    pthread_create(&thread, NULL, reduce, &seats[1]);
    reduce(&seats[0]);
    pthread_join(thread, NULL);
    printf("%s=%.2f\n", name, (double)seats[0].took_us / times);
    free(seats[0].values);
    free(seats[1].values);
    return !seats[0].failed && !seats[1].failed;
}

/* Both meshes at once, because forming needs the other side. */
static bool form(struct mesh **meshes, int count)
{
    struct cadre_error error;
    cadre_status states[2] = {CADRE_PENDING, count == 2 ? CADRE_PENDING : CADRE_OK};
    while (states[0] == CADRE_PENDING || states[1] == CADRE_PENDING) {
        for (int i = 0; i < count; i++) {
            if (states[i] == CADRE_PENDING) {
                states[i] = meshes[i]->ops->form_test(meshes[i], &error);
            }
        }
        poll(NULL, 0, 1);
    }
    if (states[0] != CADRE_OK || states[1] != CADRE_OK) {
        fprintf(stderr, "mesh_all_reduce: %s\n", error.text);
        return false;
    }
    return true;
}

static bool in_threads(void)
{
    struct mesh_member member = {.replicas = 2};
    struct mesh_config config = {
        .generation = 1, .nonce = 1, .members = &member, .member_count = 1};
    struct mesh *mesh = NULL;
    struct cadre_error error;
    config.form_deadline_us = clock_monotonic_us() + 10000000;
    bool done = mesh_host_ops.form_post(&config, &mesh, &error) == CADRE_OK && form(&mesh, 1) &&
                measure(mesh, mesh, "threads_us");
    mesh_host_ops.close(mesh);
    return done;
}

static bool over_tcp(void)
{
    struct mesh_listener *listeners[2] = {NULL, NULL};
    struct mesh_member members[2] = {{.replicas = 1}, {.replicas = 1}};
    struct mesh *meshes[2] = {NULL, NULL};
    struct cadre_error error;
    bool done = true;
    for (int i = 0; i < 2 && done; i++) {
        done = mesh_listener_open("127.0.0.1", NULL, &listeners[i], members[i].address, &error) ==
               CADRE_OK;
    }
    for (uint32_t i = 0; i < 2 && done; i++) {
        struct mesh_config config = {.generation = 1,
            .nonce = 1,
            .rank = i,
            .members = members,
            .member_count = 2,
            .key = {1},
            .listener = listeners[i],
            .form_deadline_us = clock_monotonic_us() + 10000000};
        done = mesh_host_ops.form_post(&config, &meshes[i], &error) == CADRE_OK;
    }
    done = done && form(meshes, 2) && measure(meshes[0], meshes[1], "tcp_us");
    for (int i = 0; i < 2; i++) {
        mesh_host_ops.close(meshes[i]);
        mesh_listener_close(listeners[i]);
    }
    return done;
}

static void add_and_copy(void)
{
    float *to = new_values();
    float *from = new_values();
    uint64_t began_us = 0;
    for (int i = 0; i < warm + times; i++) {
        began_us = i == warm ? clock_monotonic_us() : began_us;
        for (int element = 0; element < ELEMENTS; element++) {
            to[element] += from[element];
        }
        memcpy(from, to, BYTES);
        __asm__ volatile("" ::: "memory"); /* nothing is taken out of the loop */
    }
    printf("floor_us=%.2f\n", (double)(clock_monotonic_us() - began_us) / times);
    free(to);
    free(from);
}

int main(int argc, char **argv)
{
    const long asked = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (asked > 0 && asked <= times) {
        times = (int)asked;
        warm = times / 10;
    }
    add_and_copy();
    return in_threads() && over_tcp() ? 0 : 1;
}
