/* SPDX-License-Identifier: Apache-2.0
 * The shell of a coordinator's leadership, as coordinator/replication: its requests, its copy, its
 * timer. */
#include "common/pure/assert.h"
#include "replicas.h"

typedef unsigned long long ull;

#define BACK_US 20000 /* until a process that has ended is started again */

uint64_t replica_boot_us(const struct sim *sim, const struct replica *replica)
{
    return clock_shows(&replica->boot_clock, sim->now_us);
}

bool replica_may_send(const struct sim *sim, const struct replica *replica)
{
    if (!replica->runs || !replica->leads || replica->lacks) {
        return false;
    }
    uint64_t boot_us = replica_boot_us(sim, replica);
    struct leadership_view view;
    leadership_show(replica->core, &view);
    if (sim->mutant == MUTANT_TIME_FROM_ANSWER && boot_us < replica->widened_us) {
        return true;
    }
    if (sim->mutant == MUTANT_TIME_UNCHECKED) {
        return view.state == LEADERSHIP_LEADING || view.state == LEADERSHIP_SUSPENDED;
    }
    return boot_us < leadership_may_send_until_us(replica->core);
}

/* ---- requests ---- */

/* What the entries of a transaction say. */
static void build(
    struct sim *sim, struct replica *replica, const struct log_transaction *transaction)
{
    struct payload *payload = &replica->kept;
    payload->count = 0;
    if (transaction->term_entry) {
        payload->contents[payload->count++] = (struct content){.kind = CONTENT_TERM,
            .request = transaction->head.nonce.low,
            .format = sim->replicas->store.cluster.format};
        return;
    }
    for (uint64_t t = transaction->first_ticket;
         transaction->kind == LOG_APPEND && t <= transaction->last_ticket; t++) {
        const struct offered_entry *entry = &sim->replicas->ledger[replica->tickets[t] - 1];
        if (entry->kind != LEADERSHIP_CONFIRM) {
            CADRE_ASSERT(payload->count < CADRE_COUNT_OF(payload->contents));
            payload->contents[payload->count++] = (struct content){.kind = CONTENT_JOB,
                .request = replica->tickets[t],
                .format = sim->replicas->store.cluster.format,
                .bytes = ENTRY_BYTES};
        }
    }
}

static void mutate(struct sim *sim, struct request *request, uint32_t attempt)
{
    const struct etcd *store = &sim->replicas->store;
    struct log_transaction *transaction = &request->transaction;
    if (mutant_goes_on(sim, MUTANT_REVISION_ONLY)) {
        request->checks = STORE_CHECKS_HEAD;
    }
    if (transaction->kind != LOG_APPEND) {
        return;
    }
    if (mutant_goes_on(sim, MUTANT_NO_GUARD)) {
        request->checks = 0;
    }
    if (attempt > 1 && store->head.term == transaction->head.term &&
        mutant_goes_on(sim, MUTANT_SENT_AS_NEW)) {
        transaction->guard_head_revision = store->head.mod_revision;
        transaction->head.hash = store->head.hash;
        transaction->first_index = store->head.index + 1;
        transaction->head.index = store->head.index + request->payload.count;
    }
}

static void transact(struct sim *sim, uint32_t r, const struct leadership_action *action)
{
    struct replica *replica = replica_of(sim, r);
    const struct log_transaction *transaction = &action->transact.transaction;
    if (action->transact.attempt == 1) {
        replica->kept_number = action->transact.request;
        build(sim, replica, transaction);
    }
    CADRE_ASSERT(replica->kept_number == action->transact.request);
    uint32_t at = request_new(sim, r, action->transact.request, false);
    struct request *request = &sim->replicas->requests[at];
    request->transaction = *transaction;
    request->payload = replica->kept;
    request->snapshot = replica->snapshots.held;
    mutate(sim, request, action->transact.attempt);
    request_send(sim, at);
}

static void read_log(struct sim *sim, uint32_t r, const struct leadership_action *action)
{
    uint32_t at = request_new(sim, r, action->read.request, true);
    struct request *request = &sim->replicas->requests[at];
    uint32_t most = action->read.entries_max;
    request->after = action->read.after;
    request->entries_max = most < READ_ENTRIES ? most : READ_ENTRIES;
    request_send(sim, at);
}

