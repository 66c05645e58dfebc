/* SPDX-License-Identifier: Apache-2.0
 * Communicators of one rank and of two, each rank driven by a thread of its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "plugin.h"

#define COUNT      ((size_t)5000)
#define RANKS_MAX  2
#define PART_BYTES ((size_t)12345)

/* One rank. No assert of cmocka's in its thread: `failed` has the failure. */
struct rank {
    pthread_t thread;
    struct device_comm *comm;
    uint32_t rank;
    uint32_t world;
    uint32_t device;
    void *stream;
    struct cadre_error error;
    const char *failed;
    void (*work)(struct rank *rank);
};

#define TRY(rank, condition)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (rank)->failed = #condition;                                                           \
            return;                                                                                \
        }                                                                                          \
    } while (0)

static cadre_status rest_of_comm(struct rank *rank, cadre_status status)
{
    uint64_t end_us = clock_monotonic_us() + PLUGIN_WAIT_US;
    while (status == CADRE_PENDING && clock_monotonic_us() < end_us) {
        status = ops->comm->test(rank->comm, &rank->error);
    }
    return status;
}

static cadre_status rest_of_stream(struct rank *rank)
{
    uint64_t end_us = clock_monotonic_us() + PLUGIN_WAIT_US;
    cadre_status status = CADRE_PENDING;
    while (status == CADRE_PENDING && clock_monotonic_us() < end_us) {
        status = ops->stream_test(rank->stream, &rank->error);
    }
    return status;
}

/* What was enqueued on the communicator is done. */
static bool done(struct rank *rank, cadre_status posted)
{
    return rest_of_comm(rank, posted) == CADRE_OK && rest_of_stream(rank) == CADRE_OK;
}

static void form(struct rank ranks[], uint32_t world)
{
    struct cadre_error error = {.code = CADRE_OK};
    uint8_t id[DEVICE_COMM_ID_BYTES];
    uint32_t numbers[RANKS_MAX];
    struct device_comm *comms[RANKS_MAX] = {NULL};
    assert_ok(ops->comm->unique_id(id, &error), &error);
    for (uint32_t i = 0; i < world; i++) {
        ranks[i] = (struct rank){.rank = i, .world = world, .device = i, .stream = stream_of(i)};
        numbers[i] = i;
    }
    assert_ok(ops->comm->post(id, world, world, numbers, numbers, comms, &error), &error);
    for (uint32_t i = 0; i < world; i++) {
        assert_non_null(comms[i]);
        ranks[i].comm = comms[i];
    }
    for (uint32_t i = 0; i < world; i++) {
        if (rest_of_comm(&ranks[i], CADRE_PENDING) != CADRE_OK) {
            fail_msg("rank %u: %s", i, ranks[i].error.text);
        }
        assert_non_null(ops->comm->raw(comms[i]));
    }
}

static void *run(void *data)
{
    struct rank *rank = data;
    rank->work(rank);
    return NULL;
}

static void run_all(struct rank ranks[], uint32_t world, void (*work)(struct rank *))
{
    for (uint32_t i = 0; i < world; i++) {
        ranks[i].work = work;
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < world; i++) {
        pthread_join(ranks[i].thread, NULL);
    }
    for (uint32_t i = 0; i < world; i++) {
        if (ranks[i].failed != NULL) {
            fail_msg("rank %u of %u: %s: %s", i, world, ranks[i].failed, ranks[i].error.text);
        }
    }
}

static void end_ranks(struct rank ranks[], uint32_t world, void (*end)(struct device_comm *))
{
    for (uint32_t i = 0; i < world; i++) {
        end(ranks[i].comm);
    }
    for (uint32_t i = 0; i < world; i++) {
        ops->stream_close(ranks[i].stream);
    }
}

/* --- the collectives --- */

/* Small numbers, of which all sums and products are exact; different on each rank. */
static float number(uint32_t rank, size_t i)
{
    return (float)(1 + (i * 7 + rank * 3) % 11);
}

