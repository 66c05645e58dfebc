/* SPDX-License-Identifier: Apache-2.0
 * Servers that lose their memory one after the other, and get it from each other's copies. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server_rig.h"
#include "worker/library/ps/server/server_internal.h"

enum { ROWS = 16, ROW_ELEMENTS = 8, COUNT = 600, STOPS = 20 };

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
    struct request noted = {.kind = REQUEST_FIND_NOTE, .server = 1, .name = "a"};
    rig_call(&rig, &noted);
    assert_string_equal(noted.ret_text, "text");
    free(noted.ret_text);
    rig_close(&rig);
}

/* Reads shards of ps 0 once a step is applied that no client makes. */
struct reader {
    struct rig *rig;
    uint32_t shard;
    pthread_t thread;
};

static void *read_late(void *argument)
{
    struct reader *self = argument;
    float rows[ROWS * ROW_ELEMENTS];
    struct request pull = {.kind = REQUEST_PULL,
        .shard = self->shard,
        .min_steps = 1,
        .rows = ROWS,
        .row_bytes = ROW_ELEMENTS * sizeof(float),
        .into = rows};
    (void)client_call(self->rig->client, &pull, 1, 0, NULL);
    return NULL;
}

static bool all_are_parked(void *data)
{
    const struct rig *rig = data;
    return atomic_load(&rig->servers[0]->parked) == 2;
}

/* Tells the servers who is where, over and over: what a backup's threads do at each change they do
 * while the server stops. */
struct teller {
    struct rig *rig;
    atomic_bool ends;
    atomic_uint reports;
    pthread_t thread;
};

static void *tell_on(void *argument)
{
    struct teller *self = argument;
    while (!atomic_load(&self->ends)) {
        rig_send_members(self->rig);
        atomic_fetch_add(&self->reports, 1);
    }
    return NULL;
}

static bool teller_tells(void *data)
{
    const struct teller *teller = data;
    return atomic_load(&teller->reports) > 0;
}

static void stop_during_report(struct rig *rig)
{
    struct teller teller = {.rig = rig};
    pthread_create(&teller.thread, NULL, tell_on, &teller);
    assert_true(test_wait(teller_tells, &teller, RIG_PATIENCE_US));
    rig_stop(rig, 0);
    atomic_store(&teller.ends, true);
    pthread_join(teller.thread, NULL);
}

/* Whose threads wake who is parked, as long as they live, and end before what they wake. */
static void a_server_stops_while_requests_are_parked(void **state)
{
    (void)state;
    struct rig rig;
    int memory = memfd_create("ps", MFD_CLOEXEC);
    rig_open_backed(&rig, 2, 2);
    rig_start(&rig, 0, memory);
    struct store_spec spec = rig_spec("v", ROWS, ROW_ELEMENTS);
    struct reader readers[2];
    for (size_t i = 0; i < 2; i++) { /* a connection each */
        readers[i] = (struct reader){.rig = &rig, .shard = rig_create(&rig, 0, &spec)};
        pthread_create(&readers[i].thread, NULL, read_late, &readers[i]);
    }
    for (uint32_t i = 0; i < STOPS; i++) {
        assert_true(test_wait(all_are_parked, &rig, RIG_PATIENCE_US));
        stop_during_report(&rig);
        rig_start(&rig, 0, memory);
    }
    client_close(rig.client);
    rig.client = NULL;
    for (size_t i = 0; i < 2; i++) {
        pthread_join(readers[i].thread, NULL);
    }
    rig_close(&rig);
    close(memory);
}

/* Where a read of ps 0 by a client that knows an older incarnation of it ended. */
struct late_reader {
    struct client *client;
    float first; /* element of what was answered */
    cadre_status status;
    pthread_t thread;
};

static void *read_first(void *argument)
{
    struct late_reader *self = argument;
    float rows[ROWS * ROW_ELEMENTS] = {0};
    struct request pull = {.kind = REQUEST_PULL,
        .rows = ROWS,
        .row_bytes = ROW_ELEMENTS * sizeof(float),
        .into = rows};
    self->status = client_call(self->client, &pull, 1, 0, NULL);
    self->first = rows[0];
    return NULL;
}

static bool answers_nothing(void *data)
{
    const struct rig_partitioned *partitioned = data;
    return !backup_may_answer(partitioned->server->backup);
}

static bool one_is_parked(void *data)
{
    const struct rig_partitioned *partitioned = data;
    return atomic_load(&partitioned->server->parked) == 1;
}

/* It runs on, cut off from the coordinator, and so does a client of it; another incarnation has
 * taken the copy, and a push since. */
static void a_replaced_server_answers_no_read(void **state)
{
    (void)state;
    struct rig rig;
    struct rig_partitioned partitioned;
    rig_open_backed(&rig, 2, 2);
    const int memories[] = {memfd_create("ps", MFD_CLOEXEC), memfd_create("ps", MFD_CLOEXEC)};
    rig_start(&rig, 0, memories[0]);
    rig_start(&rig, 1, -1);
    struct store_spec spec = rig_spec("v", ROWS, ROW_ELEMENTS);
    uint32_t shard = rig_create(&rig, 0, &spec);
    assert_int_equal(shard, 0);
    rig_await_backed(&rig);
    struct directory *stale = rig_directory(&rig, 2, 2);
    struct late_reader reader = {.client = rig_client_of(stale, RIG_PATIENCE_US)};
    (void)read_first(&reader);
    assert_int_equal(reader.status, CADRE_OK);
    assert_true(reader.first >= 0 && reader.first <= 0);

    rig_partition(&rig, 0, &partitioned);
    rig_start(&rig, 0, memories[1]);
    float ones[ROWS * ROW_ELEMENTS];
    for (size_t i = 0; i < ROWS * ROW_ELEMENTS; i++) {
        ones[i] = 1;
    }
    struct client *fresh = rig_client(&rig, RIG_PATIENCE_US); /* connected to none before */
    struct request push = push_of(0, shard, 1, ones);
    assert_int_equal(client_call(fresh, &push, 1, 0, NULL), CADRE_OK);
    client_close(fresh);
    assert_true(test_wait(answers_nothing, &partitioned, RIG_PATIENCE_US));
    pthread_create(&reader.thread, NULL, read_first, &reader);
    assert_true(test_wait(one_is_parked, &partitioned, RIG_PATIENCE_US));
    rig_end_partitioned(&partitioned);
    client_close(reader.client);
    pthread_join(reader.thread, NULL);
    assert_int_equal(reader.status, CADRE_CANCELLED);
    rig_close(&rig);
    directory_free(stale);
    close(memories[0]);
    close(memories[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_loses_another_has),
        cmocka_unit_test(a_server_stops_while_requests_are_parked),
        cmocka_unit_test(a_replaced_server_answers_no_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
