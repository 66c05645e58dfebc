/* SPDX-License-Identifier: Apache-2.0
 * A client in a program that has a loop of its own: poll(2) on one descriptor. */
#include "stub.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/client.h"
#include "common/base/clock.h"

#define PATIENCE_MS 20000

/* A run may find that what woke it was gRPC's own; more than this many for one call is a loop. */
#define RUNS_MAX 200

struct world {
    struct stub stub;
    cadre_client *client;
    int fd;
    int done;
    int ended;
    int outages;
    cadre_status status;
    bool woken;
};

static void on_outage(bool away, void *user)
{
    struct world *world = user;
    (void)away;
    world->outages++;
}

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    stub_open(&world->stub, NULL);
    const cadre_client_options options = {
        .address = world->stub.address, .on_outage = on_outage, .user = world};
    assert_int_equal(cadre_client_connect(&options, &world->client), CADRE_OK);
    assert_int_equal(cadre_client_fd(world->client, &world->fd), CADRE_OK);
    int again = -1;
    assert_int_equal(cadre_client_fd(world->client, &again), CADRE_OK);
    assert_int_equal(again, world->fd);
    *state = world;
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    cadre_client_release(world->client);
    stub_close(&world->stub);
    free(world);
    return 0;
}

static void on_done(cadre_status status, const char *message, void *user)
{
    struct world *world = user;
    (void)message;
    world->status = status;
    world->done++;
}

static bool on_job(const cadre_job *job, void *user)
{
    struct world *world = user;
    (void)job;
    world->ended++;
    return true;
}

/* The whole of such a program. */
static void poll_until_done(struct world *world, int wanted)
{
    int runs = 0;
    while (world->done < wanted) {
        struct pollfd ready = {.fd = world->fd, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
        cadre_status status = cadre_client_run(world->client, 0);
        assert_true(status == CADRE_OK || status == CADRE_DEADLINE_EXCEEDED);
        assert_true(++runs < RUNS_MAX * wanted);
    }
}

/* With nothing in progress the descriptor falls silent. */
static bool is_silent(void *user)
{
    struct world *world = user;
    struct pollfd ready = {.fd = world->fd, .events = POLLIN};
    (void)cadre_client_run(world->client, 0);
    return poll(&ready, 1, 20) == 0;
}

static void calls_end_in_a_loop_of_ones_own(void **state)
{
    struct world *world = *state;
    cadre_job *jobs[5] = {0};
    const cadre_then then = {.done = on_done, .user = world};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(
            cadre_client_job(world->client, (uint64_t)i + 1, &jobs[i], &then), CADRE_OK);
    }
    poll_until_done(world, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(jobs[i]->id, i + 1);
        cadre_result_release(jobs[i]);
    }
    assert_true(test_wait(is_silent, world, PATIENCE_MS * CADRE_US_PER_MS));
    /* A call that blocks works as ever. */
    assert_int_equal(cadre_client_job(world->client, 9, &jobs[0], NULL), CADRE_OK);
    cadre_result_release(jobs[0]);
    assert_true(test_wait(is_silent, world, PATIENCE_MS * CADRE_US_PER_MS));
}

/* Trying again after an outage is a matter of time: the descriptor tells of that too. */
static void an_outage_is_bridged(void **state)
{
    struct world *world = *state;
    const cadre_then then = {.done = on_done, .user = world};
    assert_int_equal(cadre_client_watch(world->client, JOB_OUTAGE, on_job, world, &then), CADRE_OK);
    poll_until_done(world, 1);
    assert_int_equal(world->status, CADRE_OK);
    assert_int_equal(world->ended, 3);
    assert_int_equal(world->outages, 2);
}

static void *wake(void *user)
{
    struct world *world = user;
    cadre_client_wake(world->client);
    return NULL;
}

static void a_wake_is_seen(void **state)
{
    struct world *world = *state;
    pthread_t thread;
    cadre_job *job = NULL;
    const cadre_then then = {.done = on_done, .user = world};
    assert_int_equal(cadre_client_job(world->client, JOB_HANGS, &job, &then), CADRE_OK);
    assert_int_equal(pthread_create(&thread, NULL, wake, world), 0);
    cadre_status status;
    do {
        struct pollfd ready = {.fd = world->fd, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
        status = cadre_client_run(world->client, 0);
    } while (status == CADRE_DEADLINE_EXCEEDED);
    pthread_join(thread, NULL);
    assert_int_equal(status, CADRE_CANCELLED);
    assert_int_equal(world->done, 0);
    cadre_client_release(world->client); /* with a call in progress */
    world->client = NULL;
    assert_int_equal(world->done, 1);
    assert_int_equal(world->status, CADRE_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_end_in_a_loop_of_ones_own, open_world, close_world),
        cmocka_unit_test_setup_teardown(an_outage_is_bridged, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_wake_is_seen, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
