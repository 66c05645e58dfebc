/* SPDX-License-Identifier: Apache-2.0
 * Large pushes, which a server forwards to its backup while it receives them: a client that stops
 * in the middle and comes again, a server that is lost then, a backup that comes then. Each push
 * counts once, and the copy is what the store was. */
#include <math.h>
#include <string.h>

#include "server_rig.h"
#include "worker/library/ps/link/frame.h"
#include "worker/library/ps/request.h"
#include "worker/library/ps/server/server_internal.h"

enum { ROWS = 1200000, BLOCK = 262144, CLOSURE = 1 }; /* of one f32: five blocks */

static struct rig rig;
static uint32_t shard;
static float ones[ROWS];

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        ones[i] = 1;
    }
    rig_open_backed(&rig, 2, 2);
    rig_start(&rig, 0, -1);
    rig_start(&rig, 1, -1);
    struct store_spec spec = rig_spec("v", ROWS, 1);
    shard = rig_create(&rig, 0, &spec);
    rig_await_backed(&rig);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static struct request push_of(uint64_t closure)
{
    return (struct request){.kind = REQUEST_PUSH,
        .shard = shard,
        .row_bytes = sizeof(float),
        .push = {.shard = shard,
            .kind = PUSH_ADD,
            .closure = closure,
            .rows = ROWS,
            .rate = NAN,
            .based_on = PUSH_ANY_VERSION},
        .values = ones};
}

static void push_whole(uint64_t closure)
{
    struct request request = push_of(closure);
    rig_call(&rig, &request);
}

/* A push on a connection of its own, of which some values were sent. */
struct half {
    struct link *link;
    size_t given;
};

static void begin(struct half *half, uint64_t closure)
{
    struct cadre_error error = {0};
    struct link_terms terms = rig_terms(&rig, 2);
    const struct request request = push_of(closure);
    uint8_t part[REQUEST_HEADER_BYTES];
    uint8_t header[FRAME_BYTES];
    struct frame frame;
    *half = (struct half){0};
    assert_ok(
        link_connect(&terms, "ps 0", rig.addresses[0], ps_job_first_slot(&rig.ps_job, ROLE_SERVER),
            RIG_PATIENCE_US, &half->link, &error),
        &error);
    size_t bytes = request_write(&request, 0, &frame, part);
    frame_write(&frame, header);
    rig_send_all(half->link, header, sizeof header);
    rig_send_all(half->link, part, bytes);
}

/* Element `number` of the shard, in the store or in its copy, which a loop may be writing. */
__attribute__((no_sanitize("thread"))) static float element(
    const struct server *server, size_t number)
{
    const volatile float *rows = store_rows(server->store, shard, 0, ROWS);
    return rows[number];
}

struct place {
    const struct server *server;
    size_t number;
    float value;
};

static bool is_applied(void *data)
{
    const struct place *place = data;
    float value = element(place->server, place->number);
    return value >= place->value && value <= place->value;
}

/* Sends values up to number `given`, and waits until the last whole block of them is in the copy of
 * ps 0 as in its store. */
static void give(struct half *half, size_t given, float value)
{
    rig_send_all(half->link, ones, (given - half->given) * sizeof(float));
    half->given = given;
    struct place places[] = {{rig.servers[0], given / BLOCK * BLOCK - 1, value},
        {rig.servers[1]->copy, given / BLOCK * BLOCK - 1, value}};
    for (size_t i = 0; i < 2; i++) {
        assert_true(test_wait(is_applied, &places[i], RIG_PATIENCE_US));
    }
}

static void finish(struct half *half)
{
    struct cadre_error error = {0};
    struct frame frame;
    rig_send_all(half->link, ones, (ROWS - half->given) * sizeof(float));
    assert_ok(link_receive(half->link, RIG_PATIENCE_US, &frame, &error), &error);
    assert_int_equal(frame.kind, FRAME_ANSWER);
    assert_int_equal(frame.code, CADRE_OK);
    link_free(half->link);
}

/* The rows as a client finds them. */
static void check(float value)
{
    static float rows[ROWS];
    struct request pull = {.kind = REQUEST_PULL,
        .shard = shard,
        .rows = ROWS,
        .row_bytes = sizeof(float),
        .into = rows};
    rig_call(&rig, &pull);
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(rows[i] >= value && rows[i] <= value);
    }
}

