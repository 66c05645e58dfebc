/* SPDX-License-Identifier: Apache-2.0
 * The entries of a shared log into this coordinator's copy of the ledger: several in one
 * transaction, and up to the first that cannot be applied. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/shared/ledger_copy.h"
#include "tests/unit/store/store_fixture.h"

#define ENTRIES 150

struct fixture {
    struct ledger_copy copy;
    struct wire_buffer bytes[ENTRIES];
    struct replica_entry entries[ENTRIES];
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
};

/* An entry of one record. */
static void put(struct fixture *fixture, size_t i, const struct core_record *record)
{
    const struct store_record stored = {
        .record = record, .wall_us = 5, .spec = "spec", .spec_bytes = 4};
    struct wire_buffer *bytes = &fixture->bytes[i];
    wire_buffer_clear(bytes);
    assert_ok(log_entry_write(ledger_format_newest(), &stored, 1, bytes, &fixture->error),
        &fixture->error);
    fixture->entries[i].bytes = bytes->bytes;
    fixture->entries[i].size = bytes->size;
}

/* A term, a job, steps of it; and a term further on. */
static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_path(fixture->path, test_temp_dir(), "ledger.db");
    fixture->copy.path = fixture->path;
    for (size_t i = 0; i < ENTRIES; i++) {
        fixture->entries[i].at = (struct leadership_position){
            .index = i + 1, .term = i < 100 ? 3 : 4, .hash.bytes = {(uint8_t)i, 1}};
        fixture->entries[i].is_term = i == 0 || i == 100;
        const struct core_record record =
            i == 1 ? record_job(1, 1) : record_consumed(1, 1, 0, 0, i);
        put(fixture, i, &record);
    }
    assert_ok(
        store_sqlite_open(fixture->path, &fixture->copy.store, &fixture->error), &fixture->error);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->copy.store->ops->close(fixture->copy.store);
    ledger_copy_close(&fixture->copy);
    for (size_t i = 0; i < ENTRIES; i++) {
        wire_buffer_free(&fixture->bytes[i]);
    }
    free(fixture);
    return 0;
}

static void assert_applied(struct fixture *fixture, uint64_t index)
{
    struct store_position position;
    const struct store *store = fixture->copy.store;
    store->ops->position(store, &position);
    assert_int_equal(position.index, index);
    assert_int_equal(position.term, fixture->entries[index - 1].at.term);
    assert_memory_equal(
        position.hash, fixture->entries[index - 1].at.hash.bytes, sizeof position.hash);
}

static void all_of_them_are_applied(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->copy.store;
    size_t applied = 0;
    assert_ok(ledger_copy_apply(&fixture->copy, fixture->entries, 1, &applied, &fixture->error),
        &fixture->error);
    assert_applied(fixture, 1);
    assert_int_equal(store->ops->term(store).start, 3);
    assert_ok(ledger_copy_apply(
                  &fixture->copy, fixture->entries + 1, ENTRIES - 1, &applied, &fixture->error),
        &fixture->error);
    assert_int_equal(applied, ENTRIES - 1);
    assert_applied(fixture, ENTRIES);
    assert_int_equal(store->ops->term(store).start, 4);
    char *text = store_text(store);
    assert_non_null(strstr(text, " position 149 "));
    free(text);
}

/* Those before it are stored, and it is named. */
static void one_that_is_refused_ends_it(void **state)
{
    struct fixture *fixture = *state;
    size_t applied = 0;
    const struct core_record unknown = record_watermark(9, 1, 7);
    put(fixture, 70, &unknown);
    assert_error(
        ledger_copy_apply(&fixture->copy, fixture->entries, ENTRIES, &applied, &fixture->error),
        CADRE_INTERNAL, &fixture->error, "entry 71 of the log");
    assert_int_equal(applied, 70);
    assert_applied(fixture, 70);
    char *text = store_text(fixture->copy.store);
    assert_non_null(strstr(text, " position 69 "));
    free(text);
}

static void one_that_cannot_be_read_ends_it(void **state)
{
    struct fixture *fixture = *state;
    size_t applied = 0;
    fixture->entries[3].bytes = "\x08\x63"; /* of format 99 */
    fixture->entries[3].size = 2;
    assert_error(
        ledger_copy_apply(&fixture->copy, fixture->entries, ENTRIES, &applied, &fixture->error),
        CADRE_INVALID_ARGUMENT, &fixture->error, "entry 4 of the log");
    assert_int_equal(applied, 3);
    assert_applied(fixture, 3);
}

static void what_was_noted_is_known_again(void **state)
{
    struct fixture *fixture = *state;
    struct ledger_copy *copy = &fixture->copy;
    const struct replica_known known = {.cluster_id = {.high = 1, .low = 2},
        .etcd_id = 3,
        .term = 4,
        .hash.bytes = {5},
        .secret = {6, 7}};
    struct replica_known found;
    ledger_copy_known(copy, &found);
    assert_int_equal(found.cluster_id.high, 0);
    assert_int_equal(found.cluster_id.low, 0);
    assert_ok(ledger_copy_note(copy, &known, &fixture->error), &fixture->error);
    copy->store->ops->close(copy->store);
    assert_ok(store_sqlite_open(fixture->path, &copy->store, &fixture->error), &fixture->error);
    ledger_copy_known(copy, &found);
    assert_int_equal(found.cluster_id.high, 1);
    assert_int_equal(found.cluster_id.low, 2);
    assert_int_equal(found.etcd_id, 3);
    assert_int_equal(found.term, 4);
    assert_memory_equal(found.hash.bytes, known.hash.bytes, sizeof known.hash.bytes);
    assert_memory_equal(found.secret, known.secret, sizeof known.secret);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(all_of_them_are_applied),
        TEST(one_that_is_refused_ends_it), TEST(one_that_cannot_be_read_ends_it),
        TEST(what_was_noted_is_known_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
