/* SPDX-License-Identifier: Apache-2.0
 * What servers answer: to a client, and to frames that no client sends. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "server_rig.h"
#include "worker/library/ps/link/frame.h"
#include "worker/library/ps/request.h"
#include "worker/library/ps/server/server_internal.h"

static struct rig rig;

static int setup(void **state)
{
    (void)state;
    rig_open(&rig, 1, 2);
    rig_start(&rig, 0, -1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static struct request push_of(uint32_t shard, enum push_kind kind, uint64_t closure,
    const float *values, uint64_t rows, uint64_t row_elements)
{
    return (struct request){
        .kind = REQUEST_PUSH,
        .shard = shard,
        .row_bytes = row_elements * sizeof(float),
        .push = {.shard = shard,
            .kind = kind,
            .closure = closure,
            .rows = rows,
            .rate = NAN,
            .based_on = PUSH_ANY_VERSION},
        .values = values,
    };
}

static struct request pull_of(uint32_t shard, float *into, uint64_t rows, uint64_t row_elements)
{
    return (struct request){
        .kind = REQUEST_PULL,
        .shard = shard,
        .rows = rows,
        .row_bytes = row_elements * sizeof(float),
        .into = into,
    };
}

static void what_is_pushed_is_pulled(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    assert_int_equal(rig_create(&rig, 0, &spec), shard);
    const float ones[] = {1, 2, 3, 4, 5, 6, 7, 8};
    float rows[8] = {0};
    struct request push = push_of(shard, PUSH_ASSIGN, 1, ones, 4, 2);
    struct request pull = pull_of(shard, rows, 4, 2);
    rig_call(&rig, &push);
    assert_int_equal(push.ret_version, 1);
    rig_call(&rig, &push); /* once is enough */
    assert_int_equal(push.ret_version, 1);
    rig_call(&rig, &pull);
    assert_int_equal(pull.ret_version, 1);
    assert_memory_equal(rows, ones, sizeof rows);

    struct request both = push_of(shard, PUSH_UPDATE, 2, ones, 2, 2);
    float after[4];
    both.kind = REQUEST_PUSH_PULL;
    both.push.first_row = 1;
    both.into = after;
    rig_call(&rig, &both);
    assert_memory_equal(after, ((const float[]){3 - 1, 4 - 2, 5 - 3, 6 - 4}), sizeof after);

    const int64_t ids[] = {3, 0, 3};
    const float grads[] = {1, 1, 2, 2, 3, 3};
    struct request sparse = push_of(shard, PUSH_ADD, 3, grads, 3, 2);
    sparse.push.sparse = true;
    sparse.push.ids = ids;
    rig_call(&rig, &sparse);
    assert_int_equal(sparse.ret_version, 3);
    float gathered[6];
    struct request gather = {.kind = REQUEST_GATHER,
        .shard = shard,
        .rows = 3,
        .row_bytes = 8,
        .ids = ids,
        .into = gathered};
    rig_call(&rig, &gather);
    assert_memory_equal(
        gathered, ((const float[]){7 + 4, 8 + 4, 1 + 2, 2 + 2, 11, 12}), sizeof gathered);
}

static void optimizers_are_read_and_set(void **state)
{
    (void)state;
    struct store_spec spec = rig_spec("m", 3, 1);
    const struct optimizer_rule rule = {.kind = OPTIMIZER_MOMENTUM, .rate = 1, .momentum = 0.5};
    uint32_t shard = rig_create_with(&rig, 0, &spec, &rule);
    const float grads[] = {1, 2, 3};
    float slot[3] = {0};
    struct request push = push_of(shard, PUSH_UPDATE, 1, grads, 3, 1);
    rig_call(&rig, &push);
    struct request get = pull_of(shard, slot, 3, 1);
    get.kind = REQUEST_SLOT;
    rig_call(&rig, &get);
    assert_int_equal(get.updates, 1);
    assert_true(slot[1] == 2 || slot[1] == -2);
    const float other[] = {7, 8};
    struct request set = {.kind = REQUEST_SET_SLOT,
        .shard = shard,
        .first = 1,
        .rows = 2,
        .row_bytes = 4,
        .updates = 41,
        .values = other};
    rig_call(&rig, &set);
    rig_call(&rig, &get);
    assert_int_equal(get.updates, 41);
    assert_memory_equal(slot + 1, other, sizeof other);
    struct cadre_error error = {0};
    get.slot = 1;
    assert_error(client_call(rig.client, &get, 1, 0, &error), CADRE_NOT_FOUND, &error,
        "ps 0: the optimizer of \"m\" has no slot 1");
    get.rows = 0; /* the count alone is each shard's */
    rig_call(&rig, &get);
    assert_int_equal(get.updates, 41);
    set.slot = 7;
    set.rows = 0;
    set.updates = 5;
    rig_call(&rig, &set);
    rig_call(&rig, &get);
    assert_int_equal(get.updates, 5);
}

