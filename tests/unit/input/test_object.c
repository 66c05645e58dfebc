/* SPDX-License-Identifier: Apache-2.0
 * Objects as they are read by datasets: every byte, by index and in order, by several threads,
 * within the budget; what is fetched ahead, and what fails. */
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "tests/unit/input/fake_storage.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_memory.h"
#include "worker/library/input/objects/object_neighbours.h"

#define BLOCK OBJECT_BLOCK_BYTES
#define PATH  "s3://bucket/data"

#define WAIT_US (20 * CADRE_US_PER_S)

/* Bytes that differ at every place. */
static char *make_bytes(size_t size)
{
    char *bytes = malloc(size + 1);
    struct prng random = {.state = size};
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)prng_next(&random);
    }
    return bytes;
}

static bool nothing_held(void *unused)
{
    (void)unused;
    object_table_clear();
    return object_memory_held() == 0;
}

/* Nothing is in memory, and so many blocks have room. */
static int begin(uint64_t blocks)
{
    fake_storage_release();
    if (!test_wait(nothing_held, NULL, WAIT_US)) {
        return -1;
    }
    fake_storage_clear();
    object_memory_set_limit(blocks * BLOCK);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return begin(64);
}

static struct object *open_object(const char *path)
{
    struct object *object = NULL;
    struct cadre_error error = {0};
    ASSERT_OK(object_open(path, &object, &error));
    return object;
}

/* Reads here and there. */
static void expect_bytes(struct object *object, const char *bytes, size_t size, uint64_t seed)
{
    struct prng random = {.state = seed};
    char *to = malloc(size + 1);
    struct cadre_error error = {0};
    for (size_t i = 0; i < 300; i++) {
        size_t offset = (size_t)prng_uniform(&random, size);
        size_t most = prng_chance(&random, 1, 20) ? size - offset : 5000;
        most = most < size - offset ? most : size - offset;
        size_t count = (size_t)prng_uniform(&random, most + 1);
        object_ask(object, offset, count);
        object_prefetch(object, offset, count);
        ASSERT_OK(object_read(object, offset, to, count, &error));
        assert_memory_equal(to, bytes + offset, count);
    }
    free(to);
}

/* Many at once, of which some lie in two blocks. */
static void expect_pieces(struct object *object, const char *bytes, size_t size, uint64_t seed)
{
    struct prng random = {.state = seed};
    struct cadre_error error = {0};
    static char to[OBJECT_PIECES_MAX][700];
    for (size_t turn = 0; turn < 200; turn++) {
        struct object_piece pieces[OBJECT_PIECES_MAX];
        size_t count = (size_t)prng_uniform(&random, OBJECT_PIECES_MAX + 1);
        size_t done = 0;
        for (size_t i = 0; i < count; i++) {
            size_t offset = (size_t)prng_uniform(&random, size);
            size_t most = size - offset < sizeof to[0] ? size - offset : sizeof to[0];
            pieces[i] = (struct object_piece){.object = object,
                .offset = i % 7 == 3 && size > BLOCK ? BLOCK - 1 : offset,
                .to = to[i],
                .bytes = i % 7 == 3 && size > BLOCK ? 2 : (size_t)prng_uniform(&random, most + 1)};
        }
        ASSERT_OK(object_read_pieces(pieces, count, &done, &error));
        assert_int_equal(done, count);
        for (size_t i = 0; i < count; i++) {
            assert_memory_equal(to[i], bytes + pieces[i].offset, pieces[i].bytes);
        }
    }
}

static void by_index(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, BLOCK - 1, BLOCK, BLOCK + 1, 7 * BLOCK + 123};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *bytes = make_bytes(sizes[i]);
        fake_storage_set(PATH, bytes, sizes[i]);
        struct object *object = open_object(PATH);
        assert_int_equal(object_bytes(object), sizes[i]);
        assert_string_equal(object_path(object), PATH);
        expect_bytes(object, bytes, sizes[i], i + 1);
        expect_pieces(object, bytes, sizes[i], i + 1);
        object_close(object);
        free(bytes);
    }
}

