/* SPDX-License-Identifier: Apache-2.0
 * The invariants of the state, and its digest. */
#include "coordinator/leadership/state.h"

static const char *leader_invariant(const struct leadership *leadership)
{
    const struct guarded_slot *guarded = &leadership->guarded;
    bool guards_own = guarded->transaction.guard_leader.term == leadership->term &&
                      guarded->transaction.guard_head_revision == leadership->head.mod_revision;
    if (leadership->term == 0 || leadership->head.term != leadership->term) {
        return "a leader's head is of its own term";
    }
    if (guarded->in_flight && !guards_own) {
        return "the transaction in flight is guarded by what this leader wrote "
               "last";
    }
    if (leadership->may_send_until_us > guarded->first_sent_us + leadership->options.lease_us) {
        return "the time to send ends less than a lease after the newest sending";
    }
    if (leadership->may_send_until_us > 0 && leadership->state == LEADERSHIP_CATCHING_UP) {
        return "nothing is sent before TERM is in the log";
    }
    return NULL;
}

const char *leadership_invariant(const struct leadership *leadership)
{
    bool leads =
        leadership->state >= LEADERSHIP_CATCHING_UP && leadership->state <= LEADERSHIP_LEAVING;
    if (!leads && leadership->may_send_until_us != 0) {
        return "only a leader has a time to send";
    }
    if (leadership->doubted && leadership->may_send_until_us != 0) {
        return "a leader in doubt sends nothing";
    }
    if (leadership->queue_count > leadership->options.tickets_max ||
        leadership->urgent > leadership->queue_count) {
        return "the queue holds what was offered";
    }
    if (leadership->applying && leadership->applying_to.index <= leadership->applied.index) {
        return "entries are applied upwards";
    }
    return leads ? leader_invariant(leadership) : NULL;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return prng_mix(digest ^ value);
}

static uint64_t mix_head(uint64_t digest, const struct log_head *head)
{
    digest = mix(digest, head->term);
    digest = mix(digest, head->index);
    digest = mix(digest, head->first);
    digest = mix(digest, head->beat);
    return mix(digest, head->mod_revision);
}

uint64_t leadership_digest(const struct leadership *leadership)
{
    uint64_t digest = mix((uint64_t)leadership->state, leadership->now_us);
    digest = mix(digest, leadership->requests);
    digest = mix(digest, leadership->take_over_us);
    digest = mix(digest, leadership->term);
    digest = mix(digest, leadership->may_send_until_us);
    digest = mix(digest, leadership->applied.index);
    digest = mix(digest, leadership->no_room ? leadership->apply_again_us : 0);
    digest = mix(digest, leadership->queue_first);
    digest = mix(digest, leadership->queue_count);
    digest = mix(digest, leadership->guarded.in_flight ? leadership->guarded.attempt : 0);
    digest = mix(digest, leadership->read.in_flight ? leadership->read.request : 0);
    return mix_head(digest, &leadership->head);
}