/* After it was made, and read: once, and all slots are there. */
static void shards_are_given_their_optimizers_later(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store_spec spec = rig_spec("late", 3, 1);
    struct request create = {.kind = REQUEST_CREATE, .spec = &spec};
    rig_call(&rig, &create);
    uint32_t shard = create.ret_shard;
    const float grads[] = {3, 0, 4};
    struct request push = push_of(shard, PUSH_UPDATE, 1, grads, 3, 1);
    assert_error(client_call(rig.client, &push, 1, 0, &error), CADRE_FAILED_PRECONDITION, &error,
        "ps 0: `late` has no optimizer; build one for it");
    struct optimizer_rule rule = {
        .kind = OPTIMIZER_ADAGRAD, .rate = 1, .initial_accumulator = 0.5, .epsilon = 0.25};
    struct request train = {.kind = REQUEST_TRAIN, .shard = shard, .rule = &rule};
    rig_call(&rig, &train);
    rig_call(&rig, &train);
    float slot[3] = {0};
    struct request get = pull_of(shard, slot, 3, 1);
    get.kind = REQUEST_SLOT;
    rig_call(&rig, &get);
    assert_memory_equal(slot, ((const float[]){0.5F, 0.5F, 0.5F}), sizeof slot);
    rig_call(&rig, &push);
    rig_call(&rig, &get);
    assert_memory_equal(slot, ((const float[]){9.5F, 0.5F, 16.5F}), sizeof slot);
    rule.rate = 2;
    assert_error(client_call(rig.client, &train, 1, 0, &error), CADRE_ALREADY_EXISTS, &error,
        "ps 0: shard 0 of `late` has an optimizer already");
    rule.beta1 = 1;
    assert_error(client_call(rig.client, &train, 1, 0, &error), CADRE_INVALID_ARGUMENT, &error,
        "ps 0: `late`: the optimizer's beta1 is 1; give one from 0 to less than 1");
    train.shard = 77;
    assert_error(client_call(rig.client, &train, 1, 0, &error), CADRE_NOT_FOUND, &error,
        "shard 77 does not exist");
}

/* Of many rows in one piece: v = (3, 4), g such that m / sqrt(v) is 1 in the first step. */
static void lamb_takes_a_push_as_one(void **state)
{
    (void)state;
    enum { ROWS = 100000 };
    struct store_spec spec = rig_spec("lamb", ROWS, 1);
    const struct optimizer_rule rule = {.kind = OPTIMIZER_LAMB, .rate = 0.5, .beta1 = 0.5};
    uint32_t shard = rig_create_with(&rig, 0, &spec, &rule);
    float *values = calloc(2 * ROWS, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < ROWS; i++) {
        values[i] = i % 2 == 0 ? 3 : 4;
        values[ROWS + i] = 2;
    }
    struct request assign = push_of(shard, PUSH_ASSIGN, 1, values, ROWS, 1);
    rig_call(&rig, &assign);
    struct request push = push_of(shard, PUSH_UPDATE, 2, values + ROWS, ROWS, 1);
    rig_call(&rig, &push);
    rig_call(&rig, &push);
    struct request pull = pull_of(shard, values, ROWS, 1);
    rig_call(&rig, &pull);
    const float step = 0.5F * sqrtf((9 + 16) / 2.0F); /* rate * |v| / |u|, u = 1 */
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(fabsf(values[i] - ((i % 2 == 0 ? 3 : 4) - step)) < 1e-5F);
    }
    free(values);
}

static void notes_are_kept(void **state)
{
    (void)state;
    struct request note = {.kind = REQUEST_NOTE, .name = "a", .values = "text", .rows = 4};
    rig_call(&rig, &note);
    note.name = "b";
    note.rows = 0;
    rig_call(&rig, &note);
    struct request noted = {.kind = REQUEST_FIND_NOTE, .name = "a"};
    rig_call(&rig, &noted);
    assert_int_equal(noted.ret_text_bytes, 4);
    assert_string_equal(noted.ret_text, "text");
    free(noted.ret_text);
    struct request names = {.kind = REQUEST_NOTE_NAMES};
    rig_call(&rig, &names);
    assert_int_equal(names.ret_text_bytes, 4);
    assert_memory_equal(names.ret_text, "a\0b", 4);
    free(names.ret_text);
    struct cadre_error error = {0};
    noted.name = "c";
    assert_error(client_call(rig.client, &noted, 1, 0, &error), CADRE_NOT_FOUND, &error,
        "\"c\" was not noted");
    assert_null(noted.ret_text);
}

