/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/log_tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "common/base/cleanup.h"
#include "common/etcd/etcd.h"
#include "coordinator/daemon/shared/contents_mark.h"
#include "coordinator/daemon/shared/nonce_file.h"
#include "coordinator/daemon/shared/ledger_copy.h"
#include "coordinator/daemon/shared/shared_etcd.h"
#include "coordinator/daemon/shared/snapshot_files.h"
#include "coordinator/replication/reseed.h"
#include "coordinator/replication/resign.h"

#define PATIENCE_US (30 * CADRE_US_PER_S)

/* One that is under way. */
struct tool {
    struct daemon *daemon;
    struct shared_etcd etcd;
    cadre_status status;
    struct cadre_error error;
    struct replica_snapshot snapshot;
    struct replica_known known;
};

static cadre_status tool_open(struct tool *tool, struct daemon *daemon, struct cadre_error *error)
{
    *tool = (struct tool){.daemon = daemon};
    return shared_etcd_open(daemon->loop, &daemon->options.ha, &tool->etcd, error);
}

static void tool_ends(struct tool *tool, cadre_status status, const char *text)
{
    tool->status = status;
    if (status != CADRE_OK) {
        cadre_error_set(&tool->error, status, "%s", text);
    } else {
        log_event(LOG_LEVEL_INFO, "ledger", text, LOG_END);
    }
    rpc_loop_stop(tool->daemon->loop);
}

/* Runs the loop until tool_ends(). */
static cadre_status tool_wait(struct tool *tool, struct cadre_error *error)
{
    rpc_loop_run(tool->daemon->loop);
    if (tool->status != CADRE_OK) {
        *error = tool->error;
    }
    return tool->status;
}

/* ---- resigning ---- */

static void on_resigned(void *user, cadre_status status, const char *text)
{
    tool_ends(user, status, text);
}

static cadre_status resign_for(struct tool *tool, struct log_nonce nonce, struct cadre_error *error)
{
    struct resign *resign = NULL;
    const struct resign_options options = {.etcd = tool->etcd.etcd,
        .nonce = nonce,
        .lease_us = tool->daemon->options.ha.lease_us,
        .patience_us = PATIENCE_US,
        .done = on_resigned,
        .user = tool};
    CADRE_TRY(resign_open(tool->daemon->loop, &options, &resign, error));
    cadre_status status = tool_wait(tool, error);
    resign_close(resign);
    return status;
}

cadre_status log_tools_resign(struct daemon *daemon, struct cadre_error *error)
{
    struct tool tool;
    struct log_nonce nonce;
    CADRE_TRY(nonce_file_read(daemon->options.state_dir, NONCE_FILE_LEADS, &nonce, error));
    if (log_nonce_equal(nonce, (struct log_nonce){0})) {
        log_event(LOG_LEVEL_INFO, "ledger",
            "the last process on this state directory did not lead, or ended in order", LOG_END);
        return CADRE_OK;
    }
    cadre_status status = tool_open(&tool, daemon, error);
    status = status == CADRE_OK ? resign_for(&tool, nonce, error) : status;
    if (status == CADRE_OK) {
        nonce_file_remove(daemon->options.state_dir, NONCE_FILE_LEADS);
    }
    shared_etcd_close(&tool.etcd);
    return status;
}

/* ---- a snapshot of a store ---- */

static void on_made(
    void *user, const struct replica_snapshot *snapshot, const struct cadre_error *error)
{
    struct tool *tool = user;
    tool->snapshot = *snapshot;
    tool_ends(tool, error->code,
        error->code == CADRE_OK ? "a snapshot of the ledger is made" : error->text);
}

static cadre_status make_snapshot(struct tool *tool, struct store *store, struct cadre_error *error)
{
    struct daemon *daemon = tool->daemon;
    struct snapshot_files *files = NULL;
    const struct snapshot_files_owner owner = {.made = on_made, .user = tool};
    CADRE_TRY(snapshot_files_open(daemon->options.contents_dir, daemon->options.state_dir,
        &daemon->file_pool, &owner, &files, error));
    snapshot_files_make(files, store);
    cadre_status status = tool_wait(tool, error);
    snapshot_files_close(files);
    return status;
}

/* ---- a new log ---- */

static void on_seeded(
    void *user, cadre_status status, const char *text, const struct replica_known *known)
{
    struct tool *tool = user;
    if (status == CADRE_OK) {
        tool->known = *known;
    }
    tool_ends(tool, status, text);
}

