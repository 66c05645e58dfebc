/* SPDX-License-Identifier: Apache-2.0
 * The ledger as a log: what its entries make of it, in the log and in the copies. */
#include <string.h>

#include "common/pure/assert.h"
#include "replicas.h"

typedef unsigned long long ull;

static struct offered_entry *entry_of(struct sim *sim, uint64_t number)
{
    CADRE_ASSERT(number >= 1 && number <= sim->replicas->ledger_count);
    return &sim->replicas->ledger[number - 1];
}

/* ---- in the log ---- */

static void append_job_record(struct sim *sim, const struct replica *replica, struct entry *entry)
{
    struct job *job = &sim->jobs[entry->job];
    if (entry->record.type == CORE_RECORD_JOB) {
        if (job->stored->known) {
            broken(sim, "TWICE", "job %u was submitted once, and is in the log as %llu and as %llu",
                entry->job, (ull)job->id.n, (ull)entry->record.job.n);
            return;
        }
        if (entry->record.job.n <= sim->disk.job_max) {
            broken(sim, "IDS", "job id %llu is assigned twice", (ull)entry->record.job.n);
        }
        job->id = entry->record.job;
    }
    if (entry->record.type == CORE_RECORD_STARTED && job->stored->first_us == 0) {
        job->begun_us = replica->jobs[entry->job].begun_us; /* when it was decided */
        job->away_us = replica->jobs[entry->job].away_us;
    }
    store_note(sim, job, entry);
    if (entry->record.type == CORE_RECORD_PLAN) {
        mesh_recorded(sim, job, entry->record.plan.generation);
    }
}

static void append_entry(struct sim *sim, const struct offered_entry *entry)
{
    for (uint32_t i = 0; i < entry->count && sim->broken == NULL; i++) {
        struct entry *record = &sim->replicas->records[entry->first + i];
        record->at_us = sim->now_us;
        if (sim->tracing) {
            trace_record(sim, &record->record);
        }
        if (record->job == SIM_NONE) {
            store_note_worker(sim, &record->record);
        } else {
            append_job_record(sim, replica_of(sim, entry->replica), record);
        }
    }
}

void ledger_appended(struct sim *sim, const struct request *request)
{
    const struct log_transaction *transaction = &request->transaction;
    CADRE_ASSERT(sim->replicas->entered == SIM_NONE);
    for (uint32_t i = 0; i < request->payload.count && sim->broken == NULL; i++) {
        const struct content *content = &request->payload.contents[i];
        if (content->kind == CONTENT_TERM) {
            continue;
        }
        struct offered_entry *entry = entry_of(sim, content->request);
        if (entry->index == 0) {
            entry->index = transaction->first_index + i;
        }
        append_entry(sim, entry);
    }
}

/* The entry of the log, NULL: it is the first of a term. */
static const struct offered_entry *entry_at(struct sim *sim, uint64_t index)
{
    const struct content *content = &sim->replicas->store.entries[index - 1].content;
    return content->kind == CONTENT_TERM ? NULL : entry_of(sim, content->request);
}

bool ledger_may_rewind(struct sim *sim, uint64_t index)
{
    for (uint64_t i = index + 1; i <= sim->replicas->store.head.index; i++) {
        const struct offered_entry *entry = entry_at(sim, i);
        for (uint32_t k = 0; entry != NULL && k < entry->count; k++) {
            const struct entry *record = &sim->replicas->records[entry->first + k];
            if (record->job == SIM_NONE || record->record.type == CORE_RECORD_JOB ||
                record->record.type == CORE_RECORD_ENDED) {
                return false;
            }
        }
    }
    return true;
}

static void replay(struct sim *sim, uint64_t index)
{
    const struct offered_entry *entry = entry_at(sim, index);
    for (uint32_t k = 0; entry != NULL && k < entry->count; k++) {
        const struct entry *record = &sim->replicas->records[entry->first + k];
        if (record->job != SIM_NONE) {
            stored_apply(sim->jobs[record->job].stored, record);
            stored_apply(sim->jobs[record->job].durable, record);
        }
    }
}

void ledger_rewinds(struct sim *sim, uint64_t index)
{
    struct etcd *store = &sim->replicas->store;
    CADRE_ASSERT(sim->replicas->entered == SIM_NONE);
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        stored_clear(sim->jobs[i].stored);
        stored_clear(sim->jobs[i].durable);
    }
    for (uint64_t i = 1; i <= index; i++) {
        replay(sim, i);
    }
    for (uint64_t i = index; i < store->entries_max && store->entries[i].index != 0; i++) {
        store->entries[i] = (struct stored_entry){0};
    }
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        job->saved_at = POSITION_NONE;
        job->mesh = job->stored->generation.number == 0
                        ? SIM_NONE
                        : mesh_find(sim, i, job->stored->generation);
    }
}

/* ---- in a copy ---- */