/* The others of the call succeed, and the connection goes on. */
static void bad_requests_are_refused(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float rows[8] = {0};
    const int64_t bad_ids[] = {0, 4};
    struct cadre_error error = {0};
    struct request requests[] = {
        push_of(shard, PUSH_ADD, 1, ones, 4, 2),
        push_of(shard + 1, PUSH_ADD, 1, ones, 4, 2), /* NOT_FOUND */
        push_of(shard, PUSH_ADD, 2, ones, 8, 1),     /* half a row each */
        push_of(shard, PUSH_ADD, 3, ones, 2, 4),     /* two rows each */
        push_of(shard, PUSH_ADD, 4, ones, 4, 2),     /* from row 1: out of range */
        pull_of(shard, rows, 5, 1),                  /* out of range */
        pull_of(shard, rows, 2, 1),                  /* shorter rows than they are */
        {.kind = REQUEST_GATHER,
            .shard = shard,
            .rows = 2,
            .row_bytes = 8,
            .ids = bad_ids,
            .into = rows},
        pull_of(shard, rows, 4, 2),
    };
    requests[4].push.first_row = 1;
    cadre_status status = client_call(rig.client, requests, CADRE_COUNT_OF(requests), 0, &error);
    assert_error(status, CADRE_NOT_FOUND, &error, "shard 1 does not exist");
    static const cadre_status wanted[] = {CADRE_OK, CADRE_NOT_FOUND, CADRE_INVALID_ARGUMENT,
        CADRE_INVALID_ARGUMENT, CADRE_OUT_OF_RANGE, CADRE_OUT_OF_RANGE, CADRE_INVALID_ARGUMENT,
        CADRE_OUT_OF_RANGE, CADRE_OK};
    for (size_t i = 0; i < CADRE_COUNT_OF(requests); i++) {
        assert_int_equal(requests[i].code, wanted[i]);
    }
    assert_memory_equal(rows, ones, sizeof rows);
    /* Of a push that was applied before, too. */
    struct request again = push_of(shard, PUSH_ADD, 1, ones, 2, 2);
    again.kind = REQUEST_PUSH_PULL;
    again.push.first_row = 3;
    again.into = rows;
    assert_error(client_call(rig.client, &again, 1, 0, &error), CADRE_OUT_OF_RANGE, &error,
        "2 rows from row 3 on");
    struct request elsewhere = pull_of(shard, rows, 1, 2);
    elsewhere.server = 1;
    assert_error(client_call(rig.client, &elsewhere, 1, 0, &error), CADRE_INVALID_ARGUMENT, &error,
        "this job has 1 parameter servers");
}

static struct link *raw_link(void)
{
    struct cadre_error error = {0};
    struct link_terms terms = rig_terms(&rig, 2);
    struct link *link = NULL;
    assert_ok(link_connect(&terms, "ps 0", rig.addresses[0],
                  ps_job_first_slot(&rig.ps_job, ROLE_SERVER), RIG_PATIENCE_US, &link, &error),
        &error);
    return link;
}

/* Whatever the numbers in a frame are, a server answers, or ends the connection; and goes on. */
static void random_frames_do_no_harm(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    struct prng prng = {.state = 5};
    uint8_t payload[4096];
    for (size_t round = 0; round < 400; round++) {
        struct link *link = raw_link();
        struct frame frame;
        struct cadre_error error = {0};
        for (size_t i = 0; i < 5; i++) {
            uint64_t *words = (uint64_t *)(void *)payload;
            for (size_t k = 0; k < sizeof payload / 8; k++) {
                uint64_t drawn = prng_next(&prng);
                words[k] = drawn % 3 == 0 ? drawn : drawn % 5;
            }
            frame = (struct frame){.kind = (uint32_t)(prng_next(&prng) % 16), .id = i};
            frame.bytes = prng_next(&prng) % 4 == 0 ? prng_next(&prng) % 64 * 8 : 80 + 8 * i;
            for (size_t k = 0; k < 4; k++) {
                uint64_t drawn = prng_next(&prng);
                frame.args[k] = drawn % 4 == 0 ? drawn : drawn % 4;
            }
            struct iovec piece = {payload, frame.bytes};
            bool lies = prng_next(&prng) % 8 == 0;
            if (lies) { /* more is announced than comes */
                uint8_t header[FRAME_BYTES];
                frame.bytes = prng_next(&prng);
                frame_write(&frame, header);
                (void)send(link_fd(link), header, sizeof header, MSG_NOSIGNAL);
                break;
            }
            if (link_send(link, &frame, &piece, 1, &error) != CADRE_OK ||
                frame.args[ARG_MIN_STEPS] > 4) { /* it may wait for that version */
                break;
            }
        }
        link_free(link);
    }
    float rows[8] = {0};
    struct request pull = pull_of(shard, rows, 4, 2);
    rig_call(&rig, &pull);
}