/* What fits is fetched once, also when it is opened again. */
static void fetched_once(void **state)
{
    (void)state;
    size_t size = 40 * BLOCK + 100000;
    char *bytes = make_bytes(size);
    fake_storage_set(PATH, bytes, size);
    for (size_t i = 0; i < 3; i++) {
        struct object *object = open_object(PATH);
        expect_bytes(object, bytes, size, 7);
        struct object *other = open_object(PATH);
        assert_ptr_equal(other, object);
        object_close(other);
        object_close(object);
    }
    assert_int_equal(fake_storage_counts().bytes, size);
    assert_int_equal(fake_storage_counts().opens, 3);
    free(bytes);
}

/* No more is held than there is room for, and all is read all the same. */
static void within_the_budget(void **state)
{
    (void)state;
    for (uint64_t blocks = 1; blocks <= 8; blocks += 7) {
        assert_int_equal(begin(blocks), 0);
        size_t size = 30 * BLOCK + 77;
        char *bytes = make_bytes(size);
        fake_storage_set(PATH, bytes, size);
        struct object *object = open_object(PATH);
        assert_int_equal(object_memory_limit(), blocks);
        expect_bytes(object, bytes, size, 3);
        expect_pieces(object, bytes, size, 3);
        assert_true(object_memory_held() <= object_memory_limit());
        object_close(object);
        free(bytes);
    }
}

/* --- in order --- */

static void read_in_order(const char *bytes, size_t size, size_t step)
{
    struct object *object = open_object(PATH);
    struct object_ahead ahead = {0};
    struct cadre_error error = {0};
    char *to = malloc(step);
    for (size_t offset = 0; offset < size; offset += step) {
        size_t count = size - offset < step ? size - offset : step;
        ASSERT_OK(object_read_on(object, &ahead, offset, to, count, &error));
        assert_memory_equal(to, bytes + offset, count);
        assert_true(object_memory_held() <= object_memory_limit());
    }
    free(to);
    object_ahead_end(&ahead);
    object_close(object);
}

static void in_order(void **state)
{
    (void)state;
    static const size_t steps[] = {1000, 128 << 10, 1 << 20, 9 << 20};
    size_t size = 100 * BLOCK + 1234;
    char *bytes = make_bytes(size);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(begin(64), 0);
        fake_storage_set(PATH, bytes, size);
        read_in_order(bytes, size, steps[i]);
        /* Each byte once, in fewer requests than blocks. */
        assert_int_equal(fake_storage_counts().bytes, size);
        assert_true(fake_storage_counts().reads < 90);
    }
    free(bytes);
}

/* --- from other tasks --- */

struct neighbour {
    const char *bytes;
    bool away;
    _Atomic uint64_t reads;
    _Atomic uint64_t read_bytes;
    _Atomic uint64_t wrong; /* reads of two segments */
};

/* It has each second segment. */
static bool neighbour_read(
    void *user, const struct object *object, uint64_t offset, void *const places[], size_t bytes)
{
    struct neighbour *neighbour = user;
    uint64_t segment = offset / OBJECT_SEGMENT_BYTES;
    assert_string_equal(object_path(object), PATH);
    neighbour->wrong += (offset + bytes - 1) / OBJECT_SEGMENT_BYTES != segment;
    if (segment % 2 == 0) {
        return false;
    }
    neighbour->reads++;
    memset(places[0], 0, 1000); /* what it did not end with must not be seen */
    if (neighbour->away) {
        return false;
    }
    neighbour->read_bytes += bytes;
    for (size_t at = 0; at < bytes; at += BLOCK) {
        memcpy(places[at / BLOCK], neighbour->bytes + offset + at,
            bytes - at < BLOCK ? bytes - at : BLOCK);
    }
    return true;
}

