/* SPDX-License-Identifier: Apache-2.0
 * What the rules of snapshots ask for (leadership/snapshot_rules.h) becomes reads of etcd, calls of
 * the owner's table, and events of the core. */
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/replication/replica_state.h"

/* After a failure it is tried again after so many leases. */
#define PAUSE_LEASES 20

void snapshots_begin(struct replica *replica)
{
    const struct replica_options *from = &replica->options;
    const struct snapshot_options options = {.bytes = from->snapshot_bytes,
        .after_us = from->snapshot_us,
        .keep_us = from->keep_us,
        .again_us = PAUSE_LEASES * from->lease_us};
    snapshot_rules_begin(&replica->rules, &options, replica->applied.index, clock_boot_us());
}

void snapshots_applied(struct replica *replica, const struct replica_entry *entries, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += entries[i].size + LOG_ENTRY_EXTRA_BYTES;
    }
    snapshot_rules_applied(&replica->rules, replica->applied.index, bytes, clock_boot_us());
}

void snapshots_discarded(struct replica *replica)
{
    snapshot_rules_applied(&replica->rules, 0, 0, clock_boot_us());
}

/* ---- of a leader ---- */

static bool leads(const struct replica *replica)
{
    struct leadership_view view;
    leadership_show(replica->core, &view);
    return !replica->ended && !replica->copy_lacks && view.state == LEADERSHIP_LEADING;
}

static void failed(struct replica *replica, const char *text)
{
    snapshot_rules_failed(&replica->rules, clock_boot_us());
    replica_note_failure(replica, text);
}

void snapshots_check(struct replica *replica)
{
    struct cadre_error error = {0};
    if (snapshot_rules_look(&replica->rules, leads(replica), clock_boot_us()) &&
        etcd_log_read_snapshot(replica->log, &error) != CADRE_OK) {
        failed(replica, error.text);
    }
}

void snapshots_held(struct replica *replica, const struct replica_snapshot *snapshot)
{
    if (snapshot->at.index == 0) {
        failed(replica, "no snapshot of the ledger could be made");
        return;
    }
    snapshot_rules_held(&replica->rules, snapshot->at.index);
    replica->held = *snapshot;
    replica->pending.held = true;
}

void snapshots_take_held(const struct replica *replica, struct leadership_event *ret_event)
{
    const struct leadership_position *at = &replica->held.at;
    ret_event->type = LEADERSHIP_EVENT_SNAPSHOT_HELD;
    /* Every coordinator reads the folder that it is in. */
    ret_event->snapshot = (struct leadership_snapshot){.index = at->index,
        .hash = at->hash,
        .holders = 2,
        .trim_to = snapshot_rules_trim_to(&replica->rules, at->index, clock_boot_us())};
}

void snapshots_stored(struct replica *replica, uint64_t index)
{
    CADRE_ASSERT(index == replica->held.at.index);
    uint64_t before = snapshot_rules_stored(&replica->rules, index, clock_boot_us());
    replica->options.ops->snapshot_stored(replica->options.user, index, before);
}

/* ---- of a follower ---- */

static void found_none(struct replica *replica, const char *text)
{
    replica->pending.installed = true;
    replica->pending.installed_at = (struct leadership_position){.index = 0};
    replica_note_failure(replica, text);
}

void snapshots_fetch(struct replica *replica)
{
    struct cadre_error error = {0};
    snapshot_rules_find(&replica->rules);
    if (etcd_log_read_snapshot(replica->log, &error) != CADRE_OK) {
        (void)snapshot_rules_found(&replica->rules, 0);
        found_none(replica, error.text);
    }
}

/* ---- what etcd names ---- */

static void looked(struct replica *replica, cadre_status status, const char *text,
    const struct replica_snapshot *newest)
{
    if (status != CADRE_OK && status != CADRE_NOT_FOUND) {
        failed(replica, text);
    } else if (snapshot_rules_looked(
                   &replica->rules, newest->at.index, leads(replica), clock_boot_us())) {
        replica->options.ops->make_snapshot(replica->options.user, &replica->applied);
    }
}

void snapshots_found(struct replica *replica, cadre_status status, const char *text,
    const struct replica_snapshot *snapshot)
{
    if (replica->ended) {
        return;
    }
    if (replica->rules.step == SNAPSHOT_LOOKING) {
        looked(replica, status, text, snapshot);
        return;
    }
    bool newer = snapshot_rules_found(&replica->rules, status == CADRE_OK ? snapshot->at.index : 0);
    if (newer) {
        replica->options.ops->fetch_snapshot(replica->options.user, snapshot);
    } else {
        found_none(replica,
            status != CADRE_OK
                ? text
                : "the newest snapshot that etcd names is older than what is applied here");
    }
}

void snapshots_installed(struct replica *replica, const struct leadership_position *position)
{
    if (position->index > 0) {
        replica->applied = *position;
    }
    snapshot_rules_installed(&replica->rules, position->index, clock_boot_us());
    replica->pending.installed = true;
    replica->pending.installed_at = *position;
}
