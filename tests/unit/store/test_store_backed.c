/* SPDX-License-Identifier: Apache-2.0
 * Whose copy of a parameter server's variables counts, as both peers keep it. */
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

/* An incarnation takes over what is recorded of the one before, unless its own record says that it
 * does not; a statement that comes late changes nothing. */
static void check_store(struct store *store, struct cadre_error *error)
{
    struct core_record next = record_task(1, 1, 9);
    assert_ok(commit_placed(store, true,
                  (const struct core_record[]){
                      record_job(1, 3), record_started(1, 3), record_backed(1, 1, 2, 3)},
                  3, 3, error),
        error);
    assert_holds(store, "  placed 1.2 rank -1 on \"worker b\" backed 7 by 3\n");
    assert_ok(COMMIT(store, true, error, record_backed(1, 1, 2, 0)), error);
    assert_holds(store, "  placed 1.2 rank -1 on \"worker b\" backed 7 by 0\n");
    next.task.backed_by = 8;
    assert_ok(COMMIT(store, true, error, next), error);
    assert_holds(store, "  placed 1.9 rank -1 on \"worker of 1\" again backed 0 by 8\n");
    assert_ok(COMMIT(store, true, error, record_task(1, 1, 3)), error); /* said late */
    assert_holds(store, "  placed 1.9 rank -1 on \"worker of 1\" again backed 0 by 8\n");
    next.task.incarnation = 10;
    next.task.backed_by = 0;
    assert_ok(COMMIT(store, true, error, next), error);
    assert_holds(store, "  placed 1.10 rank -1 on \"worker of 1\" again\n");
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
    assert_holds(store, "  placed 1.10 rank -1 on \"worker of 1\" again\n");
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
