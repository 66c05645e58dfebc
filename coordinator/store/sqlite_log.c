/* SPDX-License-Identifier: Apache-2.0
 * The one row about the log that coordinators share. It is written whole, from what was read of it
 * when the store was opened: no damage of a part of it is carried on. */
#include "coordinator/store/sqlite_statements.h"

#include <string.h>

#include "coordinator/store/sqlite_tables.h"

/* False: it has another size. */
static bool column_hash(sqlite3_stmt *row, int column, uint8_t ret_hash[STORE_HASH_BYTES])
{
    if (sqlite3_column_bytes(row, column) != STORE_HASH_BYTES) {
        return false;
    }
    memcpy(ret_hash, sqlite3_column_blob(row, column), STORE_HASH_BYTES);
    return true;
}

struct log_reader {
    struct statements *statements;
    struct log_copy *copy;
    unsigned rows;
};

static const char meaning[] = "which entries of the shared log it has";

static cadre_status read_row(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    struct log_reader *reader = user;
    struct log_copy *copy = reader->copy;
    *copy = (struct log_copy){.cluster = {.id_high = column_u64(row, 1),
                                  .id_low = column_u64(row, 2),
                                  .etcd_id = column_u64(row, 3),
                                  .term_seen = column_u64(row, 4)},
        .applied = {.index = column_u64(row, 6), .term = column_u64(row, 7)}};
    bool whole = column_hash(row, 5, copy->cluster.hash) &&
                 column_hash(row, 8, copy->applied.hash) && sqlite3_column_int(row, 9) != 0;
    reader->rows++;
    return whole ? CADRE_OK : statements_damaged(reader->statements, meaning, error);
}

cadre_status statements_read_log(
    struct statements *statements, struct log_copy *ret_copy, struct cadre_error *error)
{
    struct log_reader reader = {.statements = statements, .copy = ret_copy};
    CADRE_TRY(statements_each_once(statements, "read which entries of the shared log it has",
        "SELECT " SHARED_LOG_COLUMNS ", sum IS " SHARED_LOG_SUM " FROM shared_log",
        (struct job_id){0}, read_row, &reader, error));
    return reader.rows == 1 ? CADRE_OK : statements_damaged(statements, meaning, error);
}

cadre_status statements_write_log(
    struct statements *statements, const struct log_copy *copy, struct cadre_error *error)
{
    sqlite3_stmt *put = statements->prepared[STATEMENT_SHARED_LOG];
    bind_u64(put, 1, copy->cluster.id_high);
    bind_u64(put, 2, copy->cluster.id_low);
    bind_u64(put, 3, copy->cluster.etcd_id);
    bind_u64(put, 4, copy->cluster.term_seen);
    bind_blob(put, 5, copy->cluster.hash, STORE_HASH_BYTES);
    bind_u64(put, 6, copy->applied.index);
    bind_u64(put, 7, copy->applied.term);
    bind_blob(put, 8, copy->applied.hash, STORE_HASH_BYTES);
    return statements_run(statements, STATEMENT_SHARED_LOG, error);
}

cadre_status statements_write_cluster(
    struct statements *statements, const struct store_cluster *cluster, struct cadre_error *error)
{
    sqlite3_stmt *update = statements->prepared[STATEMENT_CLUSTER];
    bind_u64(update, 1, cluster->id_low);
    bind_blob(update, 2, cluster->secret, STORE_SECRET_BYTES);
    return statements_update_meta(statements, STATEMENT_CLUSTER, error);
}
