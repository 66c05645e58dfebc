/* SPDX-License-Identifier: Apache-2.0
 * Tasks, each a process with a memory of its own, that read the same objects: all bytes are right,
 * and the store is asked for each once by all of them together; also where one of them is killed,
 * stands still, or has another state of an object. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "tests/unit/input/fake_storage.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_memory.h"
#include "worker/library/input/objects/object_neighbours.h"
#include "worker/library/neighbours/neighbours.h"

#define TASKS_MAX 5
#define OBJECTS   3
#define READS     400
#define READ_MAX  ((size_t)3 << 20)
#define WAIT_US   (60 * CADRE_US_PER_S)

static const size_t sizes[OBJECTS] = {((size_t)30 << 20) + 12345, (size_t)5 << 20, 100};
static char *contents[OBJECTS];

/* What the processes have in common. */
struct shared {
    char addresses[TASKS_MAX][LIMIT_ADDRESS_BYTES];
    atomic_uint here[4];                   /* processes that have come to a point */
    atomic_uint_fast64_t bytes[TASKS_MAX]; /* that each asked of the store */
    atomic_bool reads[TASKS_MAX];          /* it has begun to read */
};
static struct shared *shared;

static void path_of(size_t object, char path[32])
{
    snprintf(path, 32, "s3://bucket/data-%zu", object);
}

static void exit_unless(bool condition, int code)
{
    if (!condition) {
        _exit(code);
    }
}

struct meeting {
    const atomic_uint *here;
    unsigned count;
};

static bool all_here(void *user)
{
    const struct meeting *meeting = user;
    return atomic_load(meeting->here) >= meeting->count;
}

/* Until so many have come to this point; they do not wait for those that are dead. */
static void meet(size_t point, unsigned count)
{
    struct meeting meeting = {.here = &shared->here[point], .count = count};
    atomic_fetch_add(&shared->here[point], 1);
    exit_unless(test_wait(all_here, &meeting, WAIT_US), 9);
}

/* --- one task --- */

struct plan {
    unsigned tasks;
    unsigned killed;  /* these many of the last tasks die as they read */
    unsigned stopped; /* or never answer, nor read */
    bool other_state; /* the last task sees other objects */
    bool off;
};

static struct neighbours *join(const struct plan *plan, unsigned task)
{
    struct neighbours *neighbours = NULL;
    struct neighbour_member members[TASKS_MAX];
    struct cadre_error error = {0};
    uint8_t key[MESH_KEY_BYTES] = {1, 2, 3};
    const struct generation generation = {.number = 3, .nonce = 77};
    exit_unless(neighbours_open("127.0.0.1", NULL, &neighbours, shared->addresses[task], &error) ==
                    CADRE_OK,
        2);
    meet(0, plan->tasks);
    for (unsigned i = 0; i < plan->tasks; i++) {
        members[i] = (struct neighbour_member){.id = i, .address = shared->addresses[i]};
    }
    exit_unless(
        neighbours_set(neighbours, generation, key, members, plan->tasks, task, &error) == CADRE_OK,
        3);
    return neighbours;
}

static void read_here_and_there(unsigned task, const struct plan *plan)
{
    struct prng random = {.state = task};
    char *to = malloc(READ_MAX);
    struct object *objects[OBJECTS];
    struct cadre_error error = {0};
    for (size_t i = 0; i < OBJECTS; i++) {
        char path[32];
        path_of(i, path);
        exit_unless(object_open(path, &objects[i], &error) == CADRE_OK, 4);
    }
    for (size_t i = 0; i < READS; i++) {
        size_t object = (size_t)prng_uniform(&random, OBJECTS);
        size_t offset = (size_t)prng_uniform(&random, sizes[object]);
        size_t most = prng_chance(&random, 1, 10) ? READ_MAX : 3000;
        size_t left = sizes[object] - offset;
        size_t count = (size_t)prng_uniform(&random, (most < left ? most : left) + 1);
        exit_unless(object_read(objects[object], offset, to, count, &error) == CADRE_OK, 5);
        exit_unless(memcmp(to, contents[object] + offset, count) == 0, 6);
        atomic_store(&shared->reads[task], true);
        if (i == 20 && task + plan->killed >= plan->tasks) {
            raise(SIGKILL);
        }
    }
    /* And all of it. */
    for (size_t i = 0; i < OBJECTS; i++) {
        struct object_ahead ahead = {0};
        for (size_t at = 0; at < sizes[i];) {
            size_t count = sizes[i] - at < READ_MAX ? sizes[i] - at : READ_MAX;
            exit_unless(object_read_on(objects[i], &ahead, at, to, count, &error) == CADRE_OK, 7);
            exit_unless(memcmp(to, contents[i] + at, count) == 0, 8);
            at += count;
        }
        object_ahead_end(&ahead);
        object_close(objects[i]);
    }
    free(to);
}

