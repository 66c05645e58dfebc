/* SPDX-License-Identifier: Apache-2.0
 * Attaching to another task's memory: what may be written and when, and a mesh in which each of the
 * system calls fails once. Whatever fails, the sum has the same bits, or there is an error. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "tests/unit/mesh/formed.h"
#include "worker/library/mesh/wire/host.h"

#define TASKS      3
#define FORM_US    (20 * CADRE_US_PER_S)
#define BUFFERS    300 /* more than one post has room for */
#define ELEMENTS   3701
#define ALL_BYTES  (BUFFERS * ELEMENTS * sizeof(float))
#define PAGE_BYTES ((size_t)4096)

/* --- the calls, on the own process and on a child --- */

static struct attach_peer self_of(const struct attach_sentinel *sentinel)
{
    return (struct attach_peer){
        .pid = getpid(), .sentinel = (uintptr_t)sentinel->page, .value = sentinel->value};
}

/* Writes a word; whether it could. */
static bool write_word(const struct attach_peer *peer, uint64_t *into, uint64_t word)
{
    struct attach_list from;
    struct attach_list to;
    mesh_attach_clear(&from);
    mesh_attach_clear(&to);
    mesh_attach_add(&from, (uintptr_t)&word, sizeof word);
    mesh_attach_add(&to, (uintptr_t)into, sizeof word);
    return mesh_attach_write(peer, &to, &from);
}

static void writes_begin_with_the_sentinel(void **state)
{
    (void)state;
    struct attach_sentinel sentinel;
    uint64_t word = 1;
    mesh_attach_open(&sentinel);
    struct attach_peer peer = self_of(&sentinel);
    assert_true(mesh_attach_probe(&peer));
    assert_true(write_word(&peer, &word, 2));
    assert_int_equal(word, 2);
    assert_int_equal(*(uint64_t *)sentinel.page, sentinel.value);

    mesh_attach_revoke(&sentinel);
    assert_false(write_word(&peer, &word, 3));
    mesh_attach_revoke(&sentinel);
    mesh_attach_close(&sentinel);
    assert_false(write_word(&peer, &word, 4));
    assert_false(mesh_attach_probe(&peer));
    assert_int_equal(word, 2);
}

static void another_content_is_another_task(void **state)
{
    (void)state;
    struct attach_sentinel sentinel;
    mesh_attach_open(&sentinel);
    struct attach_peer peer = self_of(&sentinel);
    peer.value++;
    assert_false(mesh_attach_probe(&peer));
    peer = self_of(&sentinel);
    peer.pid = 0;
    assert_false(mesh_attach_probe(&peer));
    mesh_attach_close(&sentinel);
}

/* A process that is not the one meant has no page there: a child, here, at the same addresses. */
static void a_process_without_the_sentinel_is_not_written_to(void **state)
{
    (void)state;
    struct attach_sentinel sentinel;
    static uint64_t word = 5;
    int ends[2];
    mesh_attach_open(&sentinel);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        (void)!read(ends[0], &byte, 1); /* until the other end closes */
        _exit(word == 5 ? 0 : 1);
    }
    close(ends[0]);
    struct attach_peer peer = self_of(&sentinel);
    peer.pid = child;
    assert_false(mesh_attach_probe(&peer));
    assert_false(write_word(&peer, &word, 6));
    close(ends[1]);
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(write_word(&peer, &word, 6)); /* it has ended */
    mesh_attach_close(&sentinel);
}

static void a_read_in_part_is_none(void **state)
{
    (void)state;
    struct attach_sentinel sentinel;
    static uint8_t into[2 * PAGE_BYTES];
    mesh_attach_open(&sentinel);
    struct attach_peer peer = self_of(&sentinel);
    uint8_t *pages =
        mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    memset(pages, 7, 2 * PAGE_BYTES);
    struct attach_list list;
    mesh_attach_clear(&list);
    mesh_attach_add(&list, (uintptr_t)pages + 100, 50);
    mesh_attach_add(&list, (uintptr_t)pages + PAGE_BYTES - 8, 16);
    assert_true(mesh_attach_read(&peer, &list, into));
    assert_int_equal(into[65], 7);
    assert_int_equal(into[66], 0);
    assert_int_equal(mprotect(pages + PAGE_BYTES, PAGE_BYTES, PROT_NONE), 0);
    assert_false(mesh_attach_read(&peer, &list, into));
    munmap(pages, 2 * PAGE_BYTES);
    mesh_attach_close(&sentinel);
}

/* --- a mesh --- */

static struct {
    struct mesh_listener *listeners[TASKS];
    struct mesh_member members[TASKS];
    struct mesh *meshes[TASKS];
    uint64_t generation;
    float *memory[TASKS];
    float *wanted; /* what was reduced before anything failed */
} world;

