/* SPDX-License-Identifier: Apache-2.0
 * Generation after generation: nothing is left of those that are over, whether they were closed in
 * order, aborted, or lost a process; and the tasks that are left receive that at once. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/rounds.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/mesh.h"

#define TASKS           5
#define REFORMS         TEST_ROUNDS(1000)
#define WARM            200 /* until the allocator has what it keeps */
#define WAIT_TIMEOUT_US (20 * CADRE_US_PER_S)

/* Two hosts, of three tasks and of two. */
static const char *const hosts[TASKS] = {
    "127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2", "127.0.0.1"};

#ifdef __SANITIZE_ADDRESS__
/* Freed memory is kept for a while, mapping by mapping: here that would be counted as a
 * leftover. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}
#endif

static struct mesh_listener *listeners[TASKS];
static struct mesh_member members[TASKS];

static bool listen_at(const char *const addresses[TASKS])
{
    struct cadre_error error;
    bool good = true;
    for (int i = 0; i < TASKS; i++) {
        members[i].replicas = 1;
        good = mesh_listener_open(addresses[i], NULL, &listeners[i], members[i].address, &error) ==
                   CADRE_OK &&
               good;
    }
    return good;
}

static int open_listeners(void **state)
{
    (void)state;
    return listen_at(hosts) ? 0 : -1;
}

static int close_listeners(void **state)
{
    (void)state;
    for (int i = 0; i < TASKS; i++) {
        mesh_listener_close(listeners[i]);
    }
    return 0;
}

static struct mesh *post(uint64_t generation, uint32_t rank, uint32_t count)
{
    struct mesh_config config = {.generation = generation,
        .nonce = generation * 7,
        .rank = rank,
        .members = members,
        .member_count = count,
        .listener = listeners[rank],
        .form_deadline_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US)};
    struct mesh *mesh;
    struct cadre_error error;
    memset(config.key, 3, sizeof config.key);
    assert_ok(mesh_host_ops.form_post(&config, &mesh, &error), &error);
    return mesh;
}

static cadre_status finish_one(struct mesh *mesh, struct cadre_error *error)
{
    cadre_status status;
    while ((status = mesh->ops->form_test(mesh, error)) == CADRE_PENDING) {
        struct pollfd ready = {.fd = mesh->ops->form_fd(mesh), .events = POLLIN};
        poll(&ready, 1, 1000);
    }
    return status;
}

/* One task's thread: its forming, one sum, and how that ended. */
struct seat {
    struct mesh *mesh;
    pthread_t thread;
    cadre_status formed;
    cadre_status status;
    int64_t sum;
    struct cadre_error error;
};

static void *form_and_add(void *user)
{
    struct seat *seat = user;
    seat->sum = 1;
    struct mesh_buffer buffer = {.data = &seat->sum, .bytes = sizeof seat->sum, .dtype = MESH_I64};
    seat->formed = finish_one(seat->mesh, &seat->error);
    if (seat->formed == CADRE_OK) {
        seat->status =
            seat->mesh->ops->all_reduce(seat->mesh, 0, MESH_SUM, &buffer, 1, NULL, &seat->error);
    }
    return NULL;
}

static void start(struct seat *seat, struct mesh *mesh)
{
    *seat = (struct seat){.mesh = mesh};
    assert_int_equal(pthread_create(&seat->thread, NULL, form_and_add, seat), 0);
}

/* A generation in which all add up; then it is closed, or (`abort`) ended by one of them while the
 * others are in a collective. */
static void live(uint64_t generation, bool abort)
{
    struct seat seats[TASKS];
    struct mesh *meshes[TASKS];
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        meshes[rank] = post(generation, rank, TASKS);
    }
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        start(&seats[rank], meshes[rank]);
    }
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        pthread_join(seats[rank].thread, NULL);
        assert_ok(seats[rank].formed, &seats[rank].error);
        assert_ok(seats[rank].status, &seats[rank].error);
        assert_int_equal(seats[rank].sum, TASKS);
    }
    if (abort) {
        uint32_t who = (uint32_t)(generation % TASKS);
        for (uint32_t rank = 0; rank < TASKS; rank++) {
            if (rank != who) {
                start(&seats[rank], meshes[rank]);
            }
        }
        meshes[who]->ops->abort(meshes[who], "enough of this");
        for (uint32_t rank = 0; rank < TASKS; rank++) {
            if (rank != who) {
                pthread_join(seats[rank].thread, NULL);
                bool formed = seats[rank].formed == CADRE_OK;
                assert_error(formed ? seats[rank].status : seats[rank].formed, CADRE_ABORTED,
                    &seats[rank].error, "enough of this");
            }
        }
    }
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        meshes[rank]->ops->close(meshes[rank]);
    }
}

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

struct leftovers {
    int descriptors;
    int threads;
    int shared_maps; /* of memory files */
    int maps;
};