/* In order and by index: no run is of two segments, and what it has is not asked of the store. */
static void from_a_neighbour(void **state)
{
    (void)state;
    size_t size = 70 * BLOCK + 1234;
    char *bytes = make_bytes(size);
    size_t segment = OBJECT_SEGMENT_BYTES;
    uint64_t its_own = segment + segment; /* of 0 to 4, and the last is not a whole one */
    for (int turn = 0; turn < 4; turn++) {
        struct neighbour neighbour = {.bytes = bytes, .away = turn >= 2};
        const struct object_neighbours neighbours = {.read = neighbour_read, .user = &neighbour};
        assert_int_equal(begin(128), 0);
        fake_storage_set(PATH, bytes, size);
        assert_false(object_neighbours_on());
        object_neighbours_set(&neighbours);
        assert_true(object_neighbours_on());
        if (turn % 2 == 0) {
            read_in_order(bytes, size, 100000);
        } else {
            struct object *object = open_object(PATH);
            expect_bytes(object, bytes, size, 3);
            object_close(object);
            read_in_order(bytes, size, 100000);
        }
        object_neighbours_set(NULL);
        assert_int_equal(neighbour.wrong, 0);
        assert_true(neighbour.reads > 0);
        uint64_t given = turn < 2 ? its_own : 0;
        assert_int_equal(neighbour.read_bytes, given);
        assert_int_equal(fake_storage_counts().bytes, size - given);
        assert_false(object_neighbours_on());
    }
    free(bytes);
}

/* --- at the same time --- */

struct reading {
    pthread_t thread;
    struct object *object;
    const char *bytes;
    size_t size;
    uint64_t seed;
    cadre_status status;
    struct cadre_error error;
};

static void *read_first(void *user)
{
    struct reading *reading = user;
    struct object_ahead ahead = {0};
    char byte = 0;
    reading->status = object_read_on(reading->object, &ahead, 0, &byte, 1, &reading->error);
    if (reading->status == CADRE_OK && byte != reading->bytes[0]) {
        reading->status = CADRE_UNKNOWN;
    }
    object_ahead_end(&ahead);
    return NULL;
}

static bool four_at_once(void *unused)
{
    (void)unused;
    return fake_storage_counts().at_once >= 4;
}

/* While a reader waits for the first block, the next ones are on their way. */
static void several_at_a_time(void **state)
{
    (void)state;
    size_t size = 50 * BLOCK;
    char *bytes = make_bytes(size);
    fake_storage_set(PATH, bytes, size);
    struct reading reading = {.object = open_object(PATH), .bytes = bytes};
    fake_storage_hold();
    assert_int_equal(pthread_create(&reading.thread, NULL, read_first, &reading), 0);
    bool came = test_wait(four_at_once, NULL, WAIT_US);
    fake_storage_release();
    assert_int_equal(pthread_join(reading.thread, NULL), 0);
    assert_true(came);
    assert_int_equal(reading.status, CADRE_OK);
    object_close(reading.object);
    free(bytes);
}

static void *read_all_over(void *user)
{
    struct reading *reading = user;
    struct prng random = {.state = reading->seed};
    char to[9000];
    for (size_t i = 0; i < 1500 && reading->status == CADRE_OK; i++) {
        size_t count = (size_t)prng_uniform(&random, sizeof to);
        size_t offset = (size_t)prng_uniform(&random, reading->size - sizeof to);
        reading->status = object_read(reading->object, offset, to, count, &reading->error);
        if (memcmp(to, reading->bytes + offset, count) != 0) {
            reading->status = CADRE_UNKNOWN;
        }
    }
    return NULL;
}

static void *read_through(void *user)
{
    struct reading *reading = user;
    struct object_ahead ahead = {0};
    static _Thread_local char to[70000];
    for (size_t at = 0; at < reading->size && reading->status == CADRE_OK; at += sizeof to) {
        size_t count = reading->size - at < sizeof to ? reading->size - at : sizeof to;
        reading->status = object_read_on(reading->object, &ahead, at, to, count, &reading->error);
        if (memcmp(to, reading->bytes + at, count) != 0) {
            reading->status = CADRE_UNKNOWN;
        }
    }
    object_ahead_end(&ahead);
    return NULL;
}

