/* SPDX-License-Identifier: Apache-2.0
 * The host mesh as a subject. KIND is where its ranks are and in what memory their tensors are:
 *   arena       tasks of one host, tensors in their arenas
 *   private     tasks of one host, tensors in private memory, which others cannot reach
 *   hosts       tasks of as many hosts (addresses of this machine): TCP only
 *   two_hosts   tasks of two hosts, tensors in arenas
 *   threads     replicas of one task, private memory */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "harness.h"
#include "worker/library/arena/arena.h"
#include "worker/library/mesh/mesh.h"

#define RANKS_MAX 16
#define FORM_US   (20 * CADRE_US_PER_S)

struct place {
    struct mesh *mesh;
    uint32_t local;
    uint32_t ranks;
    char text[MESH_NOTE_BYTES];
};

static const char *kind;
static struct mesh_listener *listeners[RANKS_MAX];
static struct mesh_member members[RANKS_MAX];
static struct mesh *shared; /* of threads */

static bool tell(const char *what, const struct cadre_error *error)
{
    fprintf(stderr, "bench_cadre_collectives: %s: %s\n", what, error->text);
    return false;
}

static bool uses_arena(void)
{
    return strcmp(kind, "arena") == 0 || strcmp(kind, "two_hosts") == 0;
}

static struct mesh *form(uint32_t rank, uint32_t count)
{
    struct mesh_config config = {.generation = 1,
        .nonce = 1,
        .rank = rank,
        .members = members,
        .member_count = count,
        .key = {1},
        .listener = listeners[rank],
        .form_deadline_us = clock_monotonic_us() + FORM_US};
    struct mesh *mesh = NULL;
    struct cadre_error error = {0};
    cadre_status status = mesh_host_ops.form_post(&config, &mesh, &error);
    while (status == CADRE_OK || status == CADRE_PENDING) {
        status = mesh->ops->form_test(mesh, &error);
        if (status == CADRE_OK) {
            return mesh;
        }
        struct pollfd ready = {.fd = mesh->ops->form_fd(mesh), .events = POLLIN};
        poll(&ready, 1, 100);
    }
    tell("forming", &error);
    mesh_host_ops.close(mesh);
    return NULL;
}

static bool open_listeners(int ranks)
{
    int hosts = strcmp(kind, "hosts") == 0 ? ranks : strcmp(kind, "two_hosts") == 0 ? 2 : 1;
    for (int i = 0; i < ranks; i++) {
        char host[32];
        struct cadre_error error;
        snprintf(host, sizeof host, "127.0.0.%d", i * hosts / ranks + 1);
        members[i].replicas = 1;
        if (mesh_listener_open(host, NULL, &listeners[i], members[i].address, &error) != CADRE_OK) {
            return tell("listening", &error);
        }
    }
    return true;
}

static bool open_threads(int ranks)
{
    members[0].replicas = (uint32_t)ranks;
    shared = form(0, 1);
    return shared != NULL;
}

static void *join(int rank, int ranks)
{
    struct place *place = calloc(1, sizeof *place);
    struct cadre_error error;
    if (place == NULL) {
        return NULL;
    }
    if (uses_arena() && arena_open(&error) != CADRE_OK) {
        tell("the arena", &error);
        return NULL;
    }
    place->mesh = shared != NULL ? shared : form((uint32_t)rank, (uint32_t)ranks);
    place->local = shared != NULL ? (uint32_t)rank : 0;
    place->ranks = (uint32_t)ranks;
    snprintf(place->text, sizeof place->text, "replica %d is measured", rank);
    return place->mesh != NULL ? place : NULL;
}

static float *get(size_t bytes)
{
    return arena_get(bytes);
}

static void give(float *memory, size_t bytes)
{
    arena_give(memory, bytes);
}

static bool run(void *self, const struct bench_call *call)
{
    const struct place *place = self;
    const struct mesh_ops *ops = place->mesh->ops;
    const struct mesh_note note = {.key = 1, .text = place->text};
    struct mesh_buffer buffer = {
        .data = call->in, .bytes = call->count * sizeof(float), .dtype = MESH_F32};
    struct cadre_error error;
    cadre_status status = CADRE_INTERNAL;
    switch (call->operation) {
    case BENCH_ALL_REDUCE:
    case BENCH_FRESH:
        status = ops->all_reduce(place->mesh, place->local, MESH_SUM, &buffer, 1, &note, &error);
        break;
    case BENCH_REDUCE_SCATTER:
        buffer.data = call->out;
        buffer.from = call->in;
        buffer.bytes /= place->ranks;
        status = ops->reduce_scatter(place->mesh, place->local, MESH_SUM, &buffer, &note, &error);
        break;
    case BENCH_BROADCAST:
        status = ops->broadcast(
            place->mesh, place->local, (uint32_t)call->root, &buffer, 1, &note, &error);
        break;
    case BENCH_ALL_GATHER:
        status = ops->all_gather(place->mesh, place->local, call->in, buffer.bytes / place->ranks,
            NULL, call->out, &note, &error);
        break;
    case BENCH_BARRIER:
        status = ops->barrier(place->mesh, place->local, &note, &error);
        break;
    }
    return status == CADRE_OK || tell("a collective", &error);
}

static void leave(void *self)
{
    struct place *place = self;
    if (shared == NULL) {
        mesh_host_ops.close(place->mesh);
    }
    free(place);
}

static void close_all(void)
{
    mesh_host_ops.close(shared);
    for (int i = 0; i < RANKS_MAX; i++) {
        mesh_listener_close(listeners[i]);
    }
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"arena", "private", "hosts", "two_hosts", "threads"};
    struct bench_plan plan;
    for (size_t i = 0; argc > 1 && i < CADRE_COUNT_OF(kinds); i++) {
        kind = strcmp(argv[1], kinds[i]) == 0 ? kinds[i] : kind;
    }
    if (kind == NULL) {
        fprintf(
            stderr, "usage: bench_cadre_collectives arena|private|hosts|two_hosts|threads ...\n");
        return 2;
    }
    if (!bench_parse(argv + 2, &plan)) {
        return 2;
    }
    /* Pinned, both lead tasks would share a CPU. */
    plan.pinned = strcmp(kind, "two_hosts") != 0;
    bool threads = strcmp(kind, "threads") == 0;
    struct bench_subject subject = {.threads = threads,
        .open = threads ? open_threads : open_listeners,
        .join = join,
        .get = uses_arena() ? get : NULL,
        .give = uses_arena() ? give : NULL,
        .run = run,
        .leave = leave,
        .close = close_all};
    return bench_run(&plan, &subject);
}
