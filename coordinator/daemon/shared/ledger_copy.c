/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/ledger_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

cadre_status ledger_copy_describe(
    const struct ledger_copy *copy, struct replica_options *ret_options, struct cadre_error *error)
{
    const struct store_ops *ops = copy->store->ops;
    struct store_cluster cluster;
    struct store_position position;
    ops->cluster(copy->store, &cluster);
    ops->position(copy->store, &position);
    ops->secret(copy->store, ret_options->secret);
    ret_options->has_cluster = cluster.id_high != 0 || cluster.id_low != 0;
    if (!ret_options->has_cluster && ops->term(copy->store).start > 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the state directory holds the ledger of a coordinator that led alone: name another "
            "--state-dir, or bring that ledger into etcd with --import");
    }
    if (!ret_options->has_cluster) {
        return CADRE_OK;
    }
    ret_options->cluster_id = (struct log_nonce){.high = cluster.id_high, .low = cluster.id_low};
    ret_options->etcd_id = cluster.etcd_id;
    ret_options->term_seen = cluster.term_seen;
    ret_options->applied.index = position.index;
    ret_options->applied.term = position.term;
    memcpy(ret_options->applied.hash.bytes, position.index > 0 ? position.hash : cluster.hash,
        sizeof position.hash);
    return CADRE_OK;
}

void ledger_copy_known(const struct ledger_copy *copy, struct replica_known *ret_known)
{
    struct store_cluster cluster;
    copy->store->ops->cluster(copy->store, &cluster);
    *ret_known =
        (struct replica_known){.cluster_id = {.high = cluster.id_high, .low = cluster.id_low},
            .etcd_id = cluster.etcd_id,
            .term = cluster.term_seen};
    memcpy(ret_known->hash.bytes, cluster.hash, sizeof cluster.hash);
    memcpy(ret_known->secret, cluster.secret, sizeof cluster.secret);
}

static struct store_position position_of(const struct leadership_position *at)
{
    struct store_position position = {.index = at->index, .term = at->term};
    memcpy(position.hash, at->hash.bytes, sizeof position.hash);
    return position;
}

static cadre_status apply_term(
    struct ledger_copy *copy, const struct replica_entry *entry, struct cadre_error *error)
{
    const struct core_record term = {
        .type = CORE_RECORD_TERM, .sync = true, .start = entry->at.term};
    const struct store_record record = {.record = &term};
    const struct store_position at = position_of(&entry->at);
    return copy->store->ops->apply(copy->store, &record, 1, &at, error);
}

static cadre_status apply_records(
    struct ledger_copy *copy, const struct replica_entry *entry, struct cadre_error *error)
{
    const struct store_position at = position_of(&entry->at);
    entry_batch_clear(&copy->batch);
    CADRE_TRY(entry_batch_add(&copy->batch, entry->bytes, entry->size, error));
    return copy->store->ops->apply(copy->store, copy->batch.records, copy->batch.count, &at, error);
}

/* As many of the first entries as go into one transaction; *ret_applied is 0 if that are less than
 * two, or one of them cannot be applied. */
static void apply_together(struct ledger_copy *copy, const struct replica_entry *entries,
    size_t count, size_t *ret_applied)
{
    struct cadre_error ignored;
    size_t added = 0;
    *ret_applied = 0;
    entry_batch_clear(&copy->batch);
    while (added < count && !entries[added].is_term &&
           entry_batch_add(&copy->batch, entries[added].bytes, entries[added].size, &ignored) ==
               CADRE_OK) {
        added++;
    }
    if (added > 1) {
        const struct store_position at = position_of(&entries[added - 1].at);
        bool applied = copy->store->ops->apply(copy->store, copy->batch.records, copy->batch.count,
                           &at, &ignored) == CADRE_OK;
        *ret_applied = applied ? added : 0;
    }
}

cadre_status ledger_copy_apply(struct ledger_copy *copy, const struct replica_entry *entries,
    size_t count, size_t *ret_applied, struct cadre_error *error)
{
    size_t together;
    for (*ret_applied = 0; *ret_applied < count; *ret_applied += together) {
        const struct replica_entry *entry = &entries[*ret_applied];
        apply_together(copy, entry, count - *ret_applied, &together);
        if (together > 0) {
            continue;
        }
        together = 1;
        struct cadre_error why = {0};
        cadre_status status =
            entry->is_term ? apply_term(copy, entry, &why) : apply_records(copy, entry, &why);
        if (status != CADRE_OK) {
            return cadre_error_set(error, status,
                "entry %" PRIu64 " of the log cannot be applied to this coordinator's copy of the "
                "ledger: %s",
                entry->at.index, why.text);
        }
    }
    return CADRE_OK;
}

cadre_status ledger_copy_note(
    struct ledger_copy *copy, const struct replica_known *known, struct cadre_error *error)
{
    struct store_cluster cluster = {.id_high = known->cluster_id.high,
        .id_low = known->cluster_id.low,
        .etcd_id = known->etcd_id,
        .term_seen = known->term};
    memcpy(cluster.hash, known->hash.bytes, sizeof cluster.hash);
    memcpy(cluster.secret, known->secret, sizeof cluster.secret);
    return copy->store->ops->note_cluster(copy->store, &cluster, error);
}

cadre_status ledger_copy_discard(struct ledger_copy *copy, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *kept = NULL;
    struct store_cluster cluster;
    if (asprintf(&kept, "%s.discarded", copy->path) < 0) {
        kept = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    copy->store->ops->cluster(copy->store, &cluster);
    copy->store->ops->close(copy->store); /* so that all of it is in that one file */
    copy->store = NULL;
    if (rename(copy->path, kept) != 0) {
        return cadre_error_errno(error, errno, "cannot rename %s", copy->path);
    }
    CADRE_TRY(store_sqlite_open(copy->path, &copy->store, error));
    return copy->store->ops->note_cluster(copy->store, &cluster, error);
}

/* Opens and closes it: whether it is the ledger of that entry. */
static cadre_status check_snapshot(
    const char *path, const struct replica_snapshot *snapshot, struct cadre_error *error)
{
    struct store *store = NULL;
    struct store_position at;
    CADRE_TRY(store_sqlite_open(path, &store, error));
    store->ops->position(store, &at);
    store->ops->close(store);
    if (at.index != snapshot->at.index ||
        memcmp(at.hash, snapshot->at.hash.bytes, sizeof at.hash) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s holds the ledger as of entry %" PRIu64 ", or of another log, and not as of entry "
            "%" PRIu64,
            path, at.index, snapshot->at.index);
    }
    return CADRE_OK;
}

cadre_status ledger_copy_install(struct ledger_copy *copy, const char *path,
    const struct replica_snapshot *snapshot, const struct replica_known *known,
    struct cadre_error *error)
{
    CADRE_TRY(check_snapshot(path, snapshot, error));
    copy->store->ops->close(copy->store);
    copy->store = NULL;
    if (rename(path, copy->path) != 0) {
        return cadre_error_errno(error, errno, "cannot rename %s to %s", path, copy->path);
    }
    CADRE_TRY(store_sqlite_open(copy->path, &copy->store, error));
    return ledger_copy_note(copy, known, error); /* of a later term than that of its maker */
}

void ledger_copy_close(struct ledger_copy *copy)
{
    entry_batch_free(&copy->batch);
}