/* Blocks come and go while threads look at them. */
static void threads_share_it(void **state)
{
    (void)state;
    assert_int_equal(begin(9), 0);
    size_t size = 25 * BLOCK + 321;
    char *bytes = make_bytes(size);
    fake_storage_set(PATH, bytes, size);
    struct reading readings[6];
    for (size_t i = 0; i < 6; i++) {
        readings[i] = (struct reading){
            .object = open_object(PATH), .bytes = bytes, .size = size, .seed = i + 1};
        assert_int_equal(pthread_create(&readings[i].thread, NULL,
                             i % 3 == 0 ? read_through : read_all_over, &readings[i]),
            0);
    }
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(readings[i].thread, NULL), 0);
        if (readings[i].status != CADRE_OK) {
            fail_msg("thread %zu: %d %s", i, (int)readings[i].status, readings[i].error.text);
        }
        object_close(readings[i].object);
    }
    assert_true(object_memory_held() <= 9);
    free(bytes);
}

/* --- looked up ahead --- */

static bool ten_lookups(void *unused)
{
    (void)unused;
    return fake_storage_counts().opens == 10 && fake_storage_counts().reads == 10;
}

static void expected_objects(void **state)
{
    (void)state;
    char path[64];
    char *bytes = make_bytes(3 * BLOCK);
    for (size_t i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "s3://bucket/%zu", i);
        fake_storage_set(path, bytes, 3 * BLOCK);
        object_expect(path, 2);
        object_expect(path, 2);
    }
    assert_true(test_wait(ten_lookups, NULL, WAIT_US));
    object_expect("s3://bucket/none", 1);
    for (size_t i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "s3://bucket/%zu", i);
        struct object *object = open_object(path);
        expect_bytes(object, bytes, 2 * BLOCK, i);
        object_close(object);
    }
    struct fake_counts counts = fake_storage_counts();
    assert_true(counts.opens <= 11);
    assert_int_equal(counts.bytes, 20 * BLOCK);
    struct object *none = NULL;
    struct cadre_error error = {0};
    assert_int_equal(object_open("s3://bucket/none", &none, &error), CADRE_NOT_FOUND);
    assert_non_null(strstr(error.text, "s3://bucket/none"));
    free(bytes);
}

/* --- failures --- */

static void another_state(void **state)
{
    (void)state;
    size_t size = 6 * BLOCK;
    char *bytes = make_bytes(size);
    char *others = make_bytes(size + 1);
    fake_storage_set(PATH, bytes, size);
    struct object *object = open_object(PATH);
    struct cadre_error error = {0};
    char to[100];
    ASSERT_OK(object_read(object, 0, to, sizeof to, &error));
    fake_storage_set(PATH, others, size);
    /* What is in memory is of the state that was opened, and so is all that is ever given. */
    ASSERT_OK(object_read(object, 100, to, sizeof to, &error));
    assert_memory_equal(to, bytes + 100, sizeof to);
    assert_int_equal(object_read(object, 3 * BLOCK, to, sizeof to, &error), CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, PATH));
    object_close(object);
    /* When it is opened again it is the other one, and nothing is left of the first. */
    object = open_object(PATH);
    ASSERT_OK(object_read(object, 0, to, sizeof to, &error));
    assert_memory_equal(to, others, sizeof to);
    object_close(object);
    free(bytes);
    free(others);
}

/* What follows a "?" may be a signature. */
static void a_shorter_one_at_a_url(void **state)
{
    (void)state;
    const char *path = "https://host/data?signature=hush";
    struct cadre_error error = {0};
    char to[100];
    fake_storage_set(path, "0123456789", 10);
    struct object *object = open_object(path);
    fake_storage_fail("data", CADRE_OUT_OF_RANGE, 1);
    assert_int_equal(object_read(object, 0, to, 10, &error), CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, "https://host/data is shorter"));
    object_close(object);
}

/* What is read ahead and fails is read again by the reader that comes there, and only a failure of
 * that is one. */
