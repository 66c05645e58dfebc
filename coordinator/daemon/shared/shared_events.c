/* SPDX-License-Identifier: Apache-2.0
 * What the replica and the snapshots' files call. */
#include <stdio.h>
#include <string.h>

#include "coordinator/daemon/shared/contents_mark.h"
#include "coordinator/daemon/shared/nonce_file.h"
#include "coordinator/daemon/shared/shared_state.h"

/* ---- what the replica calls ---- */

static void note_room(struct shared_ledger *shared)
{
    if (shared->no_room) {
        shared->no_room = false;
        log_event(LOG_LEVEL_INFO, "ledger",
            "this coordinator's copy of the ledger is written again", LOG_END);
    }
}

static void note_no_room(struct shared_ledger *shared, const struct cadre_error *why)
{
    if (!shared->no_room) {
        shared->no_room = true;
        log_event(LOG_LEVEL_ERROR, "ledger",
            "this coordinator's copy of the ledger cannot be written, and until it can this "
            "coordinator does not lead",
            LOG_STR("reason", why->text));
    }
}

static cadre_status on_apply(void *user, const struct replica_entry *entries, size_t count,
    size_t *ret_applied, struct cadre_error *error)
{
    struct shared_ledger *shared = user;
    *ret_applied = 0;
    if (shared->known_due) {
        CADRE_TRY(ledger_copy_note(&shared->copy, &shared->known, error));
        shared->known_due = false;
    }
    CADRE_TRY(ledger_copy_apply(&shared->copy, entries, count, ret_applied, error));
    note_room(shared);
    return CADRE_OK;
}

/* One that leads lets another one lead at once. */
static void on_no_room(void *user, bool leads, const struct cadre_error *why)
{
    struct shared_ledger *shared = user;
    note_no_room(shared, why);
    if (leads) {
        shared->left = true;
        shared_note_leading(shared, false);
    }
}

static void on_store_known(void *user, const struct replica_known *known)
{
    struct shared_ledger *shared = user;
    struct cadre_error error = {0};
    const char *contents = shared->daemon->options.contents_dir;
    cadre_status marked = contents_mark_check(contents, known->cluster_id, &error);
    if (marked != CADRE_OK && !shared_contents_away(shared->daemon, marked)) {
        daemon_refuse(shared->daemon, &error);
        return;
    }
    bool is_new = !log_nonce_equal(shared->known.cluster_id, known->cluster_id);
    shared->known = *known;
    cadre_status status = ledger_copy_note(&shared->copy, known, &error);
    shared->known_due = status == CADRE_RESOURCE_EXHAUSTED;
    if (shared->known_due) {
        note_no_room(shared, &error);
    } else if (status != CADRE_OK) {
        daemon_fail(shared->daemon, &error);
        return;
    }
    if (is_new) {
        shared_contents_look(shared);
    }
}

static cadre_status on_discard(void *user, struct cadre_error *error)
{
    struct shared_ledger *shared = user;
    shared_reader_close(shared);
    return ledger_copy_discard(&shared->copy, error);
}

/* ---- snapshots ---- */

static void on_made(
    void *user, const struct replica_snapshot *snapshot, const struct cadre_error *error)
{
    struct shared_ledger *shared = user;
    struct replica_snapshot held = *snapshot;
    if (error->code != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "ledger",
            "no snapshot of the ledger could be made, and the log in etcd grows",
            LOG_STR("reason", error->text));
        held.at.index = 0;
    } else {
        log_event(LOG_LEVEL_INFO, "ledger", "a snapshot of the ledger is made",
            LOG_U64("index", held.at.index), LOG_U64("bytes", held.size));
    }
    replica_snapshot_held(shared->replica, &held);
}

static void on_fetched(void *user, const struct replica_snapshot *snapshot, const char *path,
    const struct cadre_error *fetched)
{
    struct shared_ledger *shared = user;
    struct leadership_position at = snapshot->at;
    struct cadre_error error = *fetched;
    shared_reader_close(shared);
    if (error.code != CADRE_OK ||
        ledger_copy_install(&shared->copy, path, snapshot, &shared->known, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_ERROR, "ledger",
            "the snapshot that this coordinator needs could not be installed",
            LOG_U64("index", at.index), LOG_STR("reason", error.text));
        at.index = 0;
    }
    if (shared->copy.store == NULL) {
        daemon_fail(shared->daemon, &error);
        return;
    }
    replica_snapshot_installed(shared->replica, &at);
}

static void on_fetch_snapshot(void *user, const struct replica_snapshot *snapshot)
{
    struct shared_ledger *shared = user;
    log_event(LOG_LEVEL_INFO, "ledger",
        "the log in etcd begins behind this coordinator's ledger, which a snapshot replaces",
        LOG_U64("index", snapshot->at.index));
    snapshot_files_fetch(shared->snapshots, snapshot);
}

static void on_make_snapshot(void *user, const struct leadership_position *at)
{
    struct shared_ledger *shared = user;
    (void)at; /* the copy may have more by then */
    snapshot_files_make(shared->snapshots, shared->copy.store);
}

static void on_snapshot_stored(void *user, uint64_t index, uint64_t before)
{
    struct shared_ledger *shared = user;
    (void)index;
    if (before > 0) {
        snapshot_files_remove_older(shared->snapshots, before);
    }
}

