/* SPDX-License-Identifier: Apache-2.0
 * Admission to a mesh: only tasks that prove the key of this generation. Unproven connections of
 * every kind are not admitted, and keep no task out. */
#include "tests/conformance/mesh/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/lib/speed.h"

#define SHORT_US (200 * CADRE_US_PER_MS)

static const struct world_layout two = {.name = "2 tasks of 1", .replicas = {1, 1}};
static const struct world_layout three = {.name = "1 + 2 + 1", .replicas = {1, 2, 1}};

/* Polls both tasks of a world until both have a final result. */
static void poll_both(struct world *world, cadre_status status[2], struct cadre_error error[2])
{
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(WORLD_PATIENCE_US);
    status[0] = status[1] = CADRE_PENDING;
    while (status[0] == CADRE_PENDING || status[1] == CADRE_PENDING) {
        for (unsigned task = 0; task < 2; task++) {
            if (status[task] == CADRE_PENDING) {
                status[task] = world->ops->form_test(world->meshes[task], &error[task]);
            }
        }
        assert_true(clock_monotonic_us() < end_us);
    }
}

static void post_with(struct world *world, uint32_t task, const struct mesh_config *config)
{
    struct cadre_error error;
    assert_ok(world->ops->form_post(config, &world->meshes[task], &error), &error);
}

/* The next generation forms on the same listeners and works. */
static void works_again(struct world *world)
{
    world_close_meshes(world);
    world_form(world);
    world_run_ok(world, world_sum_of_ones, NULL);
    world_close(world);
}

static void test_wrong_key(void **state)
{
    (void)state;
    struct world world;
    struct cadre_error error[2];
    cadre_status status[2];
    world_open(&world, &two);
    for (uint32_t task = 0; task < 2; task++) {
        struct mesh_config config = world_config(&world, task);
        config.form_deadline_us = clock_monotonic_us() + SHORT_US;
        config.key[31] ^= (uint8_t)task;
        post_with(&world, task, &config);
    }
    poll_both(&world, status, error);
    assert_error(status[1], CADRE_UNAUTHENTICATED, &error[1], "does not hold the generation's key");
    assert_error(status[0], CADRE_DEADLINE_EXCEEDED, &error[0], "rank 1");
    assert_error(status[0], CADRE_DEADLINE_EXCEEDED, &error[0], "before it proved");
    works_again(&world);
}

/* What of task 1's configuration is not like task 0's. */
enum different { GENERATION_OLDER, GENERATION_NEWER, NONCE, ROSTER, DIFFERENCES };

static void test_another_generation(void **state)
{
    (void)state;
    for (unsigned different = 0; different < DIFFERENCES; different++) {
        struct world world;
        struct cadre_error error[2];
        cadre_status status[2];
        world_open(&world, &two);
        world.generation = 5;
        for (uint32_t task = 0; task < 2; task++) {
            struct mesh_config config = world_config(&world, task);
            struct mesh_member members[2] = {world.members[0], world.members[1]};
            config.members = members;
            config.form_deadline_us = clock_monotonic_us() + SHORT_US;
            config.generation -= different == GENERATION_OLDER ? task : 0;
            config.generation += different == GENERATION_NEWER ? task : 0;
            config.nonce ^= different == NONCE ? task : 0;
            members[1].replicas += different == ROSTER ? task : 0;
            post_with(&world, task, &config);
        }
        poll_both(&world, status, error);
        assert_error(status[0], CADRE_DEADLINE_EXCEEDED, &error[0], "rank 1");
        assert_error(status[1], CADRE_DEADLINE_EXCEEDED, &error[1], "rank 0");
        if (different == GENERATION_OLDER) {
            assert_non_null(strstr(error[0].text, "of another generation"));
        } else if (different == NONCE) { /* its mesh may be formed here later */
            assert_non_null(strstr(error[0].text, "it did not connect"));
        } else if (different == ROSTER) {
            assert_non_null(strstr(error[0].text, "another roster"));
        }
        world.generation = 6; /* the next one is newer than all of these */
        works_again(&world);
    }
}

static void test_no_task_there(void **state)
{
    (void)state;
    struct world world;
    struct cadre_error error;
    char address[MESH_ADDRESS_BYTES];
    struct mesh_listener *gone = NULL;
    world_open(&world, &three);
    /* A port that was free just before. */
    assert_ok(mesh_listener_open("127.0.0.1", NULL, &gone, address, &error), &error);
    mesh_listener_close(gone);
    struct mesh_member members[3];
    memcpy(members, world.members, sizeof members);
    memcpy(members[0].address, address, sizeof address);
    struct mesh_config config = world_config(&world, 2);
    config.members = members;
    config.form_deadline_us = clock_monotonic_us() + SHORT_US;
    post_with(&world, 2, &config);
    assert_error(world_poll(&world, 2, &error), CADRE_DEADLINE_EXCEEDED, &error,
        "2 of 3 tasks did not come in time");
    assert_error(CADRE_DEADLINE_EXCEEDED, CADRE_DEADLINE_EXCEEDED, &error, address);
    assert_error(CADRE_DEADLINE_EXCEEDED, CADRE_DEADLINE_EXCEEDED, &error, "Connection refused");
    works_again(&world);
}

static int connect_to(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *colon = strchr(address, ':');
    to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    int rc = connect(fd, (struct sockaddr *)&to, sizeof to);
    assert_true(rc == 0 || errno == EINPROGRESS);
    return fd;
}