static float combined(enum device_reduction reduction, uint32_t world, size_t i)
{
    float result = number(0, i);
    for (uint32_t rank = 1; rank < world; rank++) {
        float other = number(rank, i);
        switch (reduction) {
        case DEVICE_REDUCE_SUM:
            result += other;
            break;
        case DEVICE_REDUCE_PROD:
            result *= other;
            break;
        case DEVICE_REDUCE_MIN:
            result = other < result ? other : result;
            break;
        default:
            result = other > result ? other : result;
            break;
        }
    }
    return result;
}

/* A float vector in place, an integer vector elsewhere and an empty one, as one group. */
static void all_reduce(struct rank *rank)
{
    static const enum device_reduction reductions[] = {
        DEVICE_REDUCE_SUM, DEVICE_REDUCE_PROD, DEVICE_REDUCE_MIN, DEVICE_REDUCE_MAX};
    float floats[COUNT];
    int32_t integers[COUNT];
    void *memory = NULL;
    TRY(rank,
        ops->memory_get(rank->device, 12 * COUNT, rank->stream, &memory, &rank->error) == CADRE_OK);
    float *a = memory;
    int32_t *b = (int32_t *)memory + COUNT;
    struct device_vector vectors[] = {
        {.from = a, .to = a, .count = COUNT, .dtype = CADRE_F32},
        {.from = NULL, .to = NULL, .count = 0, .dtype = CADRE_F64},
        {.from = b, .to = b + COUNT, .count = COUNT, .dtype = CADRE_I32},
    };
    for (size_t r = 0; r < 4; r++) {
        for (size_t i = 0; i < COUNT; i++) {
            floats[i] = number(rank->rank, i);
            integers[i] = (int32_t)number(rank->rank, i);
        }
        TRY(rank, ops->copy(a, floats, 4 * COUNT, rank->stream, &rank->error) == CADRE_OK);
        TRY(rank, ops->copy(b, integers, 4 * COUNT, rank->stream, &rank->error) == CADRE_OK);
        TRY(rank, done(rank, ops->comm->all_reduce(rank->comm, reductions[r], vectors, 3,
                                 rank->stream, &rank->error)));
        TRY(rank, ops->copy(floats, a, 4 * COUNT, rank->stream, &rank->error) == CADRE_OK);
        TRY(rank,
            ops->copy(integers, b + COUNT, 4 * COUNT, rank->stream, &rank->error) == CADRE_OK);
        TRY(rank, rest_of_stream(rank) == CADRE_OK);
        for (size_t i = 0; i < COUNT; i++) {
            TRY(rank, floats[i] == combined(reductions[r], rank->world, i));
            TRY(rank, integers[i] == (int32_t)combined(reductions[r], rank->world, i));
        }
    }
    TRY(rank, ops->comm->all_reduce(rank->comm, DEVICE_REDUCE_SUM, vectors, 0, rank->stream,
                  &rank->error) == CADRE_OK);
    ops->memory_give(rank->device, memory, rank->stream);
}

static void reduce_scatter(struct rank *rank)
{
    float in[RANKS_MAX * COUNT];
    void *memory = NULL;
    TRY(rank, ops->memory_get(rank->device, sizeof in + 4 * COUNT, rank->stream, &memory,
                  &rank->error) == CADRE_OK);
    float *from = memory;
    float *to = from + RANKS_MAX * COUNT;
    size_t count = rank->world * COUNT;
    for (size_t i = 0; i < count; i++) {
        in[i] = number(rank->rank, i);
    }
    struct device_vector part = {.from = from, .to = to, .count = COUNT, .dtype = CADRE_F32};
    TRY(rank, ops->copy(from, in, 4 * count, rank->stream, &rank->error) == CADRE_OK);
    TRY(rank, done(rank, ops->comm->reduce_scatter(
                             rank->comm, DEVICE_REDUCE_SUM, &part, rank->stream, &rank->error)));
    TRY(rank, ops->copy(in, to, 4 * COUNT, rank->stream, &rank->error) == CADRE_OK);
    TRY(rank, rest_of_stream(rank) == CADRE_OK);
    for (size_t i = 0; i < COUNT; i++) {
        TRY(rank, in[i] == combined(DEVICE_REDUCE_SUM, rank->world, rank->rank * COUNT + i));
    }
    ops->memory_give(rank->device, memory, rank->stream);
}