struct waiting {
    struct request request;
    cadre_status status;
    struct cadre_error error;
};

static void *call_in_thread(void *argument)
{
    struct waiting *self = argument;
    self->status = client_call(rig.client, &self->request, 1, 0, &self->error);
    return NULL;
}

static void a_pull_waits_for_a_step(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    float rows[8] = {0};
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct waiting waiting = {.request = pull_of(shard, rows, 4, 2)};
    waiting.request.min_steps = 3;
    pthread_t thread;
    pthread_create(&thread, NULL, call_in_thread, &waiting);
    for (uint64_t i = 1; i <= 3; i++) {
        struct request push = push_of(shard, PUSH_ADD, i, ones, 4, 2);
        for (uint64_t k = 0; k < 5; k++) { /* versions are no steps */
            push.push.ordinal++;
            rig_call(&rig, &push);
        }
        push.push.ordinal = 0;
        push.push.contributions = 1;
        push.push.step = i - 1;
        rig_call(&rig, &push);
    }
    pthread_join(thread, NULL);
    assert_ok(waiting.status, &waiting.error);
    assert_int_equal(waiting.request.ret_version, 18);
    assert_int_equal(waiting.request.ret_steps, 3);
    assert_true(rows[7] == 18);
}

static bool has_push(void *data)
{
    struct server *server = data;
    pthread_mutex_lock(&server->lock);
    bool pushes = server->pushes != NULL;
    pthread_mutex_unlock(&server->lock);
    return pushes;
}

/* A contribution of a client that hangs is in the way: its connection is cut off. */
static void a_step_is_begun_again(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    float rows[8] = {0};
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct request push = push_of(shard, PUSH_ADD, 1, ones, 4, 2);
    push.push.contributions = 2;
    rig_call(&rig, &push);
    struct request hangs = push_of(shard, PUSH_ADD, 2, ones, 4, 2);
    uint8_t part[REQUEST_HEADER_BYTES];
    struct frame frame;
    hangs.push.contributions = 2;
    size_t bytes = request_write(&hangs, 0, &frame, part);
    uint8_t header[FRAME_BYTES];
    struct link *link = raw_link();
    frame_write(&frame, header);
    assert_int_equal(send(link_fd(link), header, sizeof header, MSG_NOSIGNAL), sizeof header);
    assert_int_equal(send(link_fd(link), part, bytes, MSG_NOSIGNAL), bytes);
    assert_true(test_wait(has_push, rig.servers[0], RIG_PATIENCE_US));
    struct request again = {.kind = REQUEST_BEGIN_STEP, .shard = shard, .min_steps = 0};
    struct cadre_error error = {0};
    assert_ok(client_call(rig.client, &again, 1, 3, &error), &error);
    push.push.closure = 2; /* whatever comes late of closures that are done counts as applied */
    rig_call(&rig, &push);
    for (uint64_t closure = 3; closure <= 4; closure++) {
        push.push.closure = closure;
        rig_call(&rig, &push);
    }
    struct request pull = pull_of(shard, rows, 4, 2);
    pull.min_steps = 1;
    rig_call(&rig, &pull);
    assert_true(rows[0] == 2 && rows[7] == 2);
    link_free(link);
}

/* Of two workers, each three steps: no step begins before the one before is applied. */
static void *take_steps(void *argument)
{
    struct waiting *self = argument;
    for (uint64_t step = 0; step < 20; step++) {
        self->request.push.step = step;
        self->request.push.closure += 2;
        self->status = client_call(rig.client, &self->request, 1, 0, &self->error);
        if (self->status != CADRE_OK) {
            break;
        }
    }
    return NULL;
}