static void copy_record(struct sim *sim, struct replica *replica, const struct entry *entry)
{
    const struct core_record *record = &entry->record;
    if (entry->job != SIM_NONE) {
        struct replica_job *job = &replica->jobs[entry->job];
        if (record->type == CORE_RECORD_JOB) {
            job->copy_id = record->job;
            replica->copy_job_max =
                record->job.n > replica->copy_job_max ? record->job.n : replica->copy_job_max;
        }
        if (record->type == CORE_RECORD_BACKED && mutant_goes_on(sim, MUTANT_BACKED_UNCOPIED)) {
            return;
        }
        stored_apply(job->durable, entry);
        return;
    }
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        struct replica_worker *worker = &replica->workers[i];
        if (record->type == CORE_RECORD_CULPRIT) {
            bool its = strcmp(sim->agents[i].name, record->culprit.worker) == 0;
            worker->copy_culprit = its ? record->culprit.times : worker->copy_culprit;
        } else if (strcmp(sim->agents[i].name, record->drained.worker) == 0) {
            worker->copy_drain = record->type == CORE_RECORD_DRAINED;
        }
    }
}

void replica_copies(struct sim *sim, uint32_t r, uint64_t from, uint32_t count)
{
    struct replica *replica = replica_of(sim, r);
    bool entered = sim->replicas->entered == r;
    if (entered) {
        replica_leaves(sim);
    }
    for (uint64_t index = from; index < from + count; index++) {
        const struct offered_entry *entry = entry_at(sim, index);
        for (uint32_t i = 0; entry != NULL && i < entry->count; i++) {
            copy_record(sim, replica, &sim->replicas->records[entry->first + i]);
        }
        replica->held++;
    }
    if (entered) {
        replica_enters(sim, r);
    }
}

void replica_rewinds(struct sim *sim, uint32_t r, uint64_t index)
{
    struct replica *replica = replica_of(sim, r);
    struct replicas *all = sim->replicas;
    CADRE_ASSERT(all->entered == SIM_NONE);
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        stored_clear(replica->jobs[i].durable);
        replica->jobs[i].copy_id.n = 0;
    }
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        replica->workers[i].copy_drain = false;
        replica->workers[i].copy_culprit = 0;
    }
    replica->copy_job_max = 0;
    replica->held = 0;
    replica_copies(sim, r, 1, (uint32_t)index);
    replica->copy = (struct leadership_position){.index = index,
        .term = index == 0 ? 0 : all->store.entries[index - 1].term,
        .hash = store_hash_at(&all->store, index)};
}

/* ---- a leader ---- */

/* As a start of a coordinator alone: each job that goes on may notice. */
static void note_leader(struct sim *sim, struct job *job)
{
    bool lives = job->stored->started && !job->stored->ended;
    job->coordinator_crashed |= job->stored->known && !job->stored->ended;
    job->crashes += lives ? 1 : 0;
    job->touches += lives ? 1 : 0;
    (void)sim;
}

static void restore_jobs(struct sim *sim, struct replica *replica)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        struct replica_job *its = &replica->jobs[i];
        stored_copy(job->stored, job->durable);
        job->id = its->copy_id;
        job->newest = (struct newest_messages){0};
        members_sent_free(&job->members_sent);
        its->lagging = (struct lagging_of_job){0};
        its->waited = 0;
        job->begun_us = its->begun_us; /* of the log */
        job->away_us = its->away_us;
        job->mesh = job->stored->generation.number == 0
                        ? SIM_NONE
                        : mesh_find(sim, i, job->stored->generation);
        if (job->mesh == SIM_NONE) {
            job->mesh = its->mesh; /* of the log: of a plan before it */
        }
        note_leader(sim, job);
    }
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        sim->agents[i].drain_stored = replica->workers[i].copy_drain;
        sim->agents[i].culprit_stored = replica->workers[i].copy_culprit;
        sim->agents[i].last_seen_us = coordinator_now(sim);
        sim->agents[i].silent_us = 0;
    }
}

void replica_leads(struct sim *sim, uint32_t r, uint64_t term)
{
    struct replica *replica = replica_of(sim, r);
    struct replicas *all = sim->replicas;
    uint64_t away_us = sim->now_us - all->led_us;
    replica_enters(sim, r);
    check_leads(sim, r);
    replica->leads = true;
    replica->term = term;
    replica->ticket_next = 1;
    replica->logged = 0;
    replica->waited = 0;
    replica->welcomed = 0;
    replica->lagging_armed = false;
    replica->lapsed = false;
    sim->away_us += away_us;
    sim->coordinator.incarnation = all->leaderships++;
    coordinator_boot(sim);
    sim->coordinator.term = term_of_start(sim, term, term);
    sim->coordinator.term_unstored = false;
    sim->disk.job_max = replica->copy_job_max;
    restore_jobs(sim, replica);
    store_restore(sim);
    replica_leaves(sim);
    all->terms++;
}