/* The log in etcd begins behind the snapshot. */
static cadre_status seed(struct tool *tool, struct store *store, bool imports,
    const struct store_cluster *cluster, struct cadre_error *error)
{
    struct reseed *reseed = NULL;
    struct reseed_options options = {.etcd = tool->etcd.etcd,
        .snapshot = tool->snapshot,
        .cluster_id = {.high = cluster->id_high, .low = cluster->id_low},
        .format = ledger_format_newest(),
        .term = cluster->term_seen,
        .imports = imports,
        .attempt_us = tool->daemon->options.ha.lease_us,
        .patience_us = PATIENCE_US,
        .done = on_seeded,
        .user = tool};
    store->ops->secret(store, options.secret);
    CADRE_TRY(reseed_open(tool->daemon->loop, &options, &reseed, error));
    cadre_status status = tool_wait(tool, error);
    reseed_close(reseed);
    return status;
}

static cadre_status snapshot_and_seed(
    struct tool *tool, struct store *store, bool imports, struct cadre_error *error)
{
    struct store_cluster cluster;
    store->ops->cluster(store, &cluster);
    const char *contents = tool->daemon->options.contents_dir;
    const struct log_nonce id = {.high = cluster.id_high, .low = cluster.id_low};
    CADRE_TRY(contents_mark_check(contents, id, error));
    CADRE_TRY(make_snapshot(tool, store, error));
    CADRE_TRY(seed(tool, store, imports, &cluster, error));
    CADRE_TRY(contents_mark_take(contents, id, error));
    struct ledger_copy copy = {.store = store};
    return ledger_copy_note(&copy, &tool->known, error);
}

/* ---- importing ---- */

static cadre_status check_alone(const struct store *store, struct cadre_error *error)
{
    struct store_cluster cluster;
    store->ops->cluster(store, &cluster);
    if (cluster.id_high != 0 || cluster.id_low != 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the state directory holds the copy of a log in etcd already, and no ledger of a "
            "coordinator that led alone: start it with --ha");
    }
    if (store->ops->term(store).start == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the state directory holds no ledger: name that of the coordinator that led alone");
    }
    return CADRE_OK;
}

/* The copy is that of a log whose first entry is all of the ledger. */
static cadre_status mark_imported(struct store *store, struct cadre_error *error)
{
    struct term term = store->ops->term(store);
    struct store_cluster cluster = {.id_low = term.cluster, .term_seen = term.start};
    struct leadership_position at;
    if (RAND_bytes((unsigned char *)&cluster.id_high, sizeof cluster.id_high) != 1) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "the system gives no random bytes");
    }
    const struct log_nonce id = {.high = cluster.id_high, .low = cluster.id_low};
    CADRE_TRY(reseed_import_position(id, term.start, &at, error));
    store->ops->secret(store, cluster.secret);
    CADRE_TRY(store->ops->note_cluster(store, &cluster, error));
    struct store_position position = {.index = at.index, .term = at.term};
    memcpy(position.hash, at.hash.bytes, sizeof position.hash);
    return store->ops->apply(store, NULL, 0, &position, error);
}

/* A copy of the ledger beside it is marked and replaces it at last, so that what fails before
 * changes nothing. */
static cadre_status copy_and_seed(
    struct tool *tool, struct store *alone, const char *path, struct cadre_error *error)
{
    struct store *store = NULL;
    CADRE_TRY(store_sqlite_copy(alone, path, error));
    CADRE_TRY(store_sqlite_open(path, &store, error));
    cadre_status status = mark_imported(store, error);
    if (status == CADRE_OK) {
        status = snapshot_and_seed(tool, store, true, error);
    }
    store->ops->close(store);
    return status;
}

cadre_status log_tools_import(struct daemon *daemon, struct store *store, struct cadre_error *error)
{
    struct tool tool = {0};
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s.import", daemon->ledger_path) < 0) {
        path = NULL;
        store->ops->close(store);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    cadre_status status = check_alone(store, error);
    status = status == CADRE_OK ? tool_open(&tool, daemon, error) : status;
    status = status == CADRE_OK ? copy_and_seed(&tool, store, path, error) : status;
    shared_etcd_close(&tool.etcd);
    store->ops->close(store);
    if (status == CADRE_OK && rename(path, daemon->ledger_path) != 0) {
        return cadre_error_errno(error, errno,
            "the ledger is in etcd, but %s cannot take the place of %s: do that, or start this "
            "coordinator with an empty --state-dir",
            path, daemon->ledger_path);
    }
    return status;
}

cadre_status log_tools_reseed(struct daemon *daemon, struct store *store, struct cadre_error *error)
{
    struct tool tool = {0};
    struct store_cluster cluster;
    store->ops->cluster(store, &cluster);
    cadre_status status = CADRE_OK;
    if (cluster.id_high == 0 && cluster.id_low == 0) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the state directory holds no copy of a log in etcd: run --reseed where the most "
            "advanced coordinator ran, which its log names, or --import for the ledger of a "
            "coordinator that led alone");
    }
    status = status == CADRE_OK ? tool_open(&tool, daemon, error) : status;
    status = status == CADRE_OK ? snapshot_and_seed(&tool, store, false, error) : status;
    shared_etcd_close(&tool.etcd);
    store->ops->close(store);
    return status;
}
