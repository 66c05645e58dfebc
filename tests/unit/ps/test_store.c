/* SPDX-License-Identifier: Apache-2.0
 * Shards, notes, the memory they lie in, and which pushes are applied. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "store_fixture.h"
#include "worker/library/ps/store/store_internal.h"

static struct store *store;

static int open_one(void **state)
{
    (void)state;
    store = fixture_store_open(-1);
    return 0;
}

static int close_one(void **state)
{
    (void)state;
    store_close(store);
    return 0;
}

static struct push push_of(uint32_t shard, enum push_kind kind, uint64_t rows, uint64_t closure)
{
    return (struct push){.shard = shard,
        .kind = kind,
        .rows = rows,
        .closure = closure,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION};
}

/* ---- shards ---- */

static void a_shard_is_made_once(void **state)
{
    (void)state;
    assert_int_equal(fixture_store_create(store, "a", CADRE_F32, 4, 3, OPTIMIZER_ADAM), 0);
    assert_int_equal(fixture_store_create(store, "b", CADRE_I8, 0, 7, OPTIMIZER_NONE), 1);
    assert_int_equal(fixture_store_create(store, "a", CADRE_F32, 4, 3, OPTIMIZER_ADAM), 0);
    assert_int_equal(store_count(store), 2);
    assert_string_equal(store_spec(store, 0)->name, "a");
    const float *rows = store_rows(store, 0, 0, 4);
    for (int i = 0; i < 12; i++) {
        assert_true(rows[i] == 0);
    }
    assert_non_null(store_slot(store, 0, 1));
    assert_null(store_slot(store, 0, 2));
    assert_null(store_slot(store, 1, 0));
    struct store_spec other = *store_spec(store, 0);
    other.rows = 5;
    struct cadre_error error = {0};
    uint32_t shard = 0;
    assert_error(store_create(store, &other, &shard, &error), CADRE_ALREADY_EXISTS, &error,
        "shard 0 of `a` is there already, as 4 rows of 3 f32 elements; this one has 5 rows");
    other.shard = 1;
    assert_ok(store_create(store, &other, &shard, &error), &error);
    assert_int_equal(shard, 2);
}

static void what_is_no_shard_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct store_spec spec;
        const char *part;
    } cases[] = {
        {{.name = "", .dtype = CADRE_F32}, "name has 1 to 143 bytes"},
        {{.name = "x", .dtype = CADRE_STRING}, "its type is string"},
        {{.name = "x"}, "its type is none"},
        {{.name = "x", .dtype = CADRE_F64, .rows = UINT64_MAX / 4, .row_elements = 8}, "counted"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        uint32_t shard = 0;
        assert_error(store_create(store, &cases[i].spec, &shard, &error), CADRE_INVALID_ARGUMENT,
            &error, cases[i].part);
    }
    assert_int_equal(store_count(store), 0);
}

