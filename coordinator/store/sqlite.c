/* SPDX-License-Identifier: Apache-2.0
 * The store in an SQLite database, in WAL mode. synchronous is NORMAL for step records (no fsync)
 * and FULL for a commit that must be on disk before anything is sent. Called through store_ops. */
#include "coordinator/store/sqlite_statements.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"

struct sqlite_store {
    struct store base;
    struct statements statements;
    uint8_t secret[STORE_SECRET_BYTES];
    struct ledger_facts facts;
    struct log_copy log;
    uint64_t nonce; /* of this opening */
    bool full;      /* synchronous is FULL at the moment */
};

static struct sqlite_store *sqlite_of(const struct store *store)
{
    return (struct sqlite_store *)(uintptr_t)store;
}

static cadre_status set_sync(struct sqlite_store *sqlite, bool full, struct cadre_error *error)
{
    if (sqlite->full == full) {
        return CADRE_OK;
    }
    CADRE_TRY(statements_execute(&sqlite->statements, "set how it syncs",
        full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", error));
    sqlite->full = full;
    return CADRE_OK;
}

static void note_facts(struct ledger_facts *facts, const struct core_record *record)
{
    if (record->type == CORE_RECORD_JOB && record->job.n > facts->job_id_max) {
        facts->job_id_max = record->job.n;
    } else if (record->type == CORE_RECORD_TERM) {
        facts->starts = record->start;
    }
}

/* What one transaction writes. */
struct transaction {
    const struct store_record *records;
    size_t count;
    const struct store_cluster *cluster; /* NULL: it stays */
    const struct log_copy *log;          /* NULL: it stays */
};

static cadre_status write_all(
    struct sqlite_store *sqlite, const struct transaction *transaction, struct cadre_error *error)
{
    struct statements *statements = &sqlite->statements;
    for (size_t i = 0; i < transaction->count; i++) {
        CADRE_TRY(statements_write(statements, &transaction->records[i], error));
    }
    if (transaction->cluster != NULL) {
        CADRE_TRY(statements_write_cluster(statements, transaction->cluster, error));
    }
    return transaction->log != NULL ? statements_write_log(statements, transaction->log, error)
                                    : CADRE_OK;
}

static cadre_status run_transaction(struct sqlite_store *sqlite,
    const struct transaction *transaction, bool sync, struct cadre_error *error)
{
    CADRE_TRY(set_sync(sqlite, sync, error));
    CADRE_TRY(statements_run(&sqlite->statements, STATEMENT_BEGIN, error));
    cadre_status status = write_all(sqlite, transaction, error);
    if (status == CADRE_OK) {
        status = statements_run(&sqlite->statements, STATEMENT_COMMIT, error);
    }
    if (status != CADRE_OK) {
        /* The transaction may be over already (a full disk ends it): its failure adds nothing. */
        (void)statements_run(&sqlite->statements, STATEMENT_ROLLBACK, NULL);
        return status;
    }
    for (size_t i = 0; i < transaction->count; i++) {
        if (transaction->records[i].record != NULL) {
            note_facts(&sqlite->facts, transaction->records[i].record);
        }
    }
    return CADRE_OK;
}

static cadre_status sqlite_commit(struct store *store, const struct store_record *records,
    size_t count, bool sync, struct cadre_error *error)
{
    struct sqlite_store *sqlite = sqlite_of(store);
    if (count == 0) {
        return sync ? statements_sync(&sqlite->statements, error) : CADRE_OK;
    }
    const struct transaction transaction = {.records = records, .count = count};
    return run_transaction(sqlite, &transaction, sync, error);
}

static cadre_status sqlite_apply(struct store *store, const struct store_record *records,
    size_t count, const struct store_position *at, struct cadre_error *error)
{
    struct sqlite_store *sqlite = sqlite_of(store);
    CADRE_TRY(log_copy_check_next(&sqlite->log, at, error));
    const struct log_copy next = {.applied = *at, .cluster = sqlite->log.cluster};
    const struct transaction transaction = {.records = records, .count = count, .log = &next};
    CADRE_TRY(run_transaction(sqlite, &transaction, false, error));
    sqlite->log = next;
    return CADRE_OK;
}

static void sqlite_position(const struct store *store, struct store_position *ret_position)
{
    *ret_position = sqlite_of(store)->log.applied;
}

static void sqlite_cluster(const struct store *store, struct store_cluster *ret_cluster)
{
    *ret_cluster = sqlite_of(store)->log.cluster;
}

static cadre_status sqlite_note_cluster(
    struct store *store, const struct store_cluster *cluster, struct cadre_error *error)
{
    struct sqlite_store *sqlite = sqlite_of(store);
    const struct log_copy next = {.applied = sqlite->log.applied, .cluster = *cluster};
    const struct transaction transaction = {.cluster = cluster, .log = &next};
    CADRE_TRY(run_transaction(sqlite, &transaction, true, error));
    sqlite->log = next;
    sqlite->facts.cluster = cluster->id_low;
    memcpy(sqlite->secret, cluster->secret, STORE_SECRET_BYTES);
    return CADRE_OK;
}

static struct term sqlite_term(const struct store *store)
{
    const struct sqlite_store *sqlite = sqlite_of(store);
    return (struct term){
        .cluster = sqlite->facts.cluster, .start = sqlite->facts.starts, .nonce = sqlite->nonce};
}

static cadre_status sqlite_load(struct store *store,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    return statements_load(&sqlite_of(store)->statements, visit, user, error);
}

static cadre_status sqlite_check(struct store *store,
    void (*visit)(void *user, struct job_id job, const char *what), void *user,
    struct cadre_error *error)
{
    return statements_check(&sqlite_of(store)->statements, visit, user, error);
}

static cadre_status sqlite_task_exits(struct store *store, struct job_id job,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error)
{
    return statements_task_exits(&sqlite_of(store)->statements, job, visit, user, error);
}

static cadre_status sqlite_ledger(struct store *store, struct job_id job,
    const struct store_walk *walk, struct cadre_error *error)
{
    return statements_ledger(&sqlite_of(store)->statements, job, walk, error);
}

static cadre_status sqlite_history(struct store *store, struct job_id job, uint64_t after,
    size_t max, void (*visit)(void *user, const struct history_event *event), void *user,
    uint64_t *ret_last, struct cadre_error *error)
{
    return statements_history(
        &sqlite_of(store)->statements, job, after, max, visit, user, ret_last, error);
}

static cadre_status sqlite_checkpoints(struct store *store, struct job_id job,
    void (*visit)(void *user, const struct core_checkpoint *checkpoint), void *user,
    struct cadre_error *error)
{
    return statements_checkpoints(&sqlite_of(store)->statements, job, visit, user, error);
}

static cadre_status sqlite_drains(struct store *store,
    void (*visit)(void *user, const struct core_drained *drained), void *user,
    struct cadre_error *error)
{
    return statements_drains(&sqlite_of(store)->statements, visit, user, error);
}

static cadre_status sqlite_culprits(struct store *store,
    void (*visit)(void *user, const struct core_culprit *culprit), void *user,
    struct cadre_error *error)
{
    return statements_culprits(&sqlite_of(store)->statements, visit, user, error);
}

static void sqlite_secret(const struct store *store, uint8_t ret_secret[STORE_SECRET_BYTES])
{
    memcpy(ret_secret, sqlite_of(store)->secret, STORE_SECRET_BYTES);
}

static uint64_t sqlite_job_id_max(const struct store *store)
{
    return sqlite_of(store)->facts.job_id_max;
}

static void sqlite_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct sqlite_store *sqlite = sqlite_of(store);
    statements_close(&sqlite->statements);
    free(sqlite);
}

static const struct store_ops sqlite_ops = {.name = "sqlite",
    .commit = sqlite_commit,
    .apply = sqlite_apply,
    .position = sqlite_position,
    .cluster = sqlite_cluster,
    .note_cluster = sqlite_note_cluster,
    .load = sqlite_load,
    .check = sqlite_check,
    .task_exits = sqlite_task_exits,
    .ledger = sqlite_ledger,
    .history = sqlite_history,
    .checkpoints = sqlite_checkpoints,
    .drains = sqlite_drains,
    .culprits = sqlite_culprits,
    .secret = sqlite_secret,
    .term = sqlite_term,
    .job_id_max = sqlite_job_id_max,
    .close = sqlite_close};

/* The database holds the jobs' environment and the secret: no other user may read it, whatever the
 * umask and the copy's owner. An existing file is not opened for that, because closing it would
 * give up the locks that this process has on it. */
static cadre_status make_private(const char *path, struct cadre_error *error)
{
    struct stat status;
    CADRE_CLOSE_AT_EXIT int fd =
        open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        return CADRE_OK;
    }
    if (errno != EEXIST || lstat(path, &status) != 0) {
        return cadre_error_errno(error, errno, "cannot open the store %s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "the store %s is no regular file", path);
    }
    if ((status.st_mode & 0077) != 0 && chmod(path, 0600) != 0) {
        return cadre_error_errno(error, errno, "cannot make the store %s private", path);
    }
    return CADRE_OK;
}

static cadre_status sqlite_prepare(
    struct sqlite_store *sqlite, const char *path, struct cadre_error *error)
{
    CADRE_TRY(make_private(path, error));
    CADRE_TRY(statements_open(&sqlite->statements, path, error));
    uint8_t fresh[STORE_SECRET_BYTES];
    if (RAND_bytes(fresh, STORE_SECRET_BYTES) != 1 ||
        RAND_bytes((unsigned char *)&sqlite->nonce, sizeof sqlite->nonce) != 1) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "the system gives no random bytes for the store's secret");
    }
    CADRE_TRY(schema_open(&sqlite->statements, fresh, sqlite->secret, error));
    CADRE_TRY(statements_prepare(&sqlite->statements, error));
    CADRE_TRY(statements_facts(&sqlite->statements, &sqlite->facts, error));
    CADRE_TRY(statements_read_log(&sqlite->statements, &sqlite->log, error));
    if ((sqlite->log.cluster.id_high | sqlite->log.cluster.id_low) != 0) {
        memcpy(sqlite->log.cluster.secret, sqlite->secret, STORE_SECRET_BYTES);
    }
    return CADRE_OK;
}