static void take_answer(struct sim *sim, uint32_t at, uint64_t without)
{
    struct request *request = &sim->replicas->requests[at];
    uint32_t r = request->replica;
    struct replica *replica = replica_of(sim, r);
    struct leadership_event event = {.type = LEADERSHIP_EVENT_UNANSWERED};
    request->used = false;
    if (!replica->runs || replica->incarnation != request->incarnation) {
        return;
    }
    if (without != 0) {
        event.unanswered.request = request->number;
        event.unanswered.no_space = without == 2;
    } else if (request->is_read) {
        request->read.request = request->number;
        request->read.entries = request->entries;
        event.type = LEADERSHIP_EVENT_READ;
        event.read = request->read;
    } else {
        event.type = LEADERSHIP_EVENT_ANSWERED;
        event.answer = request->answer;
        event.answer.request = request->number;
        event.answer.hash = store_hash_after(&request->transaction, &request->payload);
        if (request->answer.applied && sim->mutant == MUTANT_TIME_FROM_ANSWER) {
            sim->mutated = true;
            replica->widened_us = replica_boot_us(sim, replica) + sim->scenario.log_lease_us;
        }
    }
    struct log_entry entries[READ_ENTRIES]; /* the request's may be used again in the step */
    bool has_read = request->is_read && without == 0;
    CADRE_ASSERT(!has_read || request->read.entry_count <= READ_ENTRIES);
    for (uint32_t i = 0; has_read && i < request->read.entry_count; i++) {
        entries[i] = request->entries[i];
    }
    event.read.entries = has_read ? entries : event.read.entries;
    replica_event(sim, r, &event);
}

/* ---- the copy ---- */

static void apply(struct sim *sim, uint32_t r, const struct leadership_action *action)
{
    struct replica *replica = replica_of(sim, r);
    bool slow = sim->now_us < replica->slow_us;
    replica->applying_to = action->apply.to;
    replica->applying_from = replica->copy.index + 1;
    replica->applying = action->apply.count;
    schedule(sim,
        slow ? draw(sim, 1, sim->scenario.log_lease_us) : sim->scenario.log_delay_us / 4 + 1,
        ON_REPLICA_APPLIED, r, replica->incarnation, 0);
}

static void applied(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    if (sim->now_us < replica->full_us) {
        trace(sim, "the copy of c%u has no room", r);
        replica_event(sim, r,
            &(struct leadership_event){
                .type = LEADERSHIP_EVENT_NO_ROOM, .position = replica->copy});
        return;
    }
    bool skips = replica->applying > 1 && mutant_acts(sim, MUTANT_GAP_APPLIED);
    replica_copies(
        sim, r, replica->applying_from + (skips ? 1 : 0), replica->applying - (skips ? 1 : 0));
    replica->copy = replica->applying_to;
    check_copy(sim, r);
    snapshots_applied(sim, r, replica->applying);
    replica_event(sim, r,
        &(struct leadership_event){
            .type = LEADERSHIP_EVENT_APPLIED, .position = replica->applying_to});
}

static void take_logged(struct sim *sim, uint32_t r, const struct leadership_logged *logged)
{
    struct replica *replica = replica_of(sim, r);
    if (logged->entries > 0 && sim->now_us < replica->full_us && !replica->lacks) {
        trace(sim, "the copy of c%u has no room, so it leaves", r);
        replica->lacks = true;
        replica->leaves = true;
    }
    if (logged->entries > 0 && !replica->lacks) {
        replica_copies(sim, r, logged->first_index, logged->entries);
        replica->copy = logged->at;
        check_copy(sim, r);
        snapshots_applied(sim, r, logged->entries);
    }
}

/* ---- what its core decides ---- */

static void schedule_wake(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    uint64_t wake_us = clock_when(&replica->boot_clock, leadership_wake_us(replica->core));
    if (wake_us < replica->wake_at_us) {
        replica->wake_at_us = wake_us;
        schedule_message(
            sim, wake_us, ON_REPLICA_WAKE, r, replica->incarnation, ++replica->wakes, NULL);
    }
}

static void known(struct replica *replica, const struct leadership_action *action)
{
    if (!replica->has_cluster) {
        replica->copy.hash = action->known.hash;
    }
    replica->has_cluster = true;
    replica->cluster_id = action->known.cluster_id;
    replica->etcd_id = action->known.etcd_id;
    replica->term_seen = action->known.term;
}

/* People start it again, as often as it takes. */
static void refused(struct sim *sim, uint32_t r, const char *text)
{
    if (!sim->replicas->was_restored) {
        broken(sim, "REFUSED", "c%u: %s", r, text);
    }
    trace(sim, "c%u is refused: %s", r, text);
    replica_stops(sim, r, false, draw(sim, BACK_US, sim->scenario.log_lease_us));
}

