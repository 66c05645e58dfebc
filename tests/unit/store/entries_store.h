/* SPDX-License-Identifier: Apache-2.0
 * A store that gets each commit as the bytes of an entry of a log, as the store of a coordinator
 * that follows another does. */
#ifndef CADRE_TESTS_UNIT_STORE_ENTRIES_STORE_H
#define CADRE_TESTS_UNIT_STORE_ENTRIES_STORE_H

#include "coordinator/store/store.h"
#include "tests/lib/test.h"

/* Takes `inner` over. A commit is an entry, which is applied at the next index; those with `sync`
 * are synced then. */
struct store *entries_store_open(struct store *inner, const char *name);
/* Bit by kind of record that any of these stores has had, also LEDGER_EVENT. */
uint64_t entries_store_kinds(void);

/* "memory" and "sqlite" of a new one in the test's folder, plain, and behind entries. */
cadre_status open_sqlite(struct store **ret_store, struct cadre_error *error);
cadre_status open_memory_of_entries(struct store **ret_store, struct cadre_error *error);
cadre_status open_sqlite_of_entries(struct store **ret_store, struct cadre_error *error);

#endif
