/* SPDX-License-Identifier: Apache-2.0
 * A whole cluster in one process, for the mesh's conformance suite: several tasks, each with its
 * own listener on loopback and its own mesh, each replica a thread. */
#ifndef CADRE_TESTS_CONFORMANCE_MESH_WORLD_H
#define CADRE_TESTS_CONFORMANCE_MESH_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "tests/conformance/mesh/reference.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/mesh.h"

#define WORLD_TASKS_MAX    8
#define WORLD_REPLICAS_MAX 16
#define WORLD_PATIENCE_US  UINT64_C(20000000) /* for what must happen */

/* So many elements, or bytes, or a third of them where looking at each takes long. Large data are
 * still several chunks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WORLD_LARGE(count) ((count) / 3 | 1)
#else
#define WORLD_LARGE(count) (count)
#endif

/* How many replicas each task has; ends with a zero. And on which host it is: they are numbered
 * without a gap, in the order of their lowest ranks. */
struct world_layout {
    const char *name;
    uint32_t replicas[WORLD_TASKS_MAX + 1];
    uint32_t hosts[WORLD_TASKS_MAX];
    bool few;     /* also for peers that take only few layouts */
    bool threads; /* as the few: also under ThreadSanitizer, where each takes long */
};

extern const struct world_layout world_layouts[];
extern const size_t world_layout_count;

struct world;

/* The peer that the suite is linked with. */
struct world_peer {
    const struct mesh_ops *ops;
    /* Sums and products of floats are not in the canonical order: they are compared with a
     * tolerance, as world_same has it. */
    bool loose;
    bool few; /* only some layouts, and rounds: what differs by them is not its own */
    /* After each world_form; may be NULL. */
    void (*formed)(struct world *world);
};
extern const struct world_peer world_peer;

struct world {
    const struct mesh_ops *ops;
    const struct world_layout *layout;
    uint32_t task_count;
    uint32_t replica_count;
    struct reference_seats seats;
    struct mesh_listener *listeners[WORLD_TASKS_MAX];
    struct mesh_member members[WORLD_TASKS_MAX];
    struct mesh *meshes[WORLD_TASKS_MAX];
    uint64_t generation;
    uint64_t timeout_us; /* of collectives; set before world_form */
    /* Of the configurations; set before world_form; NULL. */
    void (*stalled)(void *user, uint32_t rank, uint64_t waited_us);
    void *stalled_users[WORLD_TASKS_MAX];
    uint8_t key[MESH_KEY_BYTES];
    atomic_uint counter; /* for the bodies; zero at the start of each run */
    pthread_mutex_t lock;
    char failure[CADRE_ERROR_TEXT_BYTES]; /* the first failed check of a run */
};

/* One replica's thread during a run. */
struct seat {
    struct world *world;
    struct mesh *mesh;
    const struct mesh_ops *ops;
    uint32_t task;
    uint32_t local;
    uint32_t global;
    const void *data;
    cadre_status status; /* what the body returned */
    struct cadre_error error;
};

typedef cadre_status world_body(struct seat *seat);

/* Listeners and roster; no mesh yet. */
void world_open(struct world *world, const struct world_layout *layout);
/* The configuration of one task of generation world->generation. */
struct mesh_config world_config(const struct world *world, uint32_t task);
/* Forms the next generation in all tasks, or fails the test. */
void world_form(struct world *world);
/* Polls the meshes that are posted until all have formed, or fails the test. */
void world_finish_forming(struct world *world);
/* Polls one mesh until it forms or fails; returns the final result. */
cadre_status world_poll(struct world *world, uint32_t task, struct cadre_error *error);
void world_close_meshes(struct world *world);
/* Everything; also fails the test when a check of the last run failed. */
void world_close(struct world *world);

/* Runs `body` on every replica at once; seats[] (by global replica) get the outcome. While the
 * threads run, `meanwhile` (may be NULL) runs on the caller's. Fails the test when a check in a
 * body failed. */
void world_run(struct world *world, world_body *body, const void *data, struct seat *seats,
    void (*meanwhile)(struct world *world));
/* The same; every body must return OK. */
void world_run_ok(struct world *world, world_body *body, const void *data);

/* Whether a result equals the reference: the same bits; or, of a loose peer's sums and products of
 * floats, within two units in the last digit for each replica, of the result or of an input's size
 * if that is more. */
bool world_same(const struct world *world, enum mesh_op op, enum mesh_dtype dtype, const void *got,
    const void *wanted);

/* A body: a small all-reduce whose result must be the number of replicas when it succeeds. */
cadre_status world_sum_of_ones(struct seat *seat);

/* Inside a body: cmocka's own asserts work on the main thread only. */
#define SEAT_CHECK(seat, condition)                                                                \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return seat_fail((seat), #condition, __FILE__, __LINE__);                              \
        }                                                                                          \
    } while (0)
cadre_status seat_fail(struct seat *seat, const char *condition, const char *file, int line);

/* How many rounds are made: so many, or a quarter of them by a peer that takes few. */
unsigned world_rounds(unsigned count);

/* Runs `test` once for each layout. */
void world_each(void (*test)(struct world *world), bool several_tasks_only);

#endif
