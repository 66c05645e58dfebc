/* SPDX-License-Identifier: Apache-2.0
 * The engine's turns as entries of the log: what it appends, and whether it may send. */
#include <inttypes.h>

#include "common/base/clock.h"
#include "coordinator/daemon/shared/shared_state.h"

/* In which format this entry is written. One that messages wait for brings a newer one into force,
 * once all coordinators have known it for long enough. */
static uint32_t choose_format(struct shared_ledger *shared, bool waits)
{
    struct replica_view view;
    replica_show(shared->replica, &view);
    uint32_t in_force = view.format > shared->format ? view.format : shared->format;
    uint32_t known =
        shared_members_format(shared->members, shared->daemon->options.ha.raise_after_us);
    shared->format = in_force;
    if (waits && known > in_force) {
        shared->format = known < ledger_format_newest() ? known : ledger_format_newest();
        replica_raise_format(shared->replica, shared->format);
        log_event(LOG_LEVEL_INFO, "ledger",
            "all coordinators know a newer format of the log, which is written from now on: one of "
            "an older version takes no part any more",
            LOG_U64("format", shared->format), LOG_U64("before", in_force));
    }
    return shared->format;
}

static cadre_status append(void *user, const struct store_record *records, size_t count, bool waits,
    struct cadre_error *error)
{
    struct shared_ledger *shared = user;
    uint64_t ticket = 0;
    if (count == 0) {
        return replica_append(shared->replica, NULL, 0, LEADERSHIP_CONFIRM, &ticket, error);
    }
    wire_buffer_clear(&shared->packed);
    CADRE_TRY(
        log_entry_write(choose_format(shared, waits), records, count, &shared->packed, error));
    return replica_append(shared->replica, shared->packed.bytes, shared->packed.size,
        waits ? LEADERSHIP_SYNC : LEADERSHIP_LAGGING, &ticket, error);
}

void shared_log_begin(struct shared_ledger *shared, uint64_t term)
{
    struct replica_view view;
    replica_show(shared->replica, &view);
    shared->daemon->log_index = view.core.head.index;
    shared->log = (struct engine_log){.user = shared,
        .term = {.cluster = shared->known.cluster_id.low,
            .start = term,
            .nonce = view.core.nonce.low},
        .append = append};
}

void shared_note_leading(struct shared_ledger *shared, bool may)
{
    leading_set(&shared->daemon->leading, may ? replica_may_send_until_us(shared->replica) : 0);
}

/* ---- turns ---- */

bool shared_ledger_may_send(const struct daemon *daemon)
{
    return daemon->shared == NULL ||
           clock_boot_us() < replica_may_send_until_us(daemon->shared->replica);
}

static void suspend(struct shared_ledger *shared)
{
    struct cadre_error why;
    struct replica_view view;
    replica_show(shared->replica, &view);
    cadre_error_set(&why, CADRE_UNAVAILABLE,
        "the coordinator does not know whether it leads still, because etcd has not confirmed it "
        "for %" PRIu64 " ms (%s): jobs do the steps that are admitted, then wait, and go on by "
        "themselves",
        shared->daemon->options.ha.lease_us / CADRE_US_PER_MS,
        view.failure[0] != '\0' ? view.failure : "no answer");
    shared->suspended = true;
    engine_suspend(shared->daemon->engine, clock_monotonic_us(), &why);
}

void shared_ledger_turn(struct daemon *daemon)
{
    struct shared_ledger *shared = daemon->shared;
    if (shared == NULL || daemon->engine == NULL) {
        return;
    }
    struct replica_view view;
    replica_show(shared->replica, &view);
    daemon->log_index = view.core.head.index;
    bool may = !shared->left && shared_ledger_may_send(daemon);
    shared_note_leading(shared, may);
    if (!may && !shared->suspended) {
        suspend(shared);
    } else if (may && shared->suspended) {
        shared->suspended = false;
        engine_resume(daemon->engine, clock_monotonic_us());
    }
    engine_log_stored(daemon->engine, shared->logged);
}
