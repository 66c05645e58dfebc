/* SPDX-License-Identifier: Apache-2.0
 * A push that comes again on another connection, because its worker was lost or takes the older one
 * for broken: the older is cut, also where it hangs in the middle of its values, and nothing counts
 * twice. Pushes that only look like it are left alone. */
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/pure/assert.h"
#include "server_rig.h"
#include "worker/library/ps/link/frame.h"
#include "worker/library/ps/request.h"
#include "worker/library/ps/server/server_internal.h"

#define ROWS 40000 /* of one f32: some blocks */

static struct rig rig;
static float ones[ROWS];
static float rows[ROWS];

static int setup(void **state)
{
    (void)state;
    rig_open(&rig, 1, 2);
    rig_start(&rig, 0, -1);
    for (size_t i = 0; i < ROWS; i++) {
        ones[i] = 1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

/* A push of all rows, once more each time it is sent. */
struct sent {
    struct request request;
    struct link *link; /* of its own; NULL: none */
    size_t left;       /* of its values, which were not sent yet */
};

static struct request push_of(uint32_t shard, uint64_t closure, uint32_t ordinal)
{
    return (struct request){.kind = REQUEST_PUSH,
        .shard = shard,
        .row_bytes = sizeof(float),
        .push = {.shard = shard,
            .kind = PUSH_ADD,
            .closure = closure,
            .ordinal = ordinal,
            .rows = ROWS,
            .rate = NAN,
            .based_on = PUSH_ANY_VERSION},
        .values = ones};
}

/* Counts pushes that a server has begun and not ended. */
static size_t under_way(void)
{
    struct server *server = rig.servers[0];
    size_t count = 0;
    pthread_mutex_lock(&server->lock);
    for (const struct connection *one = server->pushes; one != NULL; one = one->next_push) {
        count++;
    }
    pthread_mutex_unlock(&server->lock);
    return count;
}

static bool is_under_way(void *data)
{
    return under_way() == *(const size_t *)data;
}

/* Sends a push with the first `given` of its values, and waits until the server has begun it. */
static void begin(struct sent *sent, struct request request, size_t given)
{
    struct cadre_error error = {0};
    struct link_terms terms = rig_terms(&rig, 2);
    uint8_t part[REQUEST_HEADER_BYTES];
    uint8_t header[FRAME_BYTES];
    struct frame frame;
    size_t wanted = under_way() + 1;
    *sent = (struct sent){.request = request, .left = ROWS - given};
    assert_ok(
        link_connect(&terms, "ps 0", rig.addresses[0], ps_job_first_slot(&rig.ps_job, ROLE_SERVER),
            RIG_PATIENCE_US, &sent->link, &error),
        &error);
    size_t bytes = request_write(&sent->request, 0, &frame, part);
    frame_write(&frame, header);
    rig_send_all(sent->link, header, sizeof header);
    rig_send_all(sent->link, part, bytes);
    rig_send_all(sent->link, ones, given * sizeof(float));
    assert_true(test_wait(is_under_way, &wanted, RIG_PATIENCE_US));
}

/* The rest of the values; the server answers that the push is in. */
static void finish(struct sent *sent)
{
    uint8_t header[FRAME_BYTES];
    size_t got = 0;
    struct frame frame;
    rig_send_all(sent->link, ones, sent->left * sizeof(float));
    while (got < sizeof header) {
        struct pollfd wait = {.fd = link_fd(sent->link), .events = POLLIN};
        assert_int_equal(poll(&wait, 1, (int)(RIG_PATIENCE_US / CADRE_US_PER_MS)), 1);
        ssize_t more = recv(link_fd(sent->link), header + got, sizeof header - got, MSG_DONTWAIT);
        assert_true(more > 0);
        got += (size_t)more;
    }
    frame_read(header, &frame);
    assert_int_equal(frame.kind, FRAME_ANSWER);
    assert_int_equal(frame.code, CADRE_OK);
    link_free(sent->link);
}

static bool is_cut(void *data)
{
    const struct sent *sent = data;
    uint8_t byte;
    struct pollfd wait = {.fd = link_fd(sent->link), .events = POLLIN};
    return poll(&wait, 1, 0) == 1 && recv(link_fd(sent->link), &byte, 1, MSG_DONTWAIT) <= 0;
}

static void assert_rows(uint32_t shard, float wanted, uint64_t version)
{
    struct request pull = {.kind = REQUEST_PULL,
        .shard = shard,
        .rows = ROWS,
        .row_bytes = sizeof(float),
        .into = rows};
    rig_call(&rig, &pull);
    assert_int_equal(pull.ret_version, version);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i] != wanted) {
            fail_msg("row %zu is %g instead of %g", i, (double)rows[i], (double)wanted);
        }
    }
}

static void try_again_after(size_t given)
{
    struct sent older;
    const struct store_spec spec = rig_spec("v", ROWS, 1);
    uint32_t shard = rig_create(&rig, 0, &spec);
    struct request request = push_of(shard, 5, 1);
    begin(&older, request, given);
    rig_call(&rig, &request);
    assert_true(test_wait(is_cut, &older, RIG_PATIENCE_US));
    assert_rows(shard, 1, 1);
    assert_int_equal(under_way(), 0);
    link_free(older.link);
}

static void an_older_connection_is_cut(void **state)
{
    (void)state;
    try_again_after(0);
}

/* What it has given already is not added once more. */
static void one_that_hangs_in_its_values_is_cut(void **state)
{
    (void)state;
    try_again_after(ROWS - 1);
}

/* Another closure, another push of the same closure, the same one to another shard, and one of no
 * closure are not the same push: each ends in its own time. */
static void others_are_left_alone(void **state)
{
    (void)state;
    struct sent older;
    struct sent others[4];
    const struct store_spec specs[] = {rig_spec("v", ROWS, 1), rig_spec("w", ROWS, 1)};
    uint32_t shard = rig_create(&rig, 0, &specs[0]);
    uint32_t other = rig_create(&rig, 0, &specs[1]);
    struct request request = push_of(shard, 5, 1);
    begin(&others[0], push_of(shard, 6, 1), 100);
    begin(&others[1], push_of(shard, 5, 2), 0);
    begin(&others[2], push_of(other, 5, 1), ROWS / 2);
    begin(&others[3], push_of(shard, 0, 0), 7);
    begin(&older, request, 1000);
    rig_call(&rig, &request);
    assert_true(test_wait(is_cut, &older, RIG_PATIENCE_US));
    struct request of_none = push_of(shard, 0, 0);
    rig_call(&rig, &of_none);
    for (size_t i = 0; i < CADRE_COUNT_OF(others); i++) {
        assert_false(is_cut(&others[i]));
        finish(&others[i]);
    }
    assert_rows(shard, 5, 5);
    assert_rows(other, 1, 1);
    link_free(older.link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_older_connection_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_hangs_in_its_values_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_left_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