static void there_is_an_end_of_memory(void **state)
{
    (void)state;
    struct store_options options = {.fd = -1, .limit_bytes = 3 << 20};
    struct store *small = NULL;
    bool kept = true;
    struct cadre_error error = {0};
    assert_ok(store_open(&options, &small, &kept, &error), &error);
    assert_false(kept);
    struct store_spec spec = {
        .name = "embedding", .shard = 2, .dtype = CADRE_F32, .rows = 1 << 20, .row_elements = 4};
    uint32_t shard = 0;
    assert_error(store_create(small, &spec, &shard, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "ps has no room for shard 2 of `embedding`: 16.0 MiB were asked for and 3.0 MiB are left; "
        "add servers (--ps) or memory");
    spec.rows = 1 << 16; /* 1 MiB */
    assert_ok(store_create(small, &spec, &shard, &error), &error);
    spec.rows = UINT64_C(1) << 42; /* of any machine */
    spec.shard = 3;
    assert_int_equal(store_create(store, &spec, &shard, &error), CADRE_RESOURCE_EXHAUSTED);
    store_close(small);
}

static void addresses_stay(void **state)
{
    (void)state;
    uint32_t first = fixture_store_create(store, "first", CADRE_F32, 10, 10, OPTIMIZER_NONE);
    const void *rows = store_rows(store, first, 0, 10);
    for (uint32_t i = 0; i < 300; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", i);
        assert_int_equal(
            fixture_store_create(store, name, CADRE_F32, 1000, 10, OPTIMIZER_SGD), i + 1);
    }
    assert_ptr_equal(store_rows(store, first, 0, 10), rows);
}

static void notes_are_replaced(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char text[300];
    memset(text, 'x', sizeof text);
    size_t count = 1;
    assert_null(store_note_find(store, "a", &count));
    assert_int_equal(count, 0);
    assert_ok(store_note(store, "a", "one", 3, &error), &error);
    assert_ok(store_note(store, "b", NULL, 0, &error), &error);
    for (size_t i = 0; i < sizeof text; i += 7) {
        assert_ok(store_note(store, "a", text, i, &error), &error);
        const char *noted = store_note_find(store, "a", &count);
        assert_int_equal(count, i);
        assert_memory_equal(noted, text, i);
    }
    uint64_t end = atomic_load(&store->head->end);
    for (int i = 0; i < 100; i++) { /* texts take turns */
        assert_ok(store_note(store, "a", text, 1, &error), &error);
    }
    assert_true(atomic_load(&store->head->end) <= end + 512);
    assert_string_equal(store_note_at(store, 0), "a");
    assert_string_equal(store_note_at(store, 1), "b");
    assert_null(store_note_at(store, 2));
    memset(text, 'n', sizeof text);
    text[sizeof text - 1] = 0;
    assert_error(store_note(store, text, "", 0, &error), CADRE_INVALID_ARGUMENT, &error,
        "1 to 143 bytes, and this one 299");
}

/* ---- pushes ---- */

static void a_push_is_applied_once(void **state)
{
    (void)state;
    fixture_store_create(store, "a", CADRE_I64, 3, 1, OPTIMIZER_NONE);
    const int64_t ones[] = {1, 2, 3};
    struct push push = push_of(0, PUSH_ADD, 3, 7);
    for (int i = 0; i < 3; i++) {
        fixture_store_push(store, &push, ones);
    }
    push.ordinal = 1;
    fixture_store_push(store, &push, ones);
    push.closure = 8;
    fixture_store_push(store, &push, ones);
    assert_memory_equal(store_rows(store, 0, 0, 3), ((int64_t[]){3, 6, 9}), 24);
    assert_int_equal(store_version(store, 0), 3);
    assert_true(store_applied(store, 0, 7, 1));
    assert_false(store_applied(store, 0, 8, 0));
    push.closure = 0; /* not recorded */
    fixture_store_push(store, &push, ones);
    fixture_store_push(store, &push, ones);
    assert_memory_equal(store_rows(store, 0, 1, 1), ((int64_t[]){10}), 8);
    assert_int_equal(store_version(store, 0), 5);
    push.kind = PUSH_ASSIGN;
    fixture_store_push(store, &push, ones);
    assert_int_equal(store_version(store, 0), 5);
    assert_memory_equal(store_rows(store, 0, 0, 3), ones, 24);
}

static void what_was_left_goes_on(void **state)
{
    (void)state;
    fixture_store_create(store, "a", CADRE_I64, 4, 10000, OPTIMIZER_NONE); /* a row is two pieces */
    static int64_t values[4 * 10000];
    for (int i = 0; i < 4 * 10000; i++) {
        values[i] = i;
    }
    struct push push = push_of(0, PUSH_ADD, 4, 1);
    struct pushing pushing;
    struct pushing again;
    struct cadre_error error = {0};
    assert_ok(store_push_begin(store, 0, &push, &pushing, &error), &error);
    store_push_block(store, &pushing, values, 2);
    assert_int_equal(store_push_begin(store, 1, &push, &again, &error), CADRE_PENDING);
    store_push_abandon(store, &pushing);
    assert_ok(store_push_begin(store, 1, &push, &again, &error), &error);
    assert_false(again.applied);
    assert_int_equal(again.rows_done, 2);
    store_push_abandon(store, &again);
    /* As if a process had died between the pieces of a row. */
    for (uint64_t i = 0; i < store->table->capacity; i++) {
        if (atomic_load(&store->table->entries[i].closure) == 1) {
            int64_t *rows = (int64_t *)(uintptr_t)store_rows(store, 0, 0, 4);
            for (int element = 20000; element < 25000; element++) {
                rows[element] += values[element];
            }
            atomic_store(&store->table->entries[i].progress, 25000);
        }
    }
    assert_ok(store_push_begin(store, 1, &push, &again, &error), &error);
    assert_int_equal(again.rows_done, 2);
    store_push_block(store, &again, values + 20000, 2);
    store_push_end(store, &again);
    assert_memory_equal(store_rows(store, 0, 0, 4), values, sizeof values);
    assert_ok(store_push_begin(store, 0, &push, &pushing, &error), &error);
    assert_true(pushing.applied);
    push.ordinal = 1;
    assert_ok(store_push_begin(store, 0, &push, &pushing, &error), &error);
    store_push_block(store, &pushing, values, 2);
    store_push_abandon(store, &pushing);
    push.rows = 1; /* another one under its number */
    assert_error(store_push_begin(store, 0, &push, &pushing, &error), CADRE_INVALID_ARGUMENT,
        &error, "push 1 of closure 1 was begun with other rows");
}

static void what_cannot_be_pushed(void **state)
{
    (void)state;
    fixture_store_create(store, "a", CADRE_I64, 3, 1, OPTIMIZER_NONE);
    fixture_store_create(store, "b", CADRE_BOOL, 3, 1, OPTIMIZER_NONE);
    static const int64_t ids[] = {2, -1};
    const struct {
        struct push push;
        cadre_status code;
        const char *part;
    } cases[] = {
        {push_of(2, PUSH_ADD, 1, 1), CADRE_INVALID_ARGUMENT, "ps has 2 shards, and shard number 2"},
        {push_of(0, PUSH_UPDATE, 1, 1), CADRE_FAILED_PRECONDITION, "`a` has no optimizer"},
        {push_of(1, PUSH_SUB, 1, 1), CADRE_INVALID_ARGUMENT, "`b` is of bool"},
        {push_of(0, (enum push_kind)9, 1, 1), CADRE_INVALID_ARGUMENT, "kind of push 9"},
        {push_of(0, PUSH_ADD, 4, 1), CADRE_OUT_OF_RANGE, "has 3 rows, and 4 from row 0"},
        {{.kind = PUSH_ADD, .rows = 2, .first_row = 2, .based_on = PUSH_ANY_VERSION},
            CADRE_OUT_OF_RANGE, "2 from row 2"},
        {{.kind = PUSH_ADD, .rows = UINT64_MAX, .first_row = 2, .based_on = PUSH_ANY_VERSION},
            CADRE_OUT_OF_RANGE, "3 rows"},
        {{.kind = PUSH_ADD, .sparse = true, .ids = ids, .rows = 2, .based_on = PUSH_ANY_VERSION},
            CADRE_OUT_OF_RANGE, "has 3 rows, and row -1 was pushed"},
        {push_of(0, PUSH_ADD, 1, UINT64_MAX), CADRE_INVALID_ARGUMENT,
            "closure 18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pushing pushing;
        struct cadre_error error = {0};
        assert_error(store_push_begin(store, 0, &cases[i].push, &pushing, &error), cases[i].code,
            &error, cases[i].part);
    }
    assert_false(store_applied(store, 0, 1, 0));
}

static void stale_ones_are_refused(void **state)
{
    (void)state;
    fixture_store_create(store, "a", CADRE_I64, 1, 1, OPTIMIZER_NONE);
    const int64_t one = 1;
    for (uint64_t i = 1; i <= 5; i++) {
        struct push push = push_of(0, PUSH_ADD, 1, i);
        fixture_store_push(store, &push, &one);
    }
    struct push push = push_of(0, PUSH_ADD, 1, 9);
    push.based_on = 2;
    push.staleness = 2;
    struct pushing pushing;
    struct cadre_error error = {0};
    assert_error(store_push_begin(store, 0, &push, &pushing, &error), CADRE_ABORTED, &error,
        "shard 0 of `a` has version 5, 3 pushes after the 2 that this one is based on, and 2 may");
    push.staleness = 3;
    fixture_store_push(store, &push, &one);
    push.staleness = 0; /* it was applied: it is not asked again */
    fixture_store_push(store, &push, &one);
    assert_int_equal(store_version(store, 0), 6);
}

/* Far more pushes than are remembered at a time cost no more memory than those. */
static void what_is_forgotten_makes_room(void **state)
{
    (void)state;
    fixture_store_create(store, "a", CADRE_I64, 1, 1, OPTIMIZER_NONE);
    const int64_t one = 1;
    const uint64_t count = 60000;
    for (uint64_t i = 1; i <= count; i++) {
        struct push push = push_of(0, PUSH_ADD, 1, i);
        fixture_store_push(store, &push, &one);
        if (i % 500 == 0) {
            store_forget(store, i - 100);
            assert_true(store_applied(store, 0, i, 0));
            assert_true(store_applied(store, 0, i - 99, 0));
        }
    }
    assert_true(store->table->capacity <= 4096);
    assert_true(atomic_load(&store->head->end) < 2 << 20);
    assert_memory_equal(store_rows(store, 0, 0, 1), &count, 8);
    struct push late = push_of(0, PUSH_ADD, 1, 3); /* no client waits for it */
    fixture_store_push(store, &late, &one);
    store_forget(store, 1); /* never back */
    fixture_store_push(store, &late, &one);
    assert_memory_equal(store_rows(store, 0, 0, 1), &count, 8);
    for (uint64_t i = 0; i < 20000; i++) { /* and many are remembered */
        struct push push = push_of(0, PUSH_ADD, 1, count + i);
        push.ordinal = 1;
        fixture_store_push(store, &push, &one);
    }
    for (uint64_t i = 0; i < 20000; i++) {
        assert_true(store_applied(store, 0, count + i, 1));
        assert_false(store_applied(store, 0, count + i, 2));
    }
}

/* ---- memory that was kept ---- */

static cadre_status open_again(
    int fd, uint64_t nonce, struct store **ret_store, bool *ret_existing, struct cadre_error *error)
{
    struct store_options options = {.fd = fd, .generation = {.number = 1, .nonce = nonce}};
    return store_open(&options, ret_store, ret_existing, error);
}

static void fill_some(struct store *one)
{
    struct cadre_error error = {0};
    fixture_store_create(one, "a", CADRE_F64, 4, 2, OPTIMIZER_ADAM);
    fixture_store_create(one, "b", CADRE_I8, 5, 1, OPTIMIZER_NONE);
    assert_ok(store_note(one, "a", "four rows", 9, &error), &error);
    const double values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct push push = push_of(0, PUSH_UPDATE, 4, 1);
    fixture_store_push(one, &push, values);
    push.ordinal = 1;
    push.contributions = 2;
    fixture_store_push(one, &push, values);
}

static void memory_is_of_a_generation(void **state)
{
    (void)state;
    int fd = fixture_store_memory();
    struct cadre_error error = {0};
    struct store *one = NULL;
    bool kept = true;
    assert_ok(open_again(fd, 2, &one, &kept, &error), &error);
    assert_false(kept);
    fill_some(one);
    uint64_t nonce = store_nonce(one);
    uint64_t digest = fixture_store_digest(one);
    store_close(one);
    assert_ok(open_again(fd, 2, &one, &kept, &error), &error);
    assert_true(kept);
    assert_true(store_nonce(one) == nonce);
    assert_true(fixture_store_digest(one) == digest);
    assert_true(store_applied(one, 0, 1, 0));
    store_close(one);
    assert_ok(open_again(fd, 3, &one, &kept, &error), &error);
    assert_false(kept);
    assert_int_equal(store_count(one), 0);
    assert_true(store_nonce(one) != nonce);
    fill_some(one);
    assert_true(fixture_store_digest(one) == digest);
    store_close(one);
    close(fd);
}

static void what_no_server_wrote_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *one = NULL;
    bool kept = false;
    int fd = fixture_store_memory();
    assert_int_equal(write(fd, "something else", 14), 14);
    assert_error(open_again(fd, 2, &one, &kept, &error), CADRE_DATA_LOSS, &error, "is cut");
    assert_int_equal(ftruncate(fd, 8192), 0);
    assert_error(
        open_again(fd, 2, &one, &kept, &error), CADRE_DATA_LOSS, &error, "was not written by");
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_ok(open_again(fd, 2, &one, &kept, &error), &error);
    fill_some(one);
    store_close(one);
    struct stat found;
    assert_int_equal(fstat(fd, &found), 0);
    for (off_t size = 1; size < found.st_size; size += 5000) {
        int cut = fixture_store_memory();
        char bytes[4096];
        for (off_t at = 0; at < size; at += (off_t)sizeof bytes) {
            size_t count = size - at < (off_t)sizeof bytes ? (size_t)(size - at) : sizeof bytes;
            assert_int_equal(pread(fd, bytes, count, at), (ssize_t)count);
            assert_int_equal(pwrite(cut, bytes, count, at), (ssize_t)count);
        }
        cadre_status status = open_again(cut, 2, &one, &kept, &error);
        if (status == CADRE_OK) { /* what is behind the end was cut */
            assert_true(atomic_load(&one->head->end) <= (uint64_t)size);
            store_close(one);
        } else {
            assert_int_equal(status, CADRE_DATA_LOSS);
        }
        close(cut);
    }
    close(fd);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_error(
        open_again(pipes[0], 2, &one, &kept, &error), CADRE_DATA_LOSS, &error, "is not a file");
    close(pipes[0]);
    close(pipes[1]);
}

/* Whatever its bits say, nothing crashes: it is refused, or has other values. */
static void any_bit_may_be_wrong(void **state)
{
    (void)state;
    struct prng random = {.state = 3};
    struct cadre_error error = {0};
    struct store *one = NULL;
    bool kept = false;
    int fd = fixture_store_memory();
    assert_ok(open_again(fd, 2, &one, &kept, &error), &error);
    fill_some(one);
    uint64_t end = atomic_load(&one->head->end);
    store_close(one);
    static char bytes[1 << 20];
    assert_true(end <= sizeof bytes);
    assert_int_equal(pread(fd, bytes, end, 0), (ssize_t)end);
    unsigned refused = 0;
    for (int round = 0; round < 1500; round++) {
        uint64_t at = 0;
        while (bytes[at] == 0 && !prng_chance(&random, 1, 3000)) { /* rather where something is */
            at = prng_uniform(&random, end);
        }
        char wrong = (char)(bytes[at] ^ (char)(1 << prng_uniform(&random, 8)));
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, bytes, end, 0), (ssize_t)end);
        assert_int_equal(ftruncate(fd, (off_t)((end + 4095) / 4096 * 4096)), 0);
        assert_int_equal(pwrite(fd, &wrong, 1, (off_t)at), 1);
        cadre_status status = open_again(fd, 2, &one, &kept, &error);
        if (status != CADRE_OK) {
            assert_int_equal(status, CADRE_DATA_LOSS);
            refused++;
            continue;
        }
        if (kept) {
            const double values[] = {1, 2, 3, 4, 5, 6, 7, 8};
            struct push push = push_of(0, PUSH_UPDATE, 4, 1);
            push.ordinal = 2;
            push.contributions = 2;
            (void)fixture_store_push_blocks(one, 1, &push, values, 1, &error);
            push.ordinal = 3;
            push.contributions = 0;
            (void)fixture_store_push_blocks(one, 2, &push, values, 0, &error);
            assert_true(fixture_store_digest(one) != 0);
        }
        store_close(one);
    }
    assert_true(refused > 100);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_shard_is_made_once, open_one, close_one),
        cmocka_unit_test_setup_teardown(what_is_no_shard_is_refused, open_one, close_one),
        cmocka_unit_test_setup_teardown(there_is_an_end_of_memory, open_one, close_one),
        cmocka_unit_test_setup_teardown(addresses_stay, open_one, close_one),
        cmocka_unit_test_setup_teardown(notes_are_replaced, open_one, close_one),
        cmocka_unit_test_setup_teardown(a_push_is_applied_once, open_one, close_one),
        cmocka_unit_test_setup_teardown(what_was_left_goes_on, open_one, close_one),
        cmocka_unit_test_setup_teardown(what_cannot_be_pushed, open_one, close_one),
        cmocka_unit_test_setup_teardown(stale_ones_are_refused, open_one, close_one),
        cmocka_unit_test_setup_teardown(what_is_forgotten_makes_room, open_one, close_one),
        cmocka_unit_test(memory_is_of_a_generation),
        cmocka_unit_test(what_no_server_wrote_is_refused),
        cmocka_unit_test(any_bit_may_be_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