static void discard(struct sim *sim, uint32_t r)
{
    if (mutant_goes_on(sim, MUTANT_DISCARD_FORGOTTEN)) {
        replica_of(sim, r)->copy =
            (struct leadership_position){.hash = store_hash_at(&sim->replicas->store, 0)};
    } else {
        replica_rewinds(sim, r, 0);
    }
    snapshots_applied(sim, r, 0);
}

static void carry_out(struct sim *sim, uint32_t r, const struct leadership_action *action)
{
    struct replica *replica = replica_of(sim, r);
    switch (action->type) {
    case LEADERSHIP_ACTION_READ:
        read_log(sim, r, action);
        break;
    case LEADERSHIP_ACTION_TRANSACT:
        transact(sim, r, action);
        break;
    case LEADERSHIP_ACTION_APPLY:
        apply(sim, r, action);
        break;
    case LEADERSHIP_ACTION_STORE_KNOWN:
        known(replica, action);
        break;
    case LEADERSHIP_ACTION_LEAD:
        trace(sim, "c%u leads in term %llu", r, (ull)action->lead.term);
        take_logged(sim, r, &action->lead.logged);
        if (!replica->lacks) {
            replica_leads(sim, r, action->lead.term);
        }
        break;
    case LEADERSHIP_ACTION_LOGGED:
        take_logged(sim, r, &action->logged);
        replica_logged(sim, r, action->logged.ticket);
        break;
    case LEADERSHIP_ACTION_SUSPEND:
        replica_suspends(sim, r);
        break;
    case LEADERSHIP_ACTION_RESUME: /* its turn, which is open, looks again */
        replica_sends_logged(sim, r);
        break;
    case LEADERSHIP_ACTION_STEP_DOWN:
        trace(sim, "c%u steps down: %s", r, action->text);
        replica_stops(sim, r, false, BACK_US);
        break;
    case LEADERSHIP_ACTION_REFUSE:
        refused(sim, r, action->text);
        break;
    case LEADERSHIP_ACTION_SNAPSHOT_STORED:
        snapshots_stored(sim, r, action->stored);
        break;
    case LEADERSHIP_ACTION_FETCH_SNAPSHOT:
        snapshots_fetch(sim, r);
        break;
    case LEADERSHIP_ACTION_DISCARD:
        discard(sim, r);
        break;
    }
}

void replica_event(struct sim *sim, uint32_t r, struct leadership_event *event)
{
    struct leadership_action items[LEADERSHIP_ACTIONS_PER_STEP_MAX];
    struct leadership_actions actions = {.items = items, .capacity = CADRE_COUNT_OF(items)};
    struct replica *replica = replica_of(sim, r);
    uint32_t incarnation = replica->incarnation;
    event->now_us = replica_boot_us(sim, replica);
    leadership_step(replica->core, event, &actions);
    const char *wrong = leadership_invariant(replica->core);
    if (wrong != NULL) {
        broken(sim, "STATE", "c%u: %s", r, wrong);
    }
    for (size_t i = 0; i < actions.count && replica->incarnation == incarnation; i++) {
        carry_out(sim, r, &items[i]);
    }
    if (replica->runs && replica->incarnation == incarnation && replica->leaves) {
        replica->leaves = false;
        replica_event(sim, r, &(struct leadership_event){.type = LEADERSHIP_EVENT_LEAVE});
    }
    if (replica->runs && replica->incarnation == incarnation) {
        schedule_wake(sim, r);
        snapshots_check(sim, r);
    }
}

void replica_happens(struct sim *sim, const struct happening *happening)
{
    uint32_t r = happening->a;
    if (happening->type == ON_LOG_ANSWER) {
        take_answer(sim, r, happening->n);
        return;
    }
    struct replica *replica = replica_of(sim, r);
    if (replica->incarnation != happening->b) {
        return;
    }
    if (happening->type == ON_REPLICA_START) {
        replica_starts(sim, r);
    } else if (happening->type == ON_REPLICA_CHANGED) {
        replica_event(sim, r, &(struct leadership_event){.type = LEADERSHIP_EVENT_CHANGED});
    } else if (happening->type == ON_REPLICA_APPLIED) {
        applied(sim, r);
    } else if (happening->n == replica->wakes) {
        replica->wake_at_us = UINT64_MAX;
        replica_event(sim, r, &(struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
    }
}
