/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/version_6.h"

#include <sqlite3.h>

#include "coordinator/store/sqlite_statements.h"
#include "tests/lib/test.h"

/* As version 6 summed them. */
#define META_COLUMNS "version, secret, job_id_max, schema_sum, cluster, starts"

static const char undo[] =
    "DROP TABLE event; DROP TABLE shared_log;"
    "UPDATE meta SET version = 6, schema_sum ="
    " (SELECT row_sum(group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || sql))"
    "  FROM (SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name));"
    "UPDATE meta SET sum = row_sum('meta', " META_COLUMNS ");";

void version_6_make(const char *path)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(checksum_register(database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, undo, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}
