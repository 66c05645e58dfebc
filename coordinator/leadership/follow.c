/* SPDX-License-Identifier: Apache-2.0
 * Reading the log as it grows: what was read is checked, applied in batches,
 * and read again; what is trimmed comes as a snapshot. Every read also says
 * whether the head moved (HA2). */
#include "coordinator/leadership/state.h"

bool follow_lacks_snapshot(const struct leadership *leadership)
{
    return leadership->has_store && leadership->applied.index + 1 < leadership->head.first;
}

/* From now on, as the answer was just received, the head must stand still for
 * so long. */
static void wait_again(struct leadership *leadership)
{
    const struct leadership_options *options = &leadership->options;
    uint64_t jitter_us = prng_uniform(&leadership->prng, options->lease_us / JITTER_PART + 1);
    bool behind = leadership->applied.index + BEHIND_MANY <= leadership->head.index;
    leadership->take_over_us = leadership->now_us + options->lease_us + jitter_us +
                               (behind ? options->lease_us / BEHIND_PART : 0);
}

void follow_head(
    struct leadership *leadership, const struct log_leader *leader, const struct log_head *head)
{
    bool same = leadership->has_store && head->mod_revision == leadership->head.mod_revision &&
                leader->mod_revision == leadership->leader.mod_revision &&
                log_head_equal(head, &leadership->head);
    leadership->has_store = true;
    leadership->leader = *leader;
    leadership->head = *head;
    leadership->head_read_us = leadership->read.sent_us;
    leadership->takes_over_now = leader->left;
    if (!same) {
        wait_again(leadership);
    }
}

static void store_known(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    struct leadership_options *known = &leadership->options;
    bool new_cluster = !known->has_cluster;
    if (!new_cluster && known->etcd_id == read->etcd_id && read->leader.term <= known->term_seen) {
        return;
    }
    known->has_cluster = true;
    known->cluster_id = read->cluster.id;
    known->etcd_id = read->etcd_id;
    if (read->leader.term > known->term_seen) {
        known->term_seen = read->leader.term;
    }
    if (new_cluster) {
        CADRE_ASSERT(leadership->applied.index == 0);
        leadership->applied.hash = read->cluster_hash;
    }
    struct leadership_action *action = leadership_append(out, LEADERSHIP_ACTION_STORE_KNOWN);
    action->known.cluster_id = known->cluster_id;
    action->known.etcd_id = known->etcd_id;
    action->known.term = known->term_seen;
    action->known.hash = read->cluster_hash;
}

static void apply(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    if (!leadership->read.with_entries || follow_lacks_snapshot(leadership)) {
        return;
    }
    CADRE_ASSERT(!leadership->applying && !leadership->fetching);
    uint32_t count = check_entries(leadership, read, out);
    if (count == 0) {
        return;
    }
    const struct log_entry *last = &read->entries[count - 1];
    leadership->applying = true;
    leadership->applying_to =
        (struct leadership_position){.index = last->index, .term = last->term, .hash = last->hash};
    struct leadership_action *action = leadership_append(out, LEADERSHIP_ACTION_APPLY);
    action->apply.count = count;
    action->apply.to = leadership->applying_to;
}

/* A leader that catches up reads what it leads: its own key. */
static bool check_still_leader(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    if (leadership->state != LEADERSHIP_CATCHING_UP ||
        log_leader_equal(&read->leader, &leadership->leader)) {
        return true;
    }
    leadership_step_down(leadership, "another coordinator leads now", out);
    return false;
}

void follow_read(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    uint64_t index = leadership->applied.index;
    if (!check_store(leadership, read, out) || !check_still_leader(leadership, read, out)) {
        return;
    }
    store_known(leadership, read, out);
    if (leadership->state == LEADERSHIP_FOLLOWER) {
        follow_head(leadership, &read->leader, &read->head);
    }
    if (leadership->applied.index != index) {
        return; /* the copy was discarded: it begins from the start */
    }
    apply(leadership, read, out);
    bool fits = !leadership_has_ended(leadership) && leadership->applied.index == read->head.index;
    if (fits) {
        leadership->options.accept_restored = false;
    }
}