static void run_task(const struct plan *plan, unsigned task)
{
    unsigned ending = plan->tasks - plan->killed - plan->stopped;
    if (plan->other_state && task == plan->tasks - 1) {
        for (size_t i = 0; i < OBJECTS; i++) {
            char path[32];
            path_of(i, path);
            fake_storage_set(path, contents[i], sizes[i]);
        }
    }
    object_memory_set_limit((uint64_t)64 << 20);
    struct neighbours *neighbours = plan->off ? NULL : join(plan, task);
    meet(1, plan->tasks);
    if (task >= plan->tasks - plan->stopped) {
        raise(SIGSTOP);
    }
    read_here_and_there(task, plan);
    atomic_store(&shared->bytes[task], fake_storage_counts().bytes);
    meet(2, ending);
    neighbours_close(neighbours);
    exit_unless(!object_neighbours_on(), 10);
    _exit(0);
}

/* --- all of them --- */

static uint64_t all_bytes(void)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < OBJECTS; i++) {
        bytes += sizes[i];
    }
    return bytes;
}

/* The bytes that all asked of the store together. */
static uint64_t run(const struct plan *plan)
{
    pid_t pids[TASKS_MAX];
    uint64_t bytes = 0;
    memset(shared, 0, sizeof *shared);
    for (unsigned i = 0; i < plan->tasks; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            run_task(plan, i);
        }
    }
    unsigned whole = plan->tasks - plan->killed - plan->stopped;
    for (unsigned i = 0; i < whole; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        bytes += atomic_load(&shared->bytes[i]);
    }
    for (unsigned i = whole; i < plan->tasks; i++) {
        kill(pids[i], SIGKILL);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }
    return bytes;
}

static void each_byte_once(void **state)
{
    (void)state;
    for (unsigned tasks = 1; tasks <= 4; tasks++) {
        assert_int_equal(run(&(struct plan){.tasks = tasks}), all_bytes());
    }
}

/* What the count above would be without it. */
static void each_byte_by_each(void **state)
{
    (void)state;
    assert_int_equal(run(&(struct plan){.tasks = 3, .off = true}), 3 * all_bytes());
}

/* What the dead one had is asked for by those that are left, each for itself. */
static void one_is_killed(void **state)
{
    (void)state;
    uint64_t bytes = run(&(struct plan){.tasks = 4, .killed = 1});
    assert_in_range(bytes, all_bytes() / 2, 2 * all_bytes());
}

static void one_stands_still(void **state)
{
    (void)state;
    uint64_t bytes = run(&(struct plan){.tasks = 3, .stopped = 1});
    assert_in_range(bytes, all_bytes(), 2 * all_bytes());
}

/* It reads its own, and gives nothing of it to others. */
static void one_has_another_state(void **state)
{
    (void)state;
    uint64_t bytes = run(&(struct plan){.tasks = 3, .other_state = true});
    assert_in_range(bytes, all_bytes(), 3 * all_bytes());
}

static int setup(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fake_storage_clear();
    for (size_t i = 0; i < OBJECTS; i++) {
        struct prng random = {.state = i};
        char path[32];
        path_of(i, path);
        contents[i] = malloc(sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) {
            contents[i][j] = (char)prng_next(&random);
        }
        fake_storage_set(path, contents[i], sizes[i]);
    }
    return shared == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < OBJECTS; i++) {
        free(contents[i]);
    }
    fake_storage_clear();
    munmap(shared, sizeof *shared);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_once),
        cmocka_unit_test(each_byte_by_each),
        cmocka_unit_test(one_is_killed),
        cmocka_unit_test(one_stands_still),
        cmocka_unit_test(one_has_another_state),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
