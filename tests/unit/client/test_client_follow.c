/* SPDX-License-Identifier: Apache-2.0
 * Watch and logs: to the end, until the callback returns false, and across an outage of the
 * coordinator. */
#include "stub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/client.h"
#include "common/base/clock.h"
#include "tests/lib/speed.h"

struct world {
    struct stub stub;
    cadre_client *client;
    char outages[16]; /* "-" went away, "+" came back */
    char states[256]; /* "running,succeeded," */
    char text[256];   /* of task 0 */
    char other[16];   /* of task 33 */
    int ends;
    bool enough; /* after the first */
};

static void on_outage(bool away, void *user)
{
    struct world *world = user;
    size_t used = strlen(world->outages);
    snprintf(world->outages + used, sizeof world->outages - used, "%s", away ? "-" : "+");
}

static void connect_client(struct world *world, uint64_t wait_timeout_us)
{
    const cadre_client_options options = {.address = world->stub.address,
        .wait_timeout_us = wait_timeout_us,
        .on_outage = on_outage,
        .user = world};
    assert_int_equal(cadre_client_connect(&options, &world->client), CADRE_OK);
}

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    stub_open(&world->stub, NULL);
    connect_client(world, 20 * CADRE_US_PER_S);
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

static bool on_job(const cadre_job *job, void *user)
{
    struct world *world = user;
    size_t used = strlen(world->states);
    snprintf(
        world->states + used, sizeof world->states - used, "%s,", cadre_job_state_name(job->state));
    return !world->enough;
}

static bool on_log(const cadre_log *log, void *user)
{
    struct world *world = user;
    char *to = log->task == 0 ? world->text : world->other;
    size_t size = log->task == 0 ? sizeof world->text : sizeof world->other;
    size_t used = strlen(to);
    bool first = log->task == 0 && used < 5;
    assert_int_equal(log->offset, used + (log->task == 33 ? 7 : 0));
    assert_int_equal(log->left_out, 0);
    if (first && !log->end) {
        assert_int_equal(log->stream, used < 4 ? CADRE_STDOUT : CADRE_STDERR);
        assert_int_equal(log->received_us, used < 4 ? 70 : 80);
    }
    snprintf(to + used, size - used, "%.*s", (int)log->size, log->bytes);
    world->ends += log->end ? 1 : 0;
    return !world->enough;
}

static void a_job_is_watched_to_its_end(void **state)
{
    struct world *world = *state;
    assert_int_equal(cadre_client_watch(world->client, 1, on_job, world, NULL), CADRE_OK);
    assert_string_equal(world->states, "running,succeeded,");
    assert_int_equal(
        cadre_client_watch(world->client, JOB_NONE, on_job, world, NULL), CADRE_NOT_FOUND);
    assert_string_equal(cadre_error_message(), "there is no job 404");
    assert_int_not_equal(
        cadre_client_watch(world->client, JOB_GARBAGE, on_job, world, NULL), CADRE_OK);
}

static void logs_are_read_to_their_end(void **state)
{
    struct world *world = *state;
    const cadre_log_options options = {.tail_bytes = 99};
    assert_int_equal(cadre_client_logs(world->client, 1, &options, on_log, world, NULL), CADRE_OK);
    assert_string_equal(world->text, "one two three");
    assert_string_equal(world->other, "x");
    assert_int_equal(world->ends, 1);
    struct stub_seen seen = stub_seen(&world->stub);
    assert_int_equal(seen.tail_bytes, 99);
    assert_false(seen.follow);
}

static bool on_stderr(const cadre_log *log, void *user)
{
    struct world *world = user;
    size_t used = strlen(world->text);
    assert_true(log->size == 0 || log->stream == CADRE_STDERR);
    snprintf(world->text + used, sizeof world->text - used, "%.*s", (int)log->size, log->bytes);
    world->ends += log->end ? 1 : 0;
    return true;
}

/* This coordinator sends both, and of most bytes not from which they are. */
static void a_stream_is_chosen_here_too(void **state)
{
    struct world *world = *state;
    const cadre_log_options options = {.stream = CADRE_STDERR};
    assert_int_equal(
        cadre_client_logs(world->client, 1, &options, on_stderr, world, NULL), CADRE_OK);
    assert_string_equal(world->text, "t");
    assert_int_equal(world->ends, 1);
}

static void the_caller_may_have_enough(void **state)
{
    struct world *world = *state;
    world->enough = true;
    assert_int_equal(cadre_client_watch(world->client, 1, on_job, world, NULL), CADRE_OK);
    assert_string_equal(world->states, "running,");
    assert_int_equal(cadre_client_logs(world->client, 1, NULL, on_log, world, NULL), CADRE_OK);
    assert_string_equal(world->text, "one ");
}