cadre_status store_sqlite_open(
    const char *path, struct store **ret_store, struct cadre_error *error)
{
    struct sqlite_store *sqlite = calloc(1, sizeof *sqlite);
    if (sqlite == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the store");
    }
    sqlite->base.ops = &sqlite_ops;
    sqlite->full = true; /* what statements_open leaves */
    cadre_status status = sqlite_prepare(sqlite, path, error);
    if (status != CADRE_OK) {
        sqlite_close(&sqlite->base);
        return status;
    }
    *ret_store = &sqlite->base;
    return CADRE_OK;
}

cadre_status store_sqlite_leave_log(struct store *store, struct cadre_error *error)
{
    CADRE_ASSERT(store->ops == &sqlite_ops);
    struct sqlite_store *sqlite = sqlite_of(store);
    const struct log_copy none = {0};
    const struct transaction transaction = {.log = &none};
    CADRE_TRY(run_transaction(sqlite, &transaction, true, error));
    sqlite->log = none;
    return CADRE_OK;
}

cadre_status store_sqlite_copy(struct store *store, const char *path, struct cadre_error *error)
{
    CADRE_ASSERT(store->ops == &sqlite_ops);
    return statements_copy(&sqlite_of(store)->statements, path, error);
}

cadre_status store_sqlite_copy_begin(
    struct store *store, const char *path, struct store_copy **ret_copy, struct cadre_error *error)
{
    CADRE_ASSERT(store->ops == &sqlite_ops);
    return statements_copy_begin(&sqlite_of(store)->statements, path, ret_copy, error);
}