/* So that another coordinator can lead at once when this process dies. */
static void note_in_file(const struct shared_ledger *shared, struct log_nonce nonce)
{
    struct cadre_error error = {0};
    const char *state_dir = shared->daemon->options.state_dir;
    if (nonce_file_write(state_dir, NONCE_FILE_LEADS, nonce, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "ledger",
            "should this coordinator die, another one leads only after --ha-lease",
            LOG_STR("reason", error.text));
    }
}

static void on_lead(void *user, uint64_t term)
{
    struct shared_ledger *shared = user;
    struct replica_view view;
    replica_show(shared->replica, &view);
    shared->leader[0] = '\0';
    shared_reader_close(shared);
    shared_log_begin(shared, term);
    note_in_file(shared, view.core.nonce);
    log_event(LOG_LEVEL_INFO, "ledger", "this coordinator leads", LOG_U64("term", term),
        LOG_U64("index", view.core.head.index));
    shared_note_leading(shared, true);
    shared->owner.lead(shared->daemon, shared->copy.store, &shared->log);
    waiting_joins_end(&shared->joins, shared->own);
    shared_members_changed(shared->members);
}

static void on_logged(void *user, uint64_t ticket)
{
    struct shared_ledger *shared = user;
    shared->logged = ticket; /* for the end of this turn, or the next one */
}

static void on_suspend(void *user)
{
    struct shared_ledger *shared = user;
    struct replica_view view;
    if (shared->left) {
        return; /* it sends nothing because it ends */
    }
    replica_show(shared->replica, &view);
    log_event(LOG_LEVEL_ERROR, "ledger",
        "etcd does not answer: jobs do the steps that are admitted, and nothing else is sent, "
        "until "
        "it does or another coordinator leads",
        LOG_STR("reason", view.failure));
}

static void on_resume(void *user)
{
    (void)user;
    log_event(LOG_LEVEL_INFO, "ledger",
        "etcd answers again, and this coordinator leads still: "
        "jobs go on",
        LOG_END);
}

static void on_step_down(void *user, const char *text)
{
    struct shared_ledger *shared = user;
    shared_note_leading(shared, false);
    log_event(shared->left ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "ledger",
        "this coordinator takes no part any more", LOG_STR("reason", text));
    nonce_file_remove(shared->daemon->options.state_dir, NONCE_FILE_LEADS);
    shared->owner.step_down(shared->daemon, text);
}

static void on_refuse(void *user, const char *text)
{
    struct shared_ledger *shared = user;
    snprintf(shared->refused, sizeof shared->refused, "%s", text);
    shared_members_changed(shared->members);
    log_event(LOG_LEVEL_ERROR, "ledger",
        "this coordinator takes no part until an operator has looked", LOG_STR("reason", text));
}

static void on_leader_changed(void *user, const struct leader_value *leader)
{
    struct shared_ledger *shared = user;
    struct replica_view view;
    replica_show(shared->replica, &view);
    bool own = view.core.term == leader->leader.term && view.core.term > 0 &&
               view.core.nonce.high == leader->leader.nonce.high &&
               view.core.nonce.low == leader->leader.nonce.low;
    if (leader->leader.left || own) {
        shared->leader[0] = '\0';
    } else {
        size_t first = strcspn(leader->addresses, ",");
        snprintf(shared->leader, sizeof shared->leader, "%.*s", (int)first, leader->addresses);
        waiting_joins_end(&shared->joins, shared->leader);
    }
    if (!own) {
        log_event(LOG_LEVEL_INFO, "ledger",
            leader->leader.left ? "the coordinator that led has ended in order"
                                : "another coordinator leads",
            LOG_STR("name", leader->name), LOG_STR("addresses", leader->addresses),
            LOG_U64("term", leader->leader.term));
    }
    shared_members_changed(shared->members);
}

const struct replica_ops shared_replica_ops = {.apply = on_apply,
    .store_known = on_store_known,
    .discard = on_discard,
    .fetch_snapshot = on_fetch_snapshot,
    .make_snapshot = on_make_snapshot,
    .snapshot_stored = on_snapshot_stored,
    .lead = on_lead,
    .logged = on_logged,
    .no_room = on_no_room,
    .suspend = on_suspend,
    .resume = on_resume,
    .step_down = on_step_down,
    .refuse = on_refuse,
    .leader_changed = on_leader_changed};

/* ---- what the members call ---- */

static void note_ready(struct shared_ledger *shared)
{
    if (!shared->is_ready) {
        shared->is_ready = true;
        shared->owner.ready(shared->daemon);
    }
}

static void on_named(struct daemon *daemon)
{
    note_ready(daemon->shared);
    shared_contents_named(daemon->shared);
}

static void on_unanswered(struct daemon *daemon)
{
    note_ready(daemon->shared);
}

static void on_name_refused(struct daemon *daemon, const char *text)
{
    struct cadre_error error;
    cadre_error_set(&error, CADRE_ALREADY_EXISTS, "%s", text);
    daemon_refuse(daemon, &error);
}

const struct shared_members_owner shared_members_table = {.describe = shared_ledger_describe,
    .contents_read = shared_contents_read,
    .contents_due = shared_contents_due,
    .named = on_named,
    .unanswered = on_unanswered,
    .refused = on_name_refused};

struct snapshot_files_owner shared_snapshot_owner(struct shared_ledger *shared)
{
    return (struct snapshot_files_owner){.made = on_made, .fetched = on_fetched, .user = shared};
}