/* Unproven connections from before, from during the forming, and that send byte by byte
 * meanwhile. */
static void test_unauthenticated_callers(void **state)
{
    (void)state;
    enum { STRANGERS = 600 };
    static int fds[STRANGERS];
    struct world world;
    struct cadre_error error;
    uint8_t garbage[4096];
    struct prng prng = {.state = 7};
    world_open(&world, &three);
    for (size_t i = 0; i < sizeof garbage; i++) {
        garbage[i] = (uint8_t)prng_next(&prng);
    }
    for (size_t i = 0; i < STRANGERS / 2; i++) {
        fds[i] = connect_to(world.members[i % 2].address);
        if (i % 3 != 0) { /* a third sends nothing at all */
            (void)!send(fds[i], garbage, i % 3 == 1 ? 10 : sizeof garbage, MSG_NOSIGNAL);
        }
    }
    world.generation++;
    for (uint32_t task = 0; task < world.task_count; task++) {
        struct mesh_config config = world_config(&world, task);
        post_with(&world, task, &config);
    }
    /* Only the lower tasks are polled at first, so they find the unproven connections only. */
    for (size_t i = STRANGERS / 2; i < STRANGERS; i++) {
        uint32_t task = (uint32_t)(i % 2);
        fds[i] = connect_to(world.members[task].address);
        (void)!send(fds[i], garbage, i % 80, MSG_NOSIGNAL);
        (void)!send(fds[i - 1], "x", 1, MSG_NOSIGNAL);
        assert_int_equal(world.ops->form_test(world.meshes[task], &error), CADRE_PENDING);
    }
    world_finish_forming(&world);
    world_run_ok(&world, world_sum_of_ones, NULL);
    for (size_t i = 0; i < STRANGERS; i++) {
        (void)!send(fds[i], garbage, 100, MSG_NOSIGNAL);
    }
    world_run_ok(&world, world_sum_of_ones, NULL);
    works_again(&world);
    for (size_t i = 0; i < STRANGERS; i++) {
        close(fds[i]);
    }
}

/* A listener in place of a task that sends nothing: no task is admitted, and the deadline's message
 * names it. */
static void test_silent_listener(void **state)
{
    (void)state;
    struct world world;
    struct cadre_error error;
    world_open(&world, &two);
    struct mesh_config config = world_config(&world, 1);
    config.form_deadline_us = clock_monotonic_us() + SHORT_US;
    post_with(&world, 1, &config);
    assert_error(world_poll(&world, 1, &error), CADRE_DEADLINE_EXCEEDED, &error,
        "accepts and does not answer");
    works_again(&world);
}

/* A listener that answers with garbage does not hold the key. */
static void test_garbage_listener(void **state)
{
    (void)state;
    struct world world;
    struct cadre_error error;
    struct mesh_member members[2];
    world_open(&world, &two);
    memcpy(members, world.members, sizeof members);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(members[0].address, sizeof members[0].address, "127.0.0.1:%u",
        (unsigned)ntohs(at.sin_port));
    struct mesh_config config = world_config(&world, 1);
    config.members = members;
    post_with(&world, 1, &config);
    assert_int_equal(world.ops->form_test(world.meshes[1], &error), CADRE_PENDING);
    int peer = accept(fd, NULL, NULL);
    static const uint8_t noise[200] = {1, 2, 3};
    assert_int_equal(send(peer, noise, sizeof noise, MSG_NOSIGNAL), sizeof noise);
    assert_error(world_poll(&world, 1, &error), CADRE_UNAUTHENTICATED, &error, "rank 0");
    close(peer);
    close(fd);
    works_again(&world);
}

static void test_listener_addresses(void **state)
{
    (void)state;
    struct mesh_listener *listener = NULL;
    struct cadre_error error;
    char address[MESH_ADDRESS_BYTES];
    assert_error(mesh_listener_open("localhost", NULL, &listener, address, &error),
        CADRE_INVALID_ARGUMENT, &error, "localhost");
    assert_null(listener);
    assert_error(mesh_listener_open("", NULL, &listener, address, &error), CADRE_INVALID_ARGUMENT,
        &error, "numeric");
    /* An address of the documentation range belongs to no host. */
    cadre_status status = mesh_listener_open("192.0.2.1", NULL, &listener, address, &error);
    assert_int_not_equal(status, CADRE_OK);
    assert_non_null(strstr(error.text, "192.0.2.1"));
    mesh_listener_close(NULL);
}

/* A listener's descriptors and those of its meshes are closed in programs that a task starts. */
static void test_descriptors_stay_here(void **state)
{
    (void)state;
    enum { LOOK_AT = 200 };
    bool inherited[LOOK_AT];
    struct world world;
    for (int fd = 0; fd < LOOK_AT; fd++) {
        inherited[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    world_open(&world, &three);
    world_form(&world);
    unsigned made = 0;
    for (int fd = 0; fd < LOOK_AT; fd++) {
        int flags = inherited[fd] ? -1 : fcntl(fd, F_GETFD);
        made += flags >= 0;
        assert_true(flags < 0 || (flags & FD_CLOEXEC) != 0);
    }
    assert_true(made > 3 * 3);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_another_generation),
        cmocka_unit_test(test_no_task_there),
        cmocka_unit_test(test_unauthenticated_callers),
        cmocka_unit_test(test_silent_listener),
        cmocka_unit_test(test_garbage_listener),
        cmocka_unit_test(test_listener_addresses),
        cmocka_unit_test(test_descriptors_stay_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
