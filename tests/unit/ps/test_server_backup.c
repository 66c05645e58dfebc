/* SPDX-License-Identifier: Apache-2.0
 * Servers that lose their memory one after the other, and get it from each other's copies. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "test_server_rig.h"
#include "worker/library/ps/server_state.h"

enum { ROWS = 16, ROW_ELEMENTS = 8, COUNT = 600 };

struct pusher {
    struct rig *rig;
    uint32_t shards[2]; /* one on each server */
    atomic_uint done;
    cadre_status status;
    struct cadre_error error;
};

static struct request push_of(
    uint32_t server, uint32_t shard, uint64_t closure, const float *values)
{
    return (struct request){
        .kind = REQUEST_PUSH,
        .server = server,
        .shard = shard,
        .row_bytes = ROW_ELEMENTS * sizeof(float),
        .push = {.kind = server == 0 ? PUSH_UPDATE : PUSH_ADD,
            .closure = closure,
            .rows = ROWS,
            .rate = NAN,
            .based_on = PUSH_ANY_VERSION},
        .values = values,
    };
}

static void *push_some(void *argument)
{
    struct pusher *self = argument;
    float ones[ROWS * ROW_ELEMENTS];
    const int64_t ids[] = {3, 3};
    for (size_t i = 0; i < ROWS * ROW_ELEMENTS; i++) {
        ones[i] = 1;
    }
    for (uint64_t i = 1; i <= COUNT && self->status == CADRE_OK; i++) {
        struct request requests[] = {push_of(0, self->shards[0], i, ones),
            push_of(1, self->shards[1], i, ones), push_of(1, self->shards[1], i, ones)};
        requests[2].push.ordinal = 1;
        requests[2].push.sparse = true;
        requests[2].push.ids = ids;
        requests[2].push.rows = 2;
        self->status = client_call(self->rig->client, requests, 3, i, &self->error);
        atomic_fetch_add(&self->done, 1);
    }
    return NULL;
}

static void lose(struct rig *rig, uint32_t index)
{
    rig_await_backed(rig);
    rig_stop(rig, index);
    rig_start(rig, index, -1);
}

static void check(struct rig *rig, uint32_t server, uint32_t shard, float row3, float others)
{
    float rows[ROWS * ROW_ELEMENTS];
    struct request pull = {.kind = REQUEST_PULL,
        .server = server,
        .shard = shard,
        .rows = ROWS,
        .row_bytes = ROW_ELEMENTS * sizeof(float),
        .into = rows};
    rig_call(rig, &pull);
    for (size_t i = 0; i < ROWS * ROW_ELEMENTS; i++) {
        float wanted = i / ROW_ELEMENTS == 3 ? row3 : others;
        assert_true(rows[i] >= wanted && rows[i] <= wanted);
    }
}

static void what_one_loses_another_has(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_backed(&rig, 2, 2);
    rig_start(&rig, 0, -1);
    rig_start(&rig, 1, -1);
    struct store_spec spec = rig_spec("v", ROWS, ROW_ELEMENTS);
    struct pusher pusher = {.rig = &rig};
    pusher.shards[0] = rig_create(&rig, 0, &spec);
    pusher.shards[1] = rig_create(&rig, 1, &spec);
    struct request note = {
        .kind = REQUEST_NOTE, .server = 1, .name = "a", .values = "text", .rows = 4};
    rig_call(&rig, &note);
    pthread_t thread;
    pthread_create(&thread, NULL, push_some, &pusher);
    for (uint32_t i = 0; i < 6; i++) {
        lose(&rig, i % 2);
    }
    pthread_join(thread, NULL);
    assert_ok(pusher.status, &pusher.error);
    lose(&rig, 0);
    lose(&rig, 1);
    check(&rig, 0, pusher.shards[0], -COUNT, -COUNT);
    check(&rig, 1, pusher.shards[1], 3 * COUNT, COUNT);
    struct request noted = {.kind = REQUEST_NOTED, .server = 1, .name = "a"};
    rig_call(&rig, &noted);
    assert_string_equal(noted.ret_text, "text");
    free(noted.ret_text);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_loses_another_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