void follow_applied(struct leadership *leadership, const struct leadership_position *position)
{
    CADRE_ASSERT(leadership->applying);
    CADRE_ASSERT(position->index == leadership->applying_to.index);
    leadership->applying = false;
    leadership->no_room = false;
    leadership->applied = leadership->applying_to;
}

void follow_no_room(struct leadership *leadership, const struct leadership_position *position)
{
    CADRE_ASSERT(leadership->applying);
    CADRE_ASSERT(position->index >= leadership->applied.index);
    CADRE_ASSERT(position->index < leadership->applying_to.index);
    leadership->applying = false;
    leadership->no_room = true;
    leadership->apply_again_us = leadership->now_us + leadership->options.lease_us;
    leadership->applied = *position;
}

/* Whether entries are worth reading. */
static bool has_room(const struct leadership *leadership)
{
    return !leadership->no_room || leadership->apply_again_us <= leadership->now_us;
}

void follow_installed(struct leadership *leadership, const struct leadership_position *position)
{
    CADRE_ASSERT(leadership->fetching);
    leadership->fetching = false;
    leadership->fetch_us = leadership->now_us + leadership->options.lease_us;
    if (position->index > leadership->applied.index) {
        leadership->applied = *position;
        leadership->no_room = false;
        leadership->fetch_us = 0;
    }
}

static bool may_apply(const struct leadership *leadership)
{
    return leadership->options.has_cluster && !leadership->applying && !leadership->fetching &&
           !follow_lacks_snapshot(leadership) && has_room(leadership);
}

/* Reads as long as entries are to be had, else now and then. */
static uint64_t read_due_us(const struct leadership *leadership)
{
    const struct read_slot *read = &leadership->read;
    bool catching_up = leadership->state == LEADERSHIP_CATCHING_UP;
    if (read->in_flight) {
        return read->due_us;
    }
    bool takes = !leadership->applying && !leadership->fetching &&
                 !follow_lacks_snapshot(leadership) && !leadership->no_room;
    bool more =
        leadership->has_store && takes && leadership->applied.index < leadership->head.index;
    if (catching_up) {
        return more ? 0 : NEVER;
    }
    return more || read->again ? 0 : read->due_us;
}

static bool reads_now(const struct leadership *leadership)
{
    return leadership->state == LEADERSHIP_FOLLOWER ||
           leadership->state == LEADERSHIP_CATCHING_UP ||
           (leadership->state == LEADERSHIP_RESIGNING && !leadership->guarded.in_flight) ||
           leadership->doubted;
}

static uint64_t fetch_due_us(const struct leadership *leadership)
{
    bool wants = leadership->state == LEADERSHIP_FOLLOWER && follow_lacks_snapshot(leadership) &&
                 !leadership->fetching && !leadership->applying;
    return wants ? leadership->fetch_us : NEVER;
}

void follow_send(struct leadership *leadership, struct leadership_actions *out)
{
    if (fetch_due_us(leadership) <= leadership->now_us) {
        leadership->fetching = true;
        leadership_append(out, LEADERSHIP_ACTION_FETCH_SNAPSHOT)->after = leadership->applied;
    }
    if (reads_now(leadership) && read_due_us(leadership) <= leadership->now_us) {
        bool applies = may_apply(leadership) && leadership->state != LEADERSHIP_RESIGNING;
        request_read(leadership, applies && !leadership->doubted, out);
    }
}

uint64_t follow_wake_us(const struct leadership *leadership)
{
    uint64_t fetch_us = fetch_due_us(leadership);
    uint64_t read_us = reads_now(leadership) ? read_due_us(leadership) : NEVER;
    return fetch_us < read_us ? fetch_us : read_us;
}