static void synchronous_pushes_wait_for_each_other(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    const float values[2][8] = {{1, 1, 1, 1, 1, 1, 1, 1}, {3, 3, 3, 3, 3, 3, 3, 3}};
    struct waiting workers[2];
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        workers[i] =
            (struct waiting){.request = push_of(shard, PUSH_UPDATE, 1 + i, values[i], 4, 2)};
        workers[i].request.push.contributions = 2;
        pthread_create(&threads[i], NULL, take_steps, &workers[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_ok(workers[i].status, &workers[i].error);
    }
    float rows[8];
    struct request pull = pull_of(shard, rows, 4, 2);
    pull.min_steps = 20;
    rig_call(&rig, &pull);
    assert_int_equal(pull.ret_version, 20);
    assert_true(rows[0] == -40 && rows[7] == -40);
}

/* 24 pushes and pulls of 4 MiB in one call, more than all sockets take. */
static void a_large_call_goes_both_ways(void **state)
{
    (void)state;
    enum { TIMES = 24, ELEMENTS = 1 << 20 };
    struct store_spec spec = rig_spec("large", 1024, ELEMENTS / 1024);
    uint32_t shard = rig_create(&rig, 0, &spec);
    float *ones = malloc(ELEMENTS * sizeof *ones);
    float *rows = malloc(ELEMENTS * sizeof *rows);
    static struct request requests[2 * TIMES];
    for (size_t i = 0; i < ELEMENTS; i++) {
        ones[i] = 1;
        rows[i] = 0;
    }
    for (size_t i = 0; i < TIMES; i++) {
        requests[2 * i] = push_of(shard, PUSH_ADD, i + 1, ones, 1024, ELEMENTS / 1024);
        requests[2 * i + 1] = pull_of(shard, rows, 1024, ELEMENTS / 1024);
    }
    struct cadre_error error = {0};
    assert_ok(client_call(rig.client, requests, CADRE_COUNT_OF(requests), 0, &error), &error);
    assert_int_equal(requests[2 * TIMES - 1].ret_version, TIMES);
    for (size_t i = 0; i < ELEMENTS; i++) {
        if (rows[i] != TIMES) {
            fail_msg("element %zu", i);
        }
    }
    free(ones);
    free(rows);
}

static bool has_parked(void *data)
{
    struct server *server = data;
    return atomic_load(&server->parked) > 0;
}

static void waits_end_with_the_client(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    float rows[8];
    struct waiting waiting = {.request = pull_of(shard, rows, 4, 2)};
    waiting.request.min_steps = 3;
    pthread_t thread;
    pthread_create(&thread, NULL, call_in_thread, &waiting);
    assert_true(test_wait(has_parked, rig.servers[0], RIG_PATIENCE_US));
    client_close(rig.client);
    rig.client = NULL;
    pthread_join(thread, NULL);
    assert_error(waiting.status, CADRE_CANCELLED, &waiting.error, "was closed");
}

static void waits_end_with_the_server(void **state)
{
    (void)state;
    const struct store_spec spec = rig_spec("v", 4, 2);
    uint32_t shard = rig_create(&rig, 0, &spec);
    float rows[8];
    struct waiting waiting = {.request = pull_of(shard, rows, 4, 2)};
    waiting.request.min_steps = 3;
    pthread_t thread;
    pthread_create(&thread, NULL, call_in_thread, &waiting);
    assert_true(test_wait(has_parked, rig.servers[0], RIG_PATIENCE_US));
    struct cadre_error over = {0};
    struct cadre_error error = {0};
    (void)cadre_error_set(&over, CADRE_CANCELLED, "the chief is done");
    directory_end(rig.directories[0], &over);
    assert_ok(server_wait(rig.servers[0], &error), &error);
    directory_end(rig.directory, &over);
    pthread_join(thread, NULL);
    assert_int_equal(waiting.status, CADRE_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_pushed_is_pulled, setup, teardown),
        cmocka_unit_test_setup_teardown(shards_are_given_their_optimizers_later, setup, teardown),
        cmocka_unit_test_setup_teardown(lamb_takes_a_push_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(optimizers_are_read_and_set, setup, teardown),
        cmocka_unit_test_setup_teardown(notes_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_requests_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(random_frames_do_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pull_waits_for_a_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_is_begun_again, setup, teardown),
        cmocka_unit_test_setup_teardown(synchronous_pushes_wait_for_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_call_goes_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_end_with_the_client, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_end_with_the_server, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