static void form(void)
{
    struct cadre_error error;
    world.generation++;
    for (uint32_t i = 0; i < TASKS; i++) {
        struct mesh_config config = {.generation = world.generation,
            .rank = i,
            .members = world.members,
            .member_count = TASKS,
            .listener = world.listeners[i],
            .form_deadline_us = clock_monotonic_us() + speed_scaled_us(FORM_US)};
        assert_ok(mesh_host_ops.form_post(&config, &world.meshes[i], &error), &error);
    }
    await_formed(world.meshes, TASKS);
}

struct caller {
    uint32_t task;
    cadre_status status;
    struct cadre_error error;
};

static void *reduce(void *argument)
{
    struct caller *caller = argument;
    struct mesh_buffer buffers[BUFFERS];
    for (size_t i = 0; i < BUFFERS; i++) {
        buffers[i] = (struct mesh_buffer){.data = world.memory[caller->task] + i * ELEMENTS,
            .bytes = ELEMENTS * sizeof(float),
            .dtype = MESH_F32};
    }
    caller->status = mesh_host_ops.all_reduce(
        world.meshes[caller->task], 0, MESH_SUM, buffers, BUFFERS, NULL, &caller->error);
    return NULL;
}

/* One all-reduce in a new mesh, and how it ended, alike in all tasks. */
static struct caller reduce_once(void)
{
    struct caller callers[TASKS];
    pthread_t threads[TASKS];
    struct prng prng = {.state = 9};
    for (uint32_t task = 0; task < TASKS; task++) {
        for (size_t i = 0; i < BUFFERS * ELEMENTS; i++) {
            world.memory[task][i] = (float)(prng_next(&prng) >> 20) / (float)(i % 91 + 1);
        }
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        callers[i] = (struct caller){.task = i};
        assert_int_equal(pthread_create(&threads[i], NULL, reduce, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        pthread_join(threads[i], NULL);
        assert_true((callers[i].status == CADRE_OK) == (callers[0].status == CADRE_OK));
        if (callers[i].status == CADRE_OK) {
            assert_memory_equal(world.memory[i], world.wanted, ALL_BYTES);
        }
    }
    return callers[0];
}

static void leave(void)
{
    for (uint32_t i = 0; i < TASKS; i++) {
        mesh_host_ops.close(world.meshes[i]);
    }
}

static bool attachable(uint32_t task)
{
    return ((const struct host_mesh *)world.meshes[task])->attachable;
}

/* Every call of `name` fails once, one in each round. `part`: of the error that follows; NULL: none
 * does. */
static void fail_each(const char *name, const char *part)
{
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        fault_arm(name, nth);
        form();
        struct caller caller = reduce_once();
        met = fault_disarm();
        assert_true(met || nth > TASKS);
        if (met && part != NULL) {
            assert_error(caller.status, CADRE_ABORTED, &caller.error, part);
        } else {
            assert_ok(caller.status, &caller.error);
        }
        leave();
    }
}

static void a_mesh_that_cannot_attach_stages(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= TASKS; nth++) {
        struct caller caller;
        fault_arm("mesh.attach_open", nth);
        form();
        assert_true(fault_disarm());
        assert_false(attachable(0) || attachable(1) || attachable(2));
        caller = reduce_once();
        assert_ok(caller.status, &caller.error);
        leave();
    }
    fail_each("mesh.attach_probe", NULL);
}

static void what_cannot_be_read_is_staged(void **state)
{
    (void)state;
    fail_each("mesh.attach_read", NULL);
}

static void what_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    fail_each("mesh.attach_write", "could not write the result of collective 1");
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error;
    world.wanted = calloc(1, ALL_BYTES);
    for (uint32_t i = 0; i < TASKS; i++) {
        world.members[i].replicas = 1;
        world.memory[i] = malloc(ALL_BYTES);
        if (world.memory[i] == NULL || world.wanted == NULL ||
            mesh_listener_open("127.0.0.1", NULL, &world.listeners[i], world.members[i].address,
                &error) != CADRE_OK) {
            return 1;
        }
    }
    /* What is staged is the measure. */
    fault_arm("mesh.attach_open", 1);
    form();
    (void)fault_disarm();
    float *wanted = world.wanted;
    world.wanted = world.memory[0];
    (void)reduce_once();
    memcpy(wanted, world.memory[0], ALL_BYTES);
    world.wanted = wanted;
    leave();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TASKS; i++) {
        mesh_listener_close(world.listeners[i]);
        free(world.memory[i]);
    }
    free(world.wanted);
    return 0;
}

int main(void)
{
    struct attach_sentinel sentinel;
    mesh_attach_open(&sentinel);
    struct attach_peer peer = self_of(&sentinel);
    if (!mesh_attach_probe(&peer)) {
        test_skip("this system has no process_vm_readv, or forbids it");
    }
    mesh_attach_close(&sentinel);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_begin_with_the_sentinel),
        cmocka_unit_test(another_content_is_another_task),
        cmocka_unit_test(a_process_without_the_sentinel_is_not_written_to),
        cmocka_unit_test(a_read_in_part_is_none),
        cmocka_unit_test(a_mesh_that_cannot_attach_stages),
        cmocka_unit_test(what_cannot_be_read_is_staged),
        cmocka_unit_test(what_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
