/* SPDX-License-Identifier: Apache-2.0
 * The world of several coordinators: whose event it is, which one a daemon or a client turns to.
 */
#include "replicas.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

/* ---- a run ---- */

static void open_one(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    const struct scenario *s = &sim->scenario;
    replica->jobs = calloc(SCENARIO_JOBS_MAX, sizeof(*replica->jobs));
    replica->workers = calloc(s->agents, sizeof(*replica->workers));
    CADRE_ASSERT(replica->jobs != NULL && replica->workers != NULL);
    for (uint32_t i = 0; i < s->job_count; i++) {
        replica->jobs[i].stored = stored_new(s->jobs[i].tasks);
        replica->jobs[i].durable = stored_new(s->jobs[i].tasks);
        replica->jobs[i].mesh = SIM_NONE;
    }
    replica->boot_clock =
        (struct machine_clock){.ppm = s->replica_ppm[r], .shown_us = s->replica_offset_us[r]};
    replica->coordinator.clock =
        (struct machine_clock){.ppm = s->replica_ppm[r] % SCENARIO_PPM_MAX};
    schedule(sim, draw(sim, 0, s->log_lease_us / 2), ON_REPLICA_START, r, 0, 0);
}

void replicas_open(struct sim *sim)
{
    if (sim->replicas == NULL) {
        sim->replicas = calloc(1, sizeof(*sim->replicas));
        CADRE_ASSERT(sim->replicas != NULL);
    }
    struct replicas *all = sim->replicas;
    all->entered = SIM_NONE;
    all->store = (struct etcd){.entries = all->store.entries, .etcd_id = 40, .revision = 1};
    for (uint32_t i = 0; i < all->entries_capacity; i++) {
        all->store.entries[i] = (struct stored_entry){0};
    }
    all->count = sim->scenario.replicas;
    all->leaderships = 0;
    all->terms = 0;
    all->sent = 0;
    all->term_newest = 0;
    all->term_sent = 0;
    all->led_us = 0;
    all->awaited = 0;
    all->no_quorum_us = 0;
    all->no_space_us = 0;
    all->folder.count = 0;
    all->folder.made = 0;
    all->folder.named = (struct snapshot_file){.index = 0};
    all->backup.taken = false;
    all->restored = false;
    all->was_restored = false;
    sim->coordinator.core = NULL;
    for (uint32_t r = 0; r < all->count; r++) {
        open_one(sim, r);
    }
}

static void close_one(struct sim *sim, struct replica *replica)
{
    coordinator_drop_placements(&replica->coordinator);
    replica_forgets(sim, replica);
    for (uint32_t i = 0; i < SCENARIO_JOBS_MAX; i++) {
        stored_free(replica->jobs[i].stored);
        stored_free(replica->jobs[i].durable);
        members_sent_free(&replica->jobs[i].members_sent);
    }
    free(replica->coordinator.memory);
    free(replica->coordinator.turn.items);
    free(replica->coordinator.placements);
    free(replica->disk.log);
    free(replica->disk.ends);
    free(replica->jobs);
    free(replica->workers);
    free(replica->memory);
    free(replica->tickets);
    free(replica->delayed);
    lagging_free(&replica->lagging);
    *replica = (struct replica){0};
}

void replicas_close(struct sim *sim)
{
    struct replicas *all = sim->replicas;
    if (all == NULL) {
        return;
    }
    replica_leaves(sim);
    for (uint32_t r = 0; r < all->count; r++) {
        close_one(sim, &all->replicas[r]);
    }
    for (uint32_t i = 0; i < all->record_count; i++) {
        placements_drop(&all->records[i].placements);
    }
    for (uint32_t i = 0; i < all->request_count; i++) {
        all->requests[i].used = false;
    }
    all->record_count = 0;
    all->ledger_count = 0;
    all->count = 0;
}

void replicas_free(struct sim *sim)
{
    if (sim->replicas != NULL) {
        free(sim->replicas->store.entries);
        free(sim->replicas->ledger);
        free(sim->replicas->records);
        free(sim->replicas->requests);
        free(sim->replicas->folder.files);
        free(sim->replicas);
        sim->replicas = NULL;
    }
}

/* ---- who leads ---- */

/* Whether it answers that it leads. */
static bool claims(const struct sim *sim, uint32_t r)
{
    const struct replica *replica = &sim->replicas->replicas[r];
    return replica->runs && !replica->pause.on && replica_may_send(sim, replica);
}

static uint32_t leader_for(struct sim *sim, uint32_t agent)
{
    uint32_t found = SIM_NONE;
    for (uint32_t r = 0; r < sim->replicas->count; r++) {
        const struct replica *replica = replica_of(sim, r);
        bool reached = agent == SIM_NONE || sim->now_us >= replica->workers[agent].blocked_us;
        bool better = found == SIM_NONE || replica->term > replica_of(sim, found)->term;
        if (reached && claims(sim, r) && (better || one_in(sim, 8))) {
            found = r;
        }
    }
    return found;
}

