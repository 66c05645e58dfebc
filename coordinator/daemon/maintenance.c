/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/maintenance.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/storage/storage.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/moving/move_contents.h"
#include "coordinator/daemon/shared/log_tools.h"
#include "coordinator/daemon/shared/shared_ledger.h"
#include "coordinator/daemon/state.h"

/* ---- --check ---- */

static void log_damage(void *user, struct job_id job, const char *what)
{
    ++*(uint64_t *)user;
    log_event(LOG_LEVEL_ERROR, "ledger", "a record is damaged", LOG_U64("job", job.n),
        LOG_STR("lost", what));
}

/* Whether all of the ledger is whole. */
static cadre_status check_ledger(struct daemon *daemon, struct cadre_error *error)
{
    struct store *store = NULL;
    uint64_t damaged = 0;
    CADRE_FREE_AT_EXIT char *ledger = NULL;
    if (asprintf(&ledger, "%s/ledger.db", daemon->options.state_dir) < 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to check the ledger");
    }
    if (access(ledger, F_OK) != 0) {
        return cadre_error_errno(error, errno, "there is no ledger %s", ledger);
    }
    CADRE_TRY(state_open(daemon, &store, error));
    cadre_status status = store->ops->check(store, log_damage, &damaged, error);
    store->ops->close(store);
    CADRE_TRY(status);
    if (damaged > 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "records of %llu jobs in %s are damaged: put a copy of the state directory back, or "
            "submit the jobs again",
            (unsigned long long)damaged, ledger);
    }
    log_event(LOG_LEVEL_INFO, "ledger", "every record is whole", LOG_STR("ledger", ledger));
    return CADRE_OK;
}

/* ---- --export ---- */

static cadre_status write_export(struct store *store, const char *path, struct cadre_error *error)
{
    struct store *copy = NULL;
    if (access(path, F_OK) == 0) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "--export %s: there is such a file, which may be a ledger: name another one", path);
    }
    CADRE_TRY(store_sqlite_copy(store, path, error));
    CADRE_TRY(store_sqlite_open(path, &copy, error));
    cadre_status status = store_sqlite_leave_log(copy, error);
    copy->ops->close(copy);
    return status;
}

/* Of a coordinator that led alone, or a copy. */
static cadre_status check_there(
    const struct daemon *daemon, const struct store *store, struct cadre_error *error)
{
    struct store_cluster cluster;
    store->ops->cluster(store, &cluster);
    if (cluster.id_high == 0 && cluster.id_low == 0 && store->ops->term(store).start == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the state directory %s holds no ledger: name that of the coordinator that was "
            "stopped last",
            daemon->options.state_dir);
    }
    return CADRE_OK;
}

static cadre_status export_ledger(struct daemon *daemon, struct cadre_error *error)
{
    struct store *store = NULL;
    struct store_position at;
    CADRE_TRY(state_open(daemon, &store, error));
    store->ops->position(store, &at);
    cadre_status status = check_there(daemon, store, error);
    status = status == CADRE_OK ? write_export(store, daemon->options.export, error) : status;
    store->ops->close(store);
    CADRE_TRY(status);
    log_event(LOG_LEVEL_INFO, "ledger",
        "the ledger is exported: it is the ledger.db of a coordinator without --ha, which has the "
        "folders blobs and jobs of --contents beside it",
        LOG_STR("path", daemon->options.export), LOG_U64("index", at.index));
    return CADRE_OK;
}

/* ---- with etcd ---- */

static cadre_status open_loop(struct daemon *daemon, struct cadre_error *error)
{
    const struct coordinator_options *options = &daemon->options;
    if (options->ha.address == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--import, --reseed and --resign need --ha etcd://HOST:PORT,.../PREFIX");
    }
    CADRE_TRY(shared_ledger_check_options(options, error));
    CADRE_TRY(rpc_loop_open(&daemon->loop, error));
    daemon->file_pool.loop = daemon->loop;
    daemon->write_pool.loop = daemon->loop;
    return CADRE_OK;
}

static bool has_entries(const char *path)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            return true;
        }
    }
    return false;
}

/* A coordinator that led alone has its contents in the state directory, where none of several looks
 * for them. */
static cadre_status check_moved(
    const struct coordinator_options *options, const char *name, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *from = storage_join(options->state_dir, name);
    CADRE_FREE_AT_EXIT char *to = storage_join(options->contents_dir, name);
    if (from == NULL || to == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    if (storage_is_object(to)) {
        return state_check_none_left(options, error);
    }
    if (has_entries(from) && !has_entries(to)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was not moved, and the jobs of this ledger need what is in it: move it to %s first",
            from, to);
    }
    return CADRE_OK;
}

static cadre_status change_log(struct daemon *daemon, struct cadre_error *error)
{
    struct store *store = NULL;
    if (daemon->options.import) {
        CADRE_TRY(check_moved(&daemon->options, "blobs", error));
        CADRE_TRY(check_moved(&daemon->options, "jobs", error));
    }
    if (daemon->options.resign) {
        CADRE_TRY(state_lock(daemon, error)); /* the process that led is dead */
        return log_tools_resign(daemon, error);
    }
    CADRE_TRY(state_open(daemon, &store, error));
    return daemon->options.import ? log_tools_import(daemon, store, error)
                                  : log_tools_reseed(daemon, store, error);
}

static cadre_status change_log_on_loop(struct daemon *daemon, struct cadre_error *error)
{
    CADRE_TRY(open_loop(daemon, error));
    cadre_status status = change_log(daemon, error);
    file_work_pool_wait(&daemon->file_pool);
    rpc_loop_close(daemon->loop);
    daemon->loop = NULL;
    return status;
}

/* ---- which ---- */

static unsigned count_asked(const struct coordinator_options *options)
{
    return (unsigned)options->check + (unsigned)(options->export != NULL) +
           (unsigned)(options->copy_contents != NULL) + (unsigned)options->import +
           (unsigned)options->reseed + (unsigned)options->resign;
}

bool maintenance_is_asked(const struct coordinator_options *options)
{
    return count_asked(options) > 0 || options->dry_run || options->ahead;
}

static cadre_status maintain(struct daemon *daemon, struct cadre_error *error)
{
    if (count_asked(&daemon->options) > 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--check, --copy-contents, --export, --import, --reseed and --resign are done one at a "
            "time");
    }
    if ((daemon->options.dry_run || daemon->options.ahead) &&
        daemon->options.copy_contents == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--dry-run and --ahead are for --copy-contents FROM: name FROM");
    }
    if (daemon->options.copy_contents != NULL) {
        CADRE_TRY(daemon->options.ahead ? CADRE_OK : state_lock(daemon, error));
        return move_contents(daemon, error);
    }
    if (daemon->options.check) {
        return check_ledger(daemon, error);
    }
    return daemon->options.export != NULL ? export_ledger(daemon, error)
                                          : change_log_on_loop(daemon, error);
}

int maintenance_run(struct daemon *daemon)
{
    struct cadre_error error = {0};
    cadre_status status = maintain(daemon, &error);
    if (status != CADRE_OK) {
        bool damaged = daemon->options.check && status == CADRE_DATA_LOSS;
        log_event(LOG_LEVEL_ERROR, "ledger",
            damaged                 ? "the ledger is not whole"
            : daemon->options.check ? "the ledger cannot be checked"
                                    : "what was asked for is not done",
            LOG_STR("reason", error.text));
    }
    return status == CADRE_OK ? 0 : 1;
}