/* What a server without its memory gets from the copy. */
static void lose_server(void)
{
    rig_stop(&rig, 0);
    rig_start(&rig, 0, -1);
}

static void a_copy_receives_each_block(void **state)
{
    (void)state;
    struct half half;
    uint64_t reports = rig.backed[0].number;
    begin(&half, CLOSURE);
    give(&half, BLOCK, 1);
    give(&half, 4 * BLOCK, 1);
    finish(&half);
    check(1);
    assert_int_equal(rig.backed[0].number, reports);
    lose_server();
    check(1);
}

static void two_pushes_at_a_time(void **state)
{
    (void)state;
    struct half halves[2];
    begin(&halves[0], CLOSURE);
    begin(&halves[1], CLOSURE + 1);
    give(&halves[0], 2 * BLOCK, 1);
    give(&halves[1], BLOCK, 2);
    give(&halves[1], 3 * BLOCK, 1);
    finish(&halves[0]);
    finish(&halves[1]);
    check(2);
    lose_server();
    check(2);
}

static void a_client_that_comes_again(void **state)
{
    (void)state;
    struct half half;
    uint64_t reports = rig.backed[0].number;
    begin(&half, CLOSURE);
    give(&half, 3 * BLOCK + 100, 1);
    link_free(half.link);
    push_whole(CLOSURE);
    check(1);
    assert_int_equal(rig.backed[0].number, reports); /* the copy was not sent once more */
    lose_server();
    push_whole(CLOSURE);
    check(1);
}

static void a_server_that_is_lost_in_the_middle(void **state)
{
    (void)state;
    struct half half;
    begin(&half, CLOSURE);
    give(&half, 3 * BLOCK, 1);
    lose_server();
    link_free(half.link);
    push_whole(CLOSURE);
    check(1);
    rig_await_backed(&rig);
    lose_server();
    check(1);
}

/* The copy gets the half with the whole store, and the rest as it comes. */
static void a_backup_that_comes_in_the_middle(void **state)
{
    (void)state;
    struct half half;
    begin(&half, CLOSURE);
    give(&half, 2 * BLOCK, 1);
    rig_stop(&rig, 1);
    rig_start(&rig, 1, -1);
    rig_await_backed(&rig);
    give(&half, 4 * BLOCK, 1);
    finish(&half);
    check(1);
    rig_await_backed(&rig);
    lose_server();
    check(1);
}

/* Without an answer of the copy there is none for the client. */
static void a_backup_that_is_lost_in_the_middle(void **state)
{
    (void)state;
    struct half half;
    begin(&half, CLOSURE);
    give(&half, 2 * BLOCK, 1);
    rig_stop(&rig, 1);
    finish(&half);
    check(1);
    rig_start(&rig, 1, -1);
    rig_await_backed(&rig);
    lose_server();
    check(1);
}

static void only_copies_take_forwarded_pushes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct link_terms terms = rig_terms(&rig, 2);
    struct link *link = NULL;
    assert_ok(link_connect(&terms, "ps 0", rig.addresses[0],
                  ps_job_first_slot(&rig.ps_job, ROLE_SERVER), RIG_PATIENCE_US, &link, &error),
        &error);
    for (uint32_t kind = FRAME_PUSH_BEGIN; kind <= FRAME_PUSH_END; kind++) {
        const struct frame frame = {.kind = kind};
        struct frame answer;
        char text[200];
        assert_ok(link_send(link, &frame, NULL, 0, &error), &error);
        assert_ok(link_receive(link, RIG_PATIENCE_US, &answer, &error), &error);
        assert_int_equal(answer.code, CADRE_UNIMPLEMENTED);
        assert_true(answer.bytes < sizeof text);
        assert_ok(link_receive_bytes(link, text, answer.bytes, &error), &error);
    }
    link_free(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_copy_receives_each_block, setup, teardown),
        cmocka_unit_test_setup_teardown(two_pushes_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_that_comes_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_that_is_lost_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_that_comes_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_that_is_lost_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(only_copies_take_forwarded_pushes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