bool replicas_enter_leader(struct sim *sim)
{
    uint32_t r = leader_for(sim, SIM_NONE);
    if (r != SIM_NONE) {
        replica_enters(sim, r);
    }
    return r != SIM_NONE;
}

uint32_t replicas_choose(struct sim *sim, uint32_t agent)
{
    return leader_for(sim, agent);
}

/* HA11: it receives nothing on its link, and another coordinator answers that it leads, in a higher
 * term. */
void replicas_asked(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    schedule(sim, sim->scenario.log_lease_us, ON_AGENT_ASKS, agent, a->incarnation, 0);
    if (a->link == SIM_NONE) {
        return;
    }
    const struct link *link = &sim->links[a->link];
    const struct replica *replica = replica_of(sim, link->replica);
    bool receives = !link->cut && !link->mute_down && !link->lost_down && link->coordinator_open &&
                    claims(sim, link->replica);
    uint32_t leader = receives ? SIM_NONE : leader_for(sim, agent);
    if (leader != SIM_NONE && leader != link->replica &&
        (!replica->leads || replica_of(sim, leader)->term > replica->term)) {
        trace(sim, "w%u turns to c%u", agent, leader);
        if (mutant_goes_on(sim, MUTANT_TERM_UNLOOKED)) {
            schedule(sim, 0, ON_AGENT_LINK_DOWN, a->link, 0, 0); /* the old one stays */
        } else {
            link_cut(sim, a->link, 1000);
        }
    }
}

/* HA12: the daemon has seen a higher term. */
bool replica_may_serve(struct sim *sim, uint32_t index, const struct agent_up *up)
{
    struct link *link = &sim->links[index];
    if (up->type != AGENT_UP_HELLO) {
        return true;
    }
    link->sent_hello = true;
    enum term_verdict verdict = term_judge(&up->hello.seen, &sim->coordinator.term);
    if (verdict == TERM_GOOD || verdict == TERM_FOREIGN ||
        mutant_goes_on(sim, MUTANT_TERM_UNLOOKED)) {
        return true;
    }
    trace(sim, "w%u has seen a newer term than that of c%u", link->agent, link->replica);
    link_cut(sim, index, 1000);
    link->coordinator_open = false;
    replica_event(sim, link->replica,
        &(struct leadership_event){
            .type = LEADERSHIP_EVENT_HELLO_AHEAD, .hello = {.term = up->hello.seen.start}});
    return false;
}

/* ---- whose event it is ---- */

static uint32_t leader_of(const struct sim *sim, uint32_t leadership)
{
    uint32_t found = SIM_NONE;
    for (uint32_t r = 0; r < sim->replicas->count; r++) {
        const struct replica *replica = &sim->replicas->replicas[r];
        if (replica->leads && replica->coordinator.incarnation == leadership) {
            found = r;
        }
    }
    return found;
}

/* The coordinator at that end of the link, in the leadership in which it was opened. */
static uint32_t of_link(const struct sim *sim, uint32_t index)
{
    const struct link *link = &sim->links[index];
    const struct replica *replica = &sim->replicas->replicas[link->replica];
    return replica->leads && replica->coordinator.incarnation == link->leadership ? link->replica
                                                                                  : SIM_NONE;
}

/* Whose event it is; SIM_NONE: of none that leads in that leadership. */
static uint32_t of_event(const struct sim *sim, const struct happening *happening)
{
    switch (happening->type) {
    case ON_SYNC:
    case ON_COORDINATOR_TICK:
    case ON_TURN_END:
        return leader_of(sim, happening->b);
    case ON_COORDINATOR_UP:
    case ON_COORDINATOR_LINK_DOWN:
        return of_link(sim, happening->a);
    default:
        return SIM_NONE;
    }
}

const struct pause *replicas_pause_of(const struct sim *sim, const struct happening *happening)
{
    uint32_t r = of_event(sim, happening);
    if (happening->type == ON_LOG_ANSWER) {
        r = sim->replicas->requests[happening->a].replica;
    } else if (happening->type == ON_REPLICA_WAKE || happening->type == ON_REPLICA_CHANGED ||
               happening->type == ON_REPLICA_APPLIED || happening->type == ON_REPLICA_SNAPSHOT) {
        r = happening->a;
    }
    return r == SIM_NONE ? NULL : &sim->replicas->replicas[r].pause;
}

static bool enter(struct sim *sim, uint32_t r)
{
    if (r != SIM_NONE) {
        replica_enters(sim, r);
    }
    return r != SIM_NONE;
}