/* Bytes of all, and of one; of types that nothing is calculated with. */
static void gather_and_broadcast(struct rank *rank)
{
    unsigned char in[RANKS_MAX * PART_BYTES];
    void *memory = NULL;
    TRY(rank, ops->memory_get(rank->device, sizeof in + PART_BYTES, rank->stream, &memory,
                  &rank->error) == CADRE_OK);
    unsigned char *to = memory;
    unsigned char *from = to + RANKS_MAX * PART_BYTES;
    TRY(rank, ops->fill(from, (uint8_t)(rank->rank + 1), PART_BYTES, rank->stream, &rank->error) ==
                  CADRE_OK);
    TRY(rank, done(rank, ops->comm->all_gather(
                             rank->comm, from, PART_BYTES, to, rank->stream, &rank->error)));
    TRY(rank, ops->copy(in, to, rank->world * PART_BYTES, rank->stream, &rank->error) == CADRE_OK);
    TRY(rank, rest_of_stream(rank) == CADRE_OK);
    for (size_t i = 0; i < rank->world * PART_BYTES; i++) {
        TRY(rank, in[i] == 1 + i / PART_BYTES);
    }
    uint32_t root = rank->world - 1;
    struct device_vector vectors[] = {
        {.from = from, .to = from, .count = 1000, .dtype = CADRE_BOOL},
        {.from = from + 2000, .to = from + 2000, .count = 100, .dtype = CADRE_I16},
        {.from = from + 4000, .to = from + 4000, .count = 50, .dtype = CADRE_F64},
    };
    TRY(rank,
        done(rank, ops->comm->broadcast(rank->comm, root, vectors, 3, rank->stream, &rank->error)));
    TRY(rank, ops->copy(in, from, PART_BYTES, rank->stream, &rank->error) == CADRE_OK);
    TRY(rank, rest_of_stream(rank) == CADRE_OK);
    for (size_t i = 0; i < PART_BYTES; i++) {
        bool sent = i < 1000 || (i >= 2000 && i < 2200) || (i >= 4000 && i < 4400);
        TRY(rank, in[i] == 1 + (sent ? root : rank->rank));
    }
    ops->memory_give(rank->device, memory, rank->stream);
}

static void every_collective(struct rank *rank)
{
    all_reduce(rank);
    if (rank->failed == NULL) {
        reduce_scatter(rank);
    }
    if (rank->failed == NULL) {
        gather_and_broadcast(rank);
    }
}

static void collectives_of(uint32_t world)
{
    struct rank ranks[RANKS_MAX];
    form(ranks, world);
    run_all(ranks, world, every_collective);
    end_ranks(ranks, world, ops->comm->destroy);
    form(ranks, world); /* and again, ended the other way */
    run_all(ranks, world, reduce_scatter);
    end_ranks(ranks, world, ops->comm->abort);
}

static void test_one_rank(void **state)
{
    (void)state;
    collectives_of(1);
}

static void test_two_ranks(void **state)
{
    (void)state;
    if (devices < 2) {
        fprintf(stderr, "two ranks: skipped, one GPU is here\n");
        skip();
    }
    collectives_of(2);
}

static void test_types(void **state)
{
    (void)state;
    static const cadre_dtype reduced[] = {
        CADRE_F64, CADRE_F32, CADRE_F16, CADRE_BF16, CADRE_I64, CADRE_I32, CADRE_I8, CADRE_U8};
    for (size_t i = 0; i < sizeof reduced / sizeof reduced[0]; i++) {
        assert_true(ops->comm->takes(reduced[i]));
    }
    assert_false(ops->comm->takes(CADRE_I16));
    assert_false(ops->comm->takes(CADRE_BOOL));
    assert_false(ops->comm->takes(CADRE_STRING));
    assert_false(ops->comm->takes(CADRE_DTYPE_NONE));
    assert_false(ops->comm->takes((cadre_dtype)99));
}

