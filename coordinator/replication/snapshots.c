/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of the ledger: when a leader has one made, what is trimmed behind it, and which one a
 * follower installs. Which ones there are is read from etcd when it matters, so that nothing has to
 * be handed on from one leader to the next. */
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/replication/replica_state.h"

/* An entry whose size is not known, because it was applied before this process began. */
#define ASSUMED_BYTES 1024
/* After a failure it is tried again after so many leases. */
#define PAUSE_LEASES 20
/* Marks are so many parts of `keep_us` apart, so that a ring of them is older than it. */
#define MARK_PART (SNAPSHOT_MARKS / 2)

/* ---- what was applied when ---- */

static void add_mark(struct replica *replica)
{
    struct snapshots *snapshots = &replica->snapshots;
    uint64_t now_us = clock_boot_us();
    if (snapshots->mark_count > 0) {
        const struct snapshot_mark *last =
            &snapshots->marks[(snapshots->mark_count - 1) % SNAPSHOT_MARKS];
        if (now_us - last->at_us < replica->options.keep_us / MARK_PART) {
            return;
        }
    }
    snapshots->marks[snapshots->mark_count++ % SNAPSHOT_MARKS] =
        (struct snapshot_mark){.index = replica->applied.index, .at_us = now_us};
}

/* The newest entry that was applied here `keep_us` ago; 0: none is known. The clock is this
 * process's own (HA24a). */
static uint64_t index_to_trim(const struct replica *replica, uint64_t snapshot)
{
    const struct snapshots *snapshots = &replica->snapshots;
    uint64_t now_us = clock_boot_us();
    for (uint64_t back = 1; back <= SNAPSHOT_MARKS && back <= snapshots->mark_count; back++) {
        const struct snapshot_mark *mark =
            &snapshots->marks[(snapshots->mark_count - back) % SNAPSHOT_MARKS];
        if (now_us - mark->at_us >= replica->options.keep_us) {
            return mark->index < snapshot ? mark->index : snapshot;
        }
    }
    return 0;
}

void snapshots_begin(struct replica *replica)
{
    replica->snapshots.bytes = replica->applied.index * ASSUMED_BYTES;
    replica->snapshots.since_us = clock_boot_us();
    add_mark(replica);
}

void snapshots_applied(struct replica *replica, const struct replica_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        replica->snapshots.bytes += entries[i].size + LOG_ENTRY_EXTRA_BYTES;
    }
    add_mark(replica);
}

/* From now on this is the newest one; the entries behind it have so many bytes. */
static void know(struct replica *replica, uint64_t index, uint64_t bytes)
{
    struct snapshots *snapshots = &replica->snapshots;
    snapshots->known = index;
    snapshots->bytes = bytes;
    snapshots->since_us = clock_boot_us();
}

/* ---- of a leader ---- */

static bool is_due(const struct replica *replica)
{
    const struct snapshots *snapshots = &replica->snapshots;
    const struct replica_options *options = &replica->options;
    struct leadership_view view;
    leadership_show(replica->core, &view);
    uint64_t now_us = clock_boot_us();
    bool may = !replica->ended && !replica->copy_lacks && view.state == LEADERSHIP_LEADING &&
               snapshots->step == SNAPSHOT_NONE && now_us >= snapshots->again_us &&
               replica->applied.index > snapshots->known;
    return may && (snapshots->bytes >= options->snapshot_bytes ||
                      now_us - snapshots->since_us >= options->snapshot_us);
}

static void pause_after(struct replica *replica, const char *text)
{
    replica->snapshots.step = SNAPSHOT_NONE;
    replica->snapshots.again_us = clock_boot_us() + PAUSE_LEASES * replica->options.lease_us;
    replica_note_failure(replica, text);
}

void snapshots_check(struct replica *replica)
{
    struct cadre_error error = {0};
    if (!is_due(replica)) {
        return;
    }
    replica->snapshots.step = SNAPSHOT_LOOKING;
    if (etcd_log_read_snapshot(replica->log, &error) != CADRE_OK) {
        pause_after(replica, error.text);
    }
}