/* With the same request until it has an answer (HA14). */
static bool take_submit(struct sim *sim, uint32_t index)
{
    struct job *job = &sim->jobs[index];
    if (job->answered) {
        return false;
    }
    schedule(sim, draw(sim, 300000, 1000000), ON_SUBMIT, index, 0, 0);
    if (!replicas_enter_leader(sim) || !coordinator_takes_calls(sim)) {
        return false;
    }
    bool known = job->id.n != 0 && !mutant_goes_on(sim, MUTANT_NO_REQUEST_ID);
    job->answered |= known && job->durable->known;
    return !known;
}

static bool take_call(struct sim *sim, const struct happening *happening)
{
    if (replicas_enter_leader(sim)) {
        return true;
    }
    schedule(sim, 500000, (enum happening_type)happening->type, happening->a, happening->b,
        happening->n);
    return false;
}

static bool take_fault(struct sim *sim, uint32_t index)
{
    const struct scenario_fault *fault = &sim->scenario.faults[index];
    bool call =
        fault->kind == FAULT_SAVE || fault->kind == FAULT_DAMAGE || fault->kind == FAULT_DRAIN;
    if (replicas_fault(sim, fault->kind, fault->agent)) {
        return false;
    }
    return !call || (replicas_enter_leader(sim) && coordinator_takes_calls(sim));
}

static bool take_resume(struct sim *sim, const struct happening *happening)
{
    if (happening->a == SIM_NONE || happening->a < SIM_NONE - SCENARIO_REPLICAS_MAX) {
        return true;
    }
    uint32_t r = SIM_NONE - 1 - happening->a;
    struct replica *replica = replica_of(sim, r);
    if (replica->pause.on && replica->pause.number == happening->b) {
        replica->pause.on = false;
        if (replica->pause.suspended) {
            clock_paused(
                &replica->coordinator.clock, replica->pause.since_us, replica->pause.until_us);
        }
    }
    return false;
}

bool replicas_take(struct sim *sim, const struct happening *happening)
{
    switch (happening->type) {
    case ON_SUBMIT:
        return take_submit(sim, happening->a);
    case ON_CANCEL:
    case ON_UNDRAIN:
        return take_call(sim, happening);
    case ON_SYNC:
    case ON_COORDINATOR_TICK:
    case ON_TURN_END:
    case ON_COORDINATOR_UP:
        return enter(sim, of_event(sim, happening));
    case ON_COORDINATOR_LINK_DOWN:
        if (of_event(sim, happening) == SIM_NONE) {
            sim->links[happening->a].coordinator_open = false;
        }
        return enter(sim, of_event(sim, happening));
    case ON_FAULT:
        return take_fault(sim, happening->a);
    case ON_RESUME:
        return take_resume(sim, happening);
    case ON_LOG_REQUEST:
        request_arrives(sim, happening->a, happening->b == 1);
        return false;
    case ON_LOG_ANSWER:
    case ON_REPLICA_START:
    case ON_REPLICA_WAKE:
    case ON_REPLICA_CHANGED:
    case ON_REPLICA_APPLIED:
        replica_happens(sim, happening);
        return false;
    case ON_LOG_SNAPSHOT:
    case ON_REPLICA_SNAPSHOT:
        snapshots_happen(sim, happening);
        return false;
    case ON_RESTORE:
        restore_happens(sim, happening);
        return false;
    case ON_AGENT_ASKS:
        if (sim->agents[happening->a].alive &&
            sim->agents[happening->a].incarnation == happening->b &&
            !sim->agents[happening->a].pause.on) {
            replicas_asked(sim, happening->a);
        }
        return false;
    default:
        return true;
    }
}

/* Where snapshots are made, each comes to the end of the log. */
static bool all_follow(struct sim *sim)
{
    bool all = true;
    for (uint32_t r = 0; r < sim->replicas->count && sim->scenario.snapshot_bytes > 0; r++) {
        all &= replica_of(sim, r)->copy.index == sim->replicas->store.head.index;
    }
    return all;
}

bool replicas_settled(struct sim *sim)
{
    uint32_t leader = SIM_NONE;
    for (uint32_t r = 0; r < sim->replicas->count; r++) {
        const struct replica *replica = replica_of(sim, r);
        bool open = replica->coordinator.pending_update_open || replica->coordinator.hold.held ||
                    replica->delayed_first < replica->delayed_count;
        if (replica_is_newest(sim, r) && replica_may_send(sim, replica) && !open) {
            leader = r;
        }
    }
    return leader != SIM_NONE && all_follow(sim);
}

void replicas_end(struct sim *sim)
{
    check_replicas_end(sim);
    for (uint32_t r = 0; r < sim->replicas->count; r++) {
        if (replica_is_newest(sim, r)) {
            replica_enters(sim, r);
            return;
        }
    }
}
