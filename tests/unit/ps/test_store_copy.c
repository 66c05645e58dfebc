/* SPDX-License-Identifier: Apache-2.0
 * Copies of a store: what is saved and loaded is the same, and goes on the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "store_fixture.h"

struct stream {
    char *bytes;
    size_t count;
    size_t at;
};

static cadre_status keep(void *user, const void *bytes, size_t count, struct cadre_error *error)
{
    struct stream *stream = user;
    stream->bytes = realloc(stream->bytes, stream->count + count);
    if (stream->bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory");
    }
    memcpy(stream->bytes + stream->count, bytes, count);
    stream->count += count;
    return CADRE_OK;
}

static cadre_status give(void *user, void *bytes, size_t count, struct cadre_error *error)
{
    struct stream *stream = user;
    if (count > stream->count - stream->at) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "the stream has ended");
    }
    memcpy(bytes, stream->bytes + stream->at, count);
    stream->at += count;
    return CADRE_OK;
}

/* Pushes of all kinds; some are whole, one is not, a step lacks a contribution. */
static void push_any(struct store *store, struct prng *random, uint64_t closure)
{
    double values[60 * 3];
    int64_t ids[20];
    for (size_t i = 0; i < 60 * 3; i++) {
        values[i] = (double)prng_uniform(random, 100) - 50;
    }
    for (size_t i = 0; i < 20; i++) {
        ids[i] = (int64_t)prng_uniform(random, 60);
    }
    struct push push = {.shard = (uint32_t)prng_uniform(random, 7),
        .kind = (enum push_kind)(1 + prng_uniform(random, 4)),
        .closure = closure,
        .rows = 60,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION};
    if (prng_chance(random, 1, 2)) {
        push.sparse = true;
        push.ids = ids;
        push.rows = 20;
    }
    fixture_store_push(store, &push, values);
    push.shard = 7;
    push.kind = PUSH_UPDATE;
    push.contributions = 2;
    push.step = store_steps(store, 7);
    fixture_store_push(store, &push, values);
}

static void create_all(struct store *store)
{
    static const char *const names[] = {
        "sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "lamb", "step"};
    struct cadre_error error = {0};
    for (uint32_t i = 0; i < 8; i++) {
        fixture_store_create(store, names[i], CADRE_F64, 60, 3,
            i == 7 ? OPTIMIZER_ADAGRAD : (enum optimizer_kind)(OPTIMIZER_SGD + i));
        assert_ok(store_note(store, names[i], names[i], i % 4, &error), &error);
    }
}

static struct stream copy_of(const struct store *store)
{
    struct stream stream = {0};
    struct cadre_error error = {0};
    assert_ok(store_save(store, keep, &stream, &error), &error);
    return stream;
}

static void a_copy_goes_on_the_same(void **state)
{
    (void)state;
    struct store *store = fixture_store_open(-1);
    struct prng random = {.state = 1};
    struct cadre_error error = {0};
    create_all(store);
    for (uint64_t i = 1; i <= 201; i++) { /* odd: a contribution is missing */
        push_any(store, &random, i);
    }
    store_forget(store, 50);
    static const double ones[60 * 3] = {1};
    struct push left = {.kind = PUSH_ADD, .closure = 999, .rows = 60, .based_on = UINT64_MAX};
    struct pushing pushing;
    assert_ok(store_push_begin(store, 0, &left, &pushing, &error), &error);
    store_push_block(store, &pushing, ones, 20);
    store_push_abandon(store, &pushing);
    fixture_store_create(store, "passes", CADRE_F64, 1, 1, OPTIMIZER_SGD);
    struct push step = {.shard = 8,
        .kind = PUSH_ADD,
        .closure = 997,
        .rows = 1,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION,
        .contributions = 1};
    fixture_store_push(store, &step, ones);
    assert_int_equal(store_begin_step(store, 8, 0), CADRE_OK);
    struct stream stream = copy_of(store);
    struct store *copy = fixture_store_open(-1);
    assert_ok(store_load(copy, give, &stream, &error), &error);
    assert_int_equal(stream.at, stream.count);
    assert_true(fixture_store_digest(copy) == fixture_store_digest(store));
    step.closure = 998; /* the step that it had before it was begun again */
    fixture_store_push(copy, &step, ones);
    assert_true(fixture_store_digest(copy) == fixture_store_digest(store));
    assert_true(store_nonce(copy) == store_nonce(store));
    assert_true(store_applied(copy, 7, 60, 0));
    fixture_store_push(store, &left, ones);
    fixture_store_push(copy, &left, ones);
    struct prng again = random;
    for (uint64_t i = 202; i < 260; i++) {
        push_any(store, &random, i);
        push_any(copy, &again, i);
    }
    assert_true(fixture_store_digest(copy) == fixture_store_digest(store));
    assert_error(store_load(copy, give, &stream, &error), CADRE_FAILED_PRECONDITION, &error,
        "this one holds 9 shards");
    store_close(store);
    store_close(copy);
    free(stream.bytes);
}

static void a_bad_stream_is_refused(void **state)
{
    (void)state;
    struct store *store = fixture_store_open(-1);
    struct prng random = {.state = 1};
    struct cadre_error error = {0};
    create_all(store);
    push_any(store, &random, 1);
    struct stream stream = copy_of(store);
    int fd = fixture_store_memory();
    for (size_t at = 0; at < stream.count; at += at < 200 ? 1 : 61) {
        stream.bytes[at] ^= 4;
        stream.at = 0;
        struct store *copy = fixture_store_open(fd);
        assert_int_equal(store_count(copy), 0); /* what was loaded in part is gone */
        assert_error(
            store_load(copy, give, &stream, &error), CADRE_DATA_LOSS, &error, "is not what was");
        store_close(copy);
        stream.bytes[at] ^= 4;
    }
    stream.count--;
    stream.at = 0;
    struct store *copy = fixture_store_open(fd);
    assert_int_equal(store_load(copy, give, &stream, &error), CADRE_UNAVAILABLE);
    store_close(copy);
    copy = fixture_store_open(fd);
    stream.count++;
    stream.at = 0;
    assert_ok(store_load(copy, give, &stream, &error), &error);
    uint64_t digest = fixture_store_digest(store);
    assert_true(fixture_store_digest(copy) == digest);
    store_close(copy);
    copy = fixture_store_open(fd);
    assert_true(fixture_store_digest(copy) == digest);
    store_close(copy);
    store_close(store);
    free(stream.bytes);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_goes_on_the_same),
        cmocka_unit_test(a_bad_stream_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