/* A leader looked. One that an earlier leader made may be new to it. */
static void looked(struct replica *replica, const struct replica_snapshot *newest)
{
    struct snapshots *snapshots = &replica->snapshots;
    uint64_t index = newest->at.index;
    snapshots->step = SNAPSHOT_NONE;
    if (index > snapshots->known && index <= replica->applied.index) {
        know(replica, index, (replica->applied.index - index) * ASSUMED_BYTES);
    }
    if (is_due(replica)) {
        snapshots->step = SNAPSHOT_MAKING;
        snapshots->before = snapshots->bytes;
        replica->options.ops->make_snapshot(replica->options.user, &replica->applied);
    }
}

void snapshots_held(struct replica *replica, const struct replica_snapshot *snapshot)
{
    struct snapshots *snapshots = &replica->snapshots;
    CADRE_ASSERT(snapshots->step == SNAPSHOT_MAKING);
    if (snapshot->at.index == 0) {
        pause_after(replica, "no snapshot of the ledger could be made");
        return;
    }
    CADRE_ASSERT(snapshot->at.index > snapshots->known);
    CADRE_ASSERT(snapshot->at.index <= replica->applied.index);
    snapshots->step = SNAPSHOT_STORING;
    snapshots->held = *snapshot;
    replica->pending.held = true;
}

void snapshots_take_held(const struct replica *replica, struct leadership_event *ret_event)
{
    const struct replica_snapshot *held = &replica->snapshots.held;
    ret_event->type = LEADERSHIP_EVENT_SNAPSHOT_HELD;
    /* Every coordinator reads the folder that it is in. */
    ret_event->snapshot = (struct leadership_snapshot){.index = held->at.index,
        .hash = held->at.hash,
        .holders = 2,
        .trim_to = index_to_trim(replica, held->at.index)};
}

void snapshots_stored(struct replica *replica, uint64_t index)
{
    struct snapshots *snapshots = &replica->snapshots;
    CADRE_ASSERT(snapshots->step == SNAPSHOT_STORING && index == snapshots->held.at.index);
    snapshots->step = SNAPSHOT_NONE;
    know(replica, index, snapshots->bytes - snapshots->before);
    replica->options.ops->snapshot_stored(replica->options.user, index);
}

/* ---- of a follower ---- */

static void found_none(struct replica *replica, const char *text)
{
    replica->snapshots.step = SNAPSHOT_NONE;
    replica->pending.installed = true;
    replica->pending.installed_at = (struct leadership_position){.index = 0};
    replica_note_failure(replica, text);
}

void snapshots_fetch(struct replica *replica)
{
    struct cadre_error error = {0};
    CADRE_ASSERT(replica->snapshots.step == SNAPSHOT_NONE);
    replica->snapshots.step = SNAPSHOT_FINDING;
    if (etcd_log_read_snapshot(replica->log, &error) != CADRE_OK) {
        found_none(replica, error.text);
    }
}

void snapshots_found(struct replica *replica, cadre_status status, const char *text,
    const struct replica_snapshot *snapshot)
{
    struct snapshots *snapshots = &replica->snapshots;
    if (replica->ended) {
        return;
    }
    if (snapshots->step == SNAPSHOT_LOOKING) {
        if (status == CADRE_OK || status == CADRE_NOT_FOUND) {
            looked(replica, snapshot);
        } else {
            pause_after(replica, text);
        }
        return;
    }
    CADRE_ASSERT(snapshots->step == SNAPSHOT_FINDING);
    if (status != CADRE_OK) {
        found_none(replica, text);
        return;
    }
    if (snapshot->at.index <= replica->applied.index) {
        found_none(
            replica, "the newest snapshot that etcd names is older than what is applied here");
        return;
    }
    snapshots->step = SNAPSHOT_INSTALLING;
    replica->options.ops->fetch_snapshot(replica->options.user, snapshot);
}

void snapshots_installed(struct replica *replica, const struct leadership_position *position)
{
    CADRE_ASSERT(replica->snapshots.step == SNAPSHOT_INSTALLING);
    replica->snapshots.step = SNAPSHOT_NONE;
    replica->pending.installed = true;
    replica->pending.installed_at = *position;
    if (position->index > 0) {
        replica->applied = *position;
        know(replica, position->index, 0);
        add_mark(replica);
    }
}