static void failures(void **state)
{
    (void)state;
    size_t size = 20 * BLOCK;
    char *bytes = make_bytes(size);
    fake_storage_set(PATH, bytes, size);
    for (unsigned times = 1; times < 30; times++) {
        struct object *object = open_object(PATH);
        struct object_ahead ahead = {0};
        struct cadre_error error = {0};
        char to[3000];
        fake_storage_fail("data", CADRE_UNAVAILABLE, times);
        for (size_t at = 0; at < size; at += sizeof to) {
            size_t count = size - at < sizeof to ? size - at : sizeof to;
            cadre_status status = CADRE_UNAVAILABLE;
            for (unsigned again = 0; again <= times && status == CADRE_UNAVAILABLE; again++) {
                status = object_read_on(object, &ahead, at, to, count, &error);
            }
            ASSERT_OK(status);
            assert_memory_equal(to, bytes + at, count);
        }
        object_ahead_end(&ahead);
        object_close(object);
        assert_true(test_wait(nothing_held, NULL, WAIT_US));
    }
    free(bytes);
}

static void no_memory_no_threads(void **state)
{
    (void)state;
    size_t size = 12 * BLOCK + 9;
    char *bytes = make_bytes(size);
    fake_storage_set(PATH, bytes, size);
    for (uint64_t nth = 1;; nth++) {
        struct object *object = NULL;
        struct cadre_error error = {0};
        fault_arm("input.object", nth);
        cadre_status status = object_open(PATH, &object, &error);
        if (status == CADRE_OK) {
            expect_bytes(object, bytes, size, nth);
        } else {
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
        }
        bool met = fault_disarm();
        object_close(object);
        assert_true(test_wait(nothing_held, NULL, WAIT_US));
        if (!met) {
            break;
        }
    }
    free(bytes);
}

static void settings(void **state)
{
    (void)state;
    static const char *const wrong[] = {"0", "7", "many", "64x", "-64", "99999999999", " 64"};
    struct object *object = NULL;
    struct cadre_error error = {0};
    fake_storage_set(PATH, "abc", 3);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        object_memory_set_limit(0);
        setenv("CADRE_OBJECT_MEMORY_MIB", wrong[i], 1);
        assert_int_equal(object_open(PATH, &object, &error), CADRE_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, wrong[i]));
        assert_non_null(strstr(error.text, "CADRE_OBJECT_MEMORY_MIB"));
    }
    setenv("CADRE_OBJECT_MEMORY_MIB", "20", 1);
    object_close(open_object(PATH));
    assert_int_equal(object_memory_limit() * BLOCK, 20 << 20);
    unsetenv("CADRE_OBJECT_MEMORY_MIB");
    object_memory_set_limit(0);
    fault_arm("input.object-map", 1);
    assert_int_equal(object_open(PATH, &object, &error), CADRE_RESOURCE_EXHAUSTED);
    assert_true(fault_disarm());
    assert_non_null(strstr(error.text, "set CADRE_OBJECT_MEMORY_MIB to less"));
    object_close(open_object(PATH));
    assert_true(object_memory_limit() * BLOCK <= (1 << 30));
    assert_int_equal(object_open("s3://bucket", &object, &error), CADRE_INVALID_ARGUMENT);
}

/* Those that no one has open are kept for a while, not for ever. */
static void many_objects(void **state)
{
    (void)state;
    char path[64];
    for (size_t i = 0; i < 3000; i++) {
        snprintf(path, sizeof path, "s3://bucket/%zu", i);
        fake_storage_set(path, path, strlen(path));
        struct object *object = open_object(path);
        struct cadre_error error = {0};
        char to[64];
        ASSERT_OK(object_read(object, 0, to, strlen(path), &error));
        assert_memory_equal(to, path, strlen(path));
        object_close(object);
        assert_true(object_memory_held() <= object_memory_limit());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(by_index, setup),
        cmocka_unit_test_setup(fetched_once, setup),
        cmocka_unit_test_setup(within_the_budget, setup),
        cmocka_unit_test_setup(in_order, setup),
        cmocka_unit_test_setup(from_a_neighbour, setup),
        cmocka_unit_test_setup(several_at_a_time, setup),
        cmocka_unit_test_setup(threads_share_it, setup),
        cmocka_unit_test_setup(expected_objects, setup),
        cmocka_unit_test_setup(another_state, setup),
        cmocka_unit_test_setup(a_shorter_one_at_a_url, setup),
        cmocka_unit_test_setup(failures, setup),
        cmocka_unit_test_setup(no_memory_no_threads, setup),
        cmocka_unit_test_setup(settings, setup),
        cmocka_unit_test_setup(many_objects, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