static struct leftovers look(void)
{
    struct leftovers found = {
        .descriptors = count_entries("/proc/self/fd"), .threads = count_entries("/proc/self/task")};
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        found.maps++;
        found.shared_maps += strstr(line, "memfd:") != NULL ? 1 : 0;
    }
    fclose(maps);
    return found;
}

static struct leftovers before;

/* A joined thread stays in the list for a short time. */
static bool nothing_left(void *data)
{
    (void)data;
    struct leftovers now = look();
    return now.descriptors == before.descriptors && now.threads == before.threads &&
           now.shared_maps == before.shared_maps;
}

static void nothing_is_left_of_a_thousand_generations(void **state)
{
    (void)state;
    for (uint64_t generation = 100; generation <= 100 + WARM + REFORMS; generation++) {
        live(generation, generation % 3 == 0);
        if (generation == 100 + WARM) {
            before = look();
        }
    }
    struct leftovers now = look();
    if (!test_wait(nothing_left, NULL, WAIT_TIMEOUT_US)) {
        fail_msg("descriptors %d -> %d, threads %d -> %d, shared mappings %d -> %d",
            before.descriptors, now.descriptors, before.threads, now.threads, before.shared_maps,
            now.shared_maps);
    }
    /* The allocator may take some more, not one a generation. */
    if (now.maps >= before.maps + REFORMS / 2) {
        fail_msg("mappings %d -> %d", before.maps, now.maps);
    }
}

/* --- a process that is killed --- */

/* The child forms as `rank` and then only is there. */
static pid_t fork_task(uint64_t generation, uint32_t rank, uint32_t count)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct cadre_error error;
        struct mesh *mesh = post(generation, rank, count);
        if (finish_one(mesh, &error) != CADRE_OK) {
            _exit(1);
        }
        while (true) {
            pause();
        }
    }
    return pid;
}

static bool has_ended(void *data)
{
    struct mesh *mesh = data;
    struct cadre_error error;
    return mesh->ops->form_test(mesh, &error) != CADRE_OK;
}

/* A task of the own host, or of another one, dies: a task in a collective and one that is not both
 * receive that, with its rank. */
static void kill_one(uint64_t generation, uint32_t victim, uint32_t count)
{
    struct mesh *meshes[TASKS];
    struct cadre_error error;
    struct seat waiter;
    char who[32];
    pid_t pid = fork_task(generation, victim, count);
    for (uint32_t rank = 0; rank < count; rank++) {
        meshes[rank] = rank != victim ? post(generation, rank, count) : NULL;
    }
    bool formed = false;
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US);
    while (!formed && clock_monotonic_us() < end_us) {
        formed = true;
        for (uint32_t rank = 0; rank < count; rank++) {
            if (rank != victim) {
                formed = mesh_host_ops.form_test(meshes[rank], &error) == CADRE_OK && formed;
            }
        }
    }
    assert_true(formed);
    uint32_t idle = victim == 0 ? 1 : 0;
    uint32_t busy = victim == 2 ? 1 : 2;
    start(&waiter, meshes[busy]);
    uint64_t killed_us = clock_monotonic_us();
    assert_int_equal(kill(pid, SIGKILL), 0);
    pthread_join(waiter.thread, NULL);
    uint64_t waited_us = clock_monotonic_us() - killed_us;
    assert_true(waited_us < speed_scaled_us(CADRE_US_PER_S));
    snprintf(who, sizeof who, "rank %u closed", victim);
    bool itself = waiter.formed == CADRE_OK;
    assert_error(itself ? waiter.status : waiter.formed, CADRE_ABORTED, &waiter.error, who);
    assert_true(test_wait(has_ended, meshes[idle], CADRE_US_PER_S));
    assert_error(meshes[idle]->ops->form_test(meshes[idle], &error), CADRE_ABORTED, &error, who);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (uint32_t rank = 0; rank < count; rank++) {
        mesh_host_ops.close(meshes[rank]);
    }
}

static void a_killed_process_is_noticed(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < TASKS; victim++) {
        kill_one(1 + victim, victim, TASKS);
    }
}

/* One host by IPv6, one by IPv4. Where this machine has no IPv6 there is nothing to test. */
static int open_both_families(void **state)
{
    (void)state;
    static const char *const addresses[TASKS] = {"::1", "127.0.0.1", "::1", "127.0.0.1", "::1"};
    (void)listen_at(addresses);
    return 0;
}

static void both_families_meet(void **state)
{
    (void)state;
    if (listeners[0] == NULL) {
        skip();
    }
    assert_non_null(strstr(members[0].address, "[::1]:"));
    live(1, false);
    live(2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_families_meet, open_both_families, close_listeners),
        cmocka_unit_test_setup_teardown(
            a_killed_process_is_noticed, open_listeners, close_listeners),
        cmocka_unit_test_setup_teardown(
            nothing_is_left_of_a_thousand_generations, open_listeners, close_listeners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