static void an_outage_is_bridged(void **state)
{
    struct world *world = *state;
    const cadre_log_options options = {.follow = true, .tail_bytes = 5};
    assert_int_equal(cadre_client_watch(world->client, JOB_OUTAGE, on_job, world, NULL), CADRE_OK);
    assert_string_equal(world->states, "running,running,succeeded,");
    assert_string_equal(world->outages, "-+");
    assert_int_equal(
        cadre_client_logs(world->client, JOB_OUTAGE, &options, on_log, world, NULL), CADRE_OK);
    assert_string_equal(world->text, "one two three"); /* each byte once, however it was cut */
    assert_string_equal(world->outages, "-+-+");
    struct stub_seen seen = stub_seen(&world->stub);
    assert_int_equal(seen.watches, 2);
    assert_int_equal(seen.logs, 2);
    assert_int_equal(seen.tail_bytes, 0); /* what was read is known; nothing may be left out */
}

static void patience_ends(void **state)
{
    struct world *world = *state;
    cadre_client_release(world->client);
    connect_client(world, CADRE_US_PER_S);
    stub_close(&world->stub);
    uint64_t from_us = clock_monotonic_us();
    assert_int_equal(cadre_client_watch(world->client, 1, on_job, world, NULL), CADRE_UNAVAILABLE);
    assert_true(clock_monotonic_us() - from_us >= CADRE_US_PER_S);
    assert_non_null(strstr(cadre_error_message(), "did not come back within 1 s"));
    assert_string_equal(world->outages, "-");
    /* Reading once does not wait for a lost coordinator. */
    assert_int_equal(
        cadre_client_logs(world->client, 1, NULL, on_log, world, NULL), CADRE_UNAVAILABLE);
    assert_non_null(strstr(cadre_error_message(), "no coordinator answers at"));
    char address[sizeof world->stub.address];
    memcpy(address, world->stub.address, sizeof address);
    stub_open(&world->stub, address);
}

/* ---- a server that ends, and starts again on the same socket ---- */

struct ending {
    bool done;
    cadre_status status;
};

static void on_done(cadre_status status, const char *message, void *user)
{
    struct ending *ending = user;
    (void)message;
    ending->done = true;
    ending->status = status;
}

static void a_new_coordinator_is_found(void **state)
{
    struct world *world = *state;
    struct ending ending = {0};
    const cadre_then then = {.done = on_done, .user = &ending};
    char address[sizeof world->stub.address];
    memcpy(address, world->stub.address, sizeof address);
    stub_close(&world->stub);
    assert_int_equal(cadre_client_watch(world->client, 1, on_job, world, &then), CADRE_OK);
    uint64_t deadline_us = clock_monotonic_us() + speed_scaled_us(20 * CADRE_US_PER_S);
    while (world->outages[0] == '\0' && clock_monotonic_us() < deadline_us) {
        (void)cadre_client_run(world->client, 10000);
    }
    assert_string_equal(world->outages, "-");
    stub_open(&world->stub, address);
    assert_int_equal(
        cadre_client_run(world->client, speed_scaled_us(20 * CADRE_US_PER_S)), CADRE_OK);
    assert_true(ending.done);
    assert_int_equal(ending.status, CADRE_OK);
    assert_string_equal(world->states, "running,succeeded,");
    assert_string_equal(world->outages, "-+");
}

static void closing_ends_what_waits(void **state)
{
    struct world *world = *state;
    struct ending waiting = {0};
    struct ending hanging = {0};
    const cadre_then then_waiting = {.done = on_done, .user = &waiting};
    const cadre_then then_hanging = {.done = on_done, .user = &hanging};
    assert_int_equal(
        cadre_client_watch(world->client, JOB_GONE, on_job, world, &then_waiting), CADRE_OK);
    assert_int_equal(
        cadre_client_watch(world->client, JOB_HANGS, on_job, world, &then_hanging), CADRE_OK);
    uint64_t deadline_us = clock_monotonic_us() + speed_scaled_us(20 * CADRE_US_PER_S);
    while (world->outages[0] == '\0' && clock_monotonic_us() < deadline_us) {
        (void)cadre_client_run(world->client, 10000);
    }
    cadre_client_release(world->client);
    world->client = NULL;
    assert_true(waiting.done);
    assert_int_equal(waiting.status, CADRE_CANCELLED);
    assert_true(hanging.done);
    assert_int_equal(hanging.status, CADRE_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_is_watched_to_its_end, open_world, close_world),
        cmocka_unit_test_setup_teardown(logs_are_read_to_their_end, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_stream_is_chosen_here_too, open_world, close_world),
        cmocka_unit_test_setup_teardown(the_caller_may_have_enough, open_world, close_world),
        cmocka_unit_test_setup_teardown(an_outage_is_bridged, open_world, close_world),
        cmocka_unit_test_setup_teardown(patience_ends, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_new_coordinator_is_found, open_world, close_world),
        cmocka_unit_test_setup_teardown(closing_ends_what_waits, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
