/* SPDX-License-Identifier: Apache-2.0
 * What each action of the core becomes. */
#include <string.h>

#include "common/pure/assert.h"
#include "coordinator/replication/replica_state.h"

static void end(struct replica *replica)
{
    replica->ended = true;
    uv_timer_stop(&replica->timer);
}

static void end_with(struct replica *replica, const struct cadre_error *error)
{
    end(replica);
    replica->options.ops->step_down(replica->options.user, error->text);
}

static struct replica_entry entry_of(const struct entry_value *value, const struct log_hash *hash)
{
    return (struct replica_entry){.at = {.index = value->index, .term = value->term, .hash = *hash},
        .format = value->format,
        .appended_us = value->appended_us,
        .is_term = value->content == ENTRY_LEADER,
        .bytes = value->bytes.data,
        .size = value->bytes.size};
}

/* Whether all of them are applied. */
static bool apply(
    struct replica *replica, const struct replica_entry *entries, size_t count, bool leads)
{
    const struct replica_ops *ops = replica->options.ops;
    struct cadre_error error = {0};
    size_t applied = 0;
    cadre_status status = ops->apply(replica->options.user, entries, count, &applied, &error);
    if (applied > 0) {
        replica->applied = entries[applied - 1].at;
        snapshots_applied(replica, entries, applied);
    }
    if (status == CADRE_RESOURCE_EXHAUSTED) {
        ops->no_room(replica->options.user, leads, &error);
    } else if (status != CADRE_OK) {
        end_with(replica, &error);
    }
    return status == CADRE_OK;
}

static void apply_read(struct replica *replica, const struct leadership_action *action)
{
    struct replica_entry entries[LOG_READ_ENTRIES_MAX];
    CADRE_ASSERT(replica->contents != NULL);
    CADRE_ASSERT(action->apply.count <= LOG_READ_ENTRIES_MAX);
    for (uint32_t i = 0; i < action->apply.count; i++) {
        entries[i] = entry_of(&replica->contents[i], &replica->contents[i].hash);
    }
    if (apply(replica, entries, action->apply.count, false)) {
        replica->pending.applied = true;
        replica->pending.applied_to = action->apply.to;
    } else {
        replica->pending.no_room = true;
        replica->pending.no_room_at = replica->applied;
    }
}

/* With entries that its copy lacks a coordinator cannot lead: what it appended is in the log, and
 * another one goes on from there. */
static void apply_logged(struct replica *replica, const struct leadership_logged *logged)
{
    struct replica_entry entries[LOG_APPEND_ENTRIES_MAX];
    CADRE_ASSERT(logged->entries <= LOG_APPEND_ENTRIES_MAX);
    for (uint32_t i = 0; i < logged->entries; i++) {
        const struct entry_value *value = etcd_log_entry(replica->log, logged->first_index + i);
        entries[i] = entry_of(value, &value->hash);
    }
    if (logged->entries > 0 && !replica->copy_lacks &&
        !apply(replica, entries, logged->entries, true) && !replica->ended) {
        replica->copy_lacks = true;
        replica->pending.leave = true;
    }
}

static void act_logged(struct replica *replica, const struct leadership_logged *logged)
{
    apply_logged(replica, logged);
    tickets_drop(&replica->tickets, logged->ticket);
    if (!replica->ended) {
        replica->options.ops->logged(replica->options.user, logged->ticket);
    }
}

static void act_lead(struct replica *replica, const struct leadership_action *action)
{
    apply_logged(replica, &action->lead.logged);
    if (!replica->ended && !replica->copy_lacks) {
        replica->options.ops->lead(replica->options.user, action->lead.term);
    }
}

static void act_store_known(struct replica *replica, const struct leadership_action *action)
{
    struct replica_known known = {.cluster_id = action->known.cluster_id,
        .etcd_id = action->known.etcd_id,
        .term = action->known.term,
        .hash = action->known.hash};
    memcpy(known.secret, etcd_log_secret(replica->log), sizeof known.secret);
    replica->options.ops->store_known(replica->options.user, &known);
}

static void act_discard(struct replica *replica)
{
    struct cadre_error error = {0};
    if (replica->options.ops->discard(replica->options.user, &error) != CADRE_OK) {
        end_with(replica, &error);
    }
    replica->applied = (struct leadership_position){0};
    snapshots_discarded(replica);
}

static void act_request(struct replica *replica, const struct leadership_action *action)
{
    struct cadre_error error = {0};
    bool is_read = action->type == LEADERSHIP_ACTION_READ;
    uint64_t request = is_read ? action->read.request : action->transact.request;
    cadre_status status =
        is_read ? etcd_log_read(
                      replica->log, request, &action->read.after, action->read.entries_max, &error)
                : etcd_log_transact(replica->log, request, &action->transact.transaction, &error);
    if (status != CADRE_OK) {
        replica_note_failure(replica, error.text);
        replica->pending.unanswered[is_read ? 0 : 1] = request;
    }
}

void replica_act(struct replica *replica, const struct leadership_action *action)
{
    const struct replica_ops *ops = replica->options.ops;
    void *user = replica->options.user;
    switch (action->type) {
    case LEADERSHIP_ACTION_READ:
    case LEADERSHIP_ACTION_TRANSACT:
        act_request(replica, action);
        break;
    case LEADERSHIP_ACTION_APPLY:
        apply_read(replica, action);
        break;
    case LEADERSHIP_ACTION_FETCH_SNAPSHOT:
        snapshots_fetch(replica);
        break;
    case LEADERSHIP_ACTION_DISCARD:
        act_discard(replica);
        break;
    case LEADERSHIP_ACTION_STORE_KNOWN:
        act_store_known(replica, action);
        break;
    case LEADERSHIP_ACTION_LEAD:
        act_lead(replica, action);
        break;
    case LEADERSHIP_ACTION_LOGGED:
        act_logged(replica, &action->logged);
        break;
    case LEADERSHIP_ACTION_SNAPSHOT_STORED:
        snapshots_stored(replica, action->stored);
        break;
    case LEADERSHIP_ACTION_SUSPEND:
        ops->suspend(user);
        break;
    case LEADERSHIP_ACTION_RESUME:
        ops->resume(user);
        break;
    case LEADERSHIP_ACTION_STEP_DOWN:
        end(replica);
        ops->step_down(user, action->text);
        break;
    case LEADERSHIP_ACTION_REFUSE:
        end(replica);
        ops->refuse(user, action->text);
        break;
    }
}
