/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/version_5.h"

#include <sqlite3.h>

#include "coordinator/store/sqlite_statements.h"
#include "tests/lib/test.h"

/* As version 5 summed them. */
#define META_COLUMNS       "version, secret, job_id_max, schema_sum, cluster, starts"
#define CHECKPOINT_COLUMNS "position, number, nonce, shared, path, manifest_bytes, manifest_sha256"

static const char undo[] =
    "ALTER TABLE origin DROP COLUMN digest; ALTER TABLE checkpoint DROP COLUMN digest;"
    "DROP TABLE verified; DROP TABLE published; DROP TABLE diverged; DROP TABLE culprit;"
    "DROP TABLE event; DROP TABLE shared_log;"
    "UPDATE origin SET sum = row_sum('origin', job, " CHECKPOINT_COLUMNS ");"
    "UPDATE checkpoint SET sum = row_sum('checkpoint', job, " CHECKPOINT_COLUMNS ");"
    "UPDATE meta SET version = 5, schema_sum ="
    " (SELECT row_sum(group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || sql))"
    "  FROM (SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name));"
    "UPDATE meta SET sum = row_sum('meta', " META_COLUMNS ");";

void version_5_make(const char *path)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(checksum_register(database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, undo, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}