static void test_what_cannot_be_asked(void **state)
{
    (void)state;
    struct rank rank;
    struct cadre_error error = {.code = CADRE_OK};
    int local = 0;
    form(&rank, 1);
    struct device_vector vector = {.count = 1, .dtype = CADRE_I16};
    assert_error(
        ops->comm->all_reduce(rank.comm, DEVICE_REDUCE_SUM, &vector, 1, rank.stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "cannot be reduced");
    assert_error(
        ops->comm->reduce_scatter(rank.comm, DEVICE_REDUCE_SUM, &vector, rank.stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "cannot be reduced");
    vector.dtype = CADRE_STRING;
    assert_error(ops->comm->broadcast(rank.comm, 0, &vector, 1, rank.stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "cannot be sent");
    vector.dtype = CADRE_F32;
    assert_error(ops->comm->broadcast(rank.comm, 1, &vector, 1, rank.stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "no rank 1");
    assert_error(
        ops->comm->all_reduce(rank.comm, (enum device_reduction)7, &vector, 1, rank.stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "no reduction 7");
    assert_error(ops->comm->all_gather(rank.comm, &local, 4, &local, &local, &error),
        CADRE_INVALID_ARGUMENT, &error, "no stream");
    if (devices > 1) {
        void *other = stream_of(1);
        assert_error(ops->comm->all_gather(rank.comm, &local, 4, &local, other, &error),
            CADRE_INVALID_ARGUMENT, &error, "the stream is of GPU 1");
        ops->stream_close(other);
    }
    /* None of that was the communicator's failure. */
    assert_int_equal(ops->comm->test(rank.comm, &error), CADRE_OK);
    end_ranks(&rank, 1, ops->comm->destroy);
    ops->comm->destroy(NULL);
    ops->comm->abort(NULL);
}

static void test_ranks_that_are_not_there(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    uint8_t id[DEVICE_COMM_ID_BYTES];
    uint32_t rank = 2;
    uint32_t device = 0;
    struct device_comm *comm = NULL;
    assert_ok(ops->comm->unique_id(id, &error), &error);
    assert_error(ops->comm->post(id, 2, 1, &rank, &device, &comm, &error), CADRE_INVALID_ARGUMENT,
        &error, "no rank 2");
    assert_null(comm);
    assert_error(ops->comm->post(id, 1, 0, NULL, NULL, NULL, &error), CADRE_INVALID_ARGUMENT,
        &error, "one device at least");
    rank = 0;
    device = devices + 70;
    assert_error(ops->comm->post(id, 1, 1, &rank, &device, &comm, &error), CADRE_INVALID_ARGUMENT,
        &error, "GPU");
    assert_null(comm);
}

/* A rank alone waits for the other one until it is aborted, which another thread does. */
static void *abort_it(void *data)
{
    ops->comm->abort(data);
    return NULL;
}

static void test_abort_while_forming(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    uint8_t id[DEVICE_COMM_ID_BYTES];
    uint32_t rank = 0;
    uint32_t device = 0;
    struct device_comm *comm = NULL;
    pthread_t thread;
    assert_ok(ops->comm->unique_id(id, &error), &error);
    assert_ok(ops->comm->post(id, 2, 1, &rank, &device, &comm, &error), &error);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(ops->comm->test(comm, &error), CADRE_PENDING);
    }
    assert_int_equal(pthread_create(&thread, NULL, abort_it, comm), 0);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_two_ranks),
        cmocka_unit_test(test_what_cannot_be_asked),
        cmocka_unit_test(test_ranks_that_are_not_there),
        cmocka_unit_test(test_abort_while_forming),
    };
    plugin_open_with_devices(argc, argv);
    if (ops->comm == NULL) {
        struct device_driver driver;
        char text[256];
        ops->driver(&driver);
        snprintf(text, sizeof text, "no NCCL here: %s", driver.collectives_from);
        test_skip(text);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
