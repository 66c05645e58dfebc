/* SPDX-License-Identifier: Apache-2.0
 * Which checkpoints were found damaged, and what is gone on from instead, as both peers keep it. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/store/store_fixture.h"

static void assert_holds(struct store *store, const char *part)
{
    char *text = store_text(store);
    if (strstr(text, part) == NULL) {
        fail_msg("the store does not hold \"%s\", but:\n%s", part, text);
    }
    free(text);
}

static struct core_record record_lost(uint64_t position, const char *why)
{
    struct core_record record = {
        .type = CORE_RECORD_CHECKPOINT_LOST, .job = {1}, .lost = {.position = position}};
    memcpy(record.lost.why, why, strlen(why));
    return record;
}

static struct core_record record_published(uint64_t number, uint64_t position)
{
    return (struct core_record){.type = CORE_RECORD_PUBLISHED,
        .job = {1},
        .published = {.number = number, .position = position}};
}

/* The newest damaged checkpoint is kept, and the origin is the last one recorded. */
static void check_store(struct store *store, struct cadre_error *error)
{
    struct core_record origin = record_checkpoint(1, 20, "older");
    origin.type = CORE_RECORD_ORIGIN;
    assert_ok(COMMIT(store, true, error, record_restoring_job(1, 1, 33),
                  record_checkpoint(1, 40, "own"), record_checkpoint(1, 50, "own")),
        error);
    assert_ok(COMMIT(store, true, error, record_lost(50, "flipped")), error);
    assert_holds(store, "  lost 50: flipped\n");
    assert_holds(store, "newest:  checkpoint at 40 \"own\"");
    assert_ok(COMMIT(store, true, error, record_published(1, 50)), error);
    assert_holds(store, "  notified of 50 in generation 1\n");
    assert_ok(COMMIT(store, true, error, record_lost(40, "gone"), record_published(2, 45)), error);
    assert_holds(store, "  notified of 45 in generation 2\n");
    assert_holds(store, "  lost 50: flipped\n");
    assert_holds(store, "newest:  checkpoint at 33 \"origin\"");
    assert_ok(COMMIT(store, true, error, origin), error);
    assert_holds(store, "from:  checkpoint at 20 \"older\"");
    assert_holds(store, "newest:  checkpoint at 20 \"older\"");
    assert_ok(COMMIT(store, true, error, record_checkpoint(1, 60, "own"), record_lost(60, "gone")),
        error);
    assert_holds(store, "  lost 60: gone\n");
}

static void of_memory(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    assert_ok(store_memory_open(&store, &error), &error);
    check_store(store, &error);
    store->ops->close(store);
}

static void of_sqlite(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    assert_ok(
        store_sqlite_open(test_path(path, test_temp_dir(), "ledger.db"), &store, &error), &error);
    check_store(store, &error);
    store->ops->close(store);
    assert_ok(store_sqlite_open(path, &store, &error), &error); /* its checksums are right */
    assert_holds(store, "  lost 60: gone\n");
    assert_holds(store, "  notified of 45 in generation 2\n");
    assert_holds(store, "newest:  checkpoint at 20 \"older\"");
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_memory),
        cmocka_unit_test(of_sqlite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
