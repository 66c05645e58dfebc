/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a job with parameter servers. The chief pushes each step to all servers before it
 * takes it; a server answers when its memory has it, and the copy of the server behind it, by the
 * production's rule (worker/library/ps/server/backup_record.c). Memory outlives a process on its
 * host, for the process whose START names it as predecessor. */
#include <string.h>

#include "common/pure/assert.h"
#include "replicas/replicas.h"
#include "sim.h"

#define RETRY_US 50000

typedef unsigned long long ull;

static const struct ps_job *ps_job_of(const struct sim *sim, const struct process *process)
{
    return &sim->jobs[process->job].plan->ps_job;
}

static bool is_server(const struct sim *sim, const struct process *process)
{
    return ps_job_role(ps_job_of(sim, process), process->ref.slot) == ROLE_SERVER;
}

bool ps_is_ps_task(const struct sim *sim, const struct process *process)
{
    return ps_job_is_set(ps_job_of(sim, process)) && process->ref.slot > 0;
}

/* ---- memory that a host keeps ---- */

static uint32_t memory_make(struct sim *sim)
{
    sim->memories =
        grown(sim->memories, &sim->memory_capacity, sim->memory_count + 1, sizeof(*sim->memories));
    sim->memories[sim->memory_count] = (struct memory){.nonce = sim->memory_count + 1};
    return sim->memory_count++;
}

/* It takes over its predecessor's memory here, or gets empty memory. */
void ps_prepared(struct sim *sim, uint32_t index, uint64_t predecessor)
{
    struct process *process = &sim->processes[index];
    struct agent *a = &sim->agents[process->agent];
    if (!is_server(sim, process)) {
        return;
    }
    struct kept *entry = NULL;
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        struct kept *kept = &a->kept[i];
        bool same = kept->last != 0 && kept->job == process->job && kept->slot == process->ref.slot;
        entry = same || (entry == NULL && kept->last == 0) ? kept : entry;
    }
    CADRE_ASSERT(entry != NULL);
    bool takes = entry->last != 0 && predecessor != 0 && entry->last == predecessor;
    *entry = (struct kept){.job = process->job,
        .slot = process->ref.slot,
        .last = process->ref.incarnation,
        .memory = takes ? entry->memory : memory_make(sim)};
    process->server = (struct server){.memory = entry->memory};
}

void ps_forget(struct sim *sim, uint32_t agent, struct job_id job)
{
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        struct kept *kept = &sim->agents[agent].kept[i];
        if (kept->last != 0 && (job.n == 0 || sim->jobs[kept->job].id.n == job.n)) {
            *kept = (struct kept){0};
        }
    }
}

/* ---- the members that a task has ---- */

static struct task_member *member_of(struct process *process, uint32_t slot)
{
    struct task_member *found = NULL;
    for (uint32_t i = 0; i < process->member_count && found == NULL; i++) {
        found = process->members[i].slot == slot ? &process->members[i] : NULL;
    }
    return found;
}

/* The process behind a member, when it can be reached. */
static struct process *reach(struct sim *sim, struct process *from, uint32_t slot)
{
    const struct task_member *member = member_of(from, slot);
    struct process *found = NULL;
    for (uint32_t i = 0; member != NULL && member->here && i < sim->process_count; i++) {
        struct process *process = &sim->processes[i];
        bool same = process->ref.job.n == from->ref.job.n && process->ref.slot == slot &&
                    process->ref.incarnation == member->incarnation;
        const struct pause *pause = &sim->agents[process->agent].pause;
        bool runs = process->program != PROGRAM_DEAD && process->core.phase != 0 &&
                    !process->stopped && !(pause->on && pause->suspended);
        found = same && runs ? process : found;
    }
    return found;
}

/* ---- servers ---- */

static uint32_t slot_behind(const struct sim *sim, const struct process *process)
{
    const struct ps_job *ps_job = ps_job_of(sim, process);
    uint32_t first = ps_job_first_slot(ps_job, ROLE_SERVER);
    return first + (process->ref.slot - first + 1) % ps_job->servers;
}

static void send_backed(struct sim *sim, uint32_t index)
{
    const struct process *process = &sim->processes[index];
    const struct backup_record *backup_record = &process->server.backup_record;
    bool connected = process->program != PROGRAM_DEAD && process->core.connected;
    if (connected && process->server.serves && backup_record->sent.number > 0 &&
        !backup_record->recorded) {
        process_send(
            sim, index, &(struct task_up){.type = TASK_UP_BACKED, .backed = backup_record->sent});
    }
}

/* An incarnation begins: with its memory, with the recorded copy, or empty. */
static void begin(struct sim *sim, struct process *process, const struct task_member *own)
{
    struct server *server = &process->server;
    struct memory *memory = &sim->memories[server->memory];
    uint64_t generation = process->members_of.number;
    bool current = memory->generation == generation || mutant_goes_on(sim, MUTANT_KEPT_ANYHOW);
    bool found = current && memory->whole;
    uint64_t by = ps_job_of(sim, process)->backups && own->backed.number == 0 ? own->backed.by : 0;
    if (!found && by != 0) {
        const struct task_member *behind = member_of(process, slot_behind(sim, process));
        bool attempts = behind != NULL && behind->incarnation == by;
        struct process *backup = attempts ? reach(sim, process, behind->slot) : NULL;
        if (attempts && backup == NULL) {
            return; /* it is waited for until the coordinator reports it lost */
        }
        struct copy *copy = backup == NULL ? NULL : &backup->server.copy;
        if (copy != NULL && copy->whole && copy->generation == generation) {
            *memory = (struct memory){.nonce = copy->nonce,
                .generation = generation,
                .applied = copy->applied,
                .whole = true};
            copy->from = process->ref.incarnation;
            found = true;
            trace(sim, "job %llu: server %u.%llu takes the copy of %llu", (ull)process->ref.job.n,
                process->ref.slot, (ull)process->ref.incarnation, (ull)by);
        }
    }
    memory->generation = generation;
    if (!found) {
        *memory = (struct memory){
            .nonce = ++sim->memory_nonce << 32, .generation = generation, .whole = true};
    }
    struct task_backed recorded = {
        .by = ps_job_of(sim, process)->backups && found ? own->backed.by : 0};
    backup_record_begin(&server->backup_record, &recorded);
    server->serves = true;
}

/* The incarnation behind it whose copy has all of its memory; 0: none has. */
static uint64_t copied_to(struct sim *sim, struct process *process)
{
    const struct memory *memory = &sim->memories[process->server.memory];
    struct process *backup = reach(sim, process, slot_behind(sim, process));
    if (backup == NULL || backup->server.copy.from > process->ref.incarnation) {
        return 0;
    }
    backup->server.copy = (struct copy){.from = process->ref.incarnation,
        .nonce = memory->nonce,
        .generation = memory->generation,
        .applied = memory->applied,
        .whole = true};
    if (memory->applied > 0 && mutant_goes_on(sim, MUTANT_COPY_BEHIND)) {
        backup->server.copy.applied--;
    }
    return backup->ref.incarnation;
}

/* Whether it has answered. */
static bool server_takes(struct sim *sim, struct process *process, uint64_t step)
{
    struct server *server = &process->server;
    struct memory *memory = &sim->memories[server->memory];
    memory->applied = memory->applied < step ? step : memory->applied;
    if (!ps_job_of(sim, process)->backups) {
        return true;
    }
    if (server->backup_record.counted != 0 && mutant_goes_on(sim, MUTANT_ANSWERED_ALONE)) {
        return true;
    }
    uint64_t with = copied_to(sim, process);
    if (backup_record_update(&server->backup_record, with)) {
        send_backed(sim, (uint32_t)(process - sim->processes));
    }
    return backup_record_allows(server->backup_record.counted, with);
}

/* ---- messages ---- */

/* Changes that are the newest leave the list that the coordinator sent. */
static void check_changes(
    struct sim *sim, const struct process *process, const struct task_members *members)
{
    const struct job *job = job_by_id(sim, process->ref.job);
    const struct members_sent *sent = sim->scenario.replicas > 0
                                          ? replicas_members_sent(sim, (uint32_t)(job - sim->jobs))
                                          : &job->members_sent;
    if (sent == NULL) {
        return;
    }
    const struct sent_list *list = process->ref.slot == 0 ? &sent->to_chief : &sent->to_others;
    bool newest =
        generation_equal(sent->generation, members->generation) && list->number == members->number;
    if (members->changes && newest &&
        !members_sent_holds(list, process->members, process->member_count)) {
        broken(sim, "PS_JOB", "job %llu: after the changes of list %llu, task %u.%llu has another",
            (ull)process->ref.job.n, (ull)members->number, process->ref.slot,
            (ull)process->ref.incarnation);
    }
}

/* Of several coordinators: what one has recorded, each later one knows. */
static void check_recorded(
    struct sim *sim, struct process *process, const struct task_backed *recorded)
{
    uint64_t known = process->server.known_recorded;
    if (sim->scenario.replicas > 0 && recorded->number < known) {
        broken(sim, "KEPT", "job %llu: copy %llu of server %u.%llu was recorded, and now is %llu",
            (ull)process->ref.job.n, (ull)known, process->ref.slot, (ull)process->ref.incarnation,
            (ull)recorded->number);
    }
    process->server.known_recorded = recorded->number;
}

void ps_on_members(struct sim *sim, uint32_t index, const struct task_members *members)
{
    struct process *process = &sim->processes[index];
    CADRE_ASSERT(members->member_count <= SCENARIO_PS_TASKS_MAX);
    bool continues = generation_equal(members->generation, process->members_of) &&
                     members->number == process->members_number + 1;
    if (members->changes && !continues && !mutant_acts(sim, MUTANT_CHANGES_ANYHOW)) {
        return; /* of a list that it does not have */
    }
    for (size_t i = 0; i < members->member_count && members->changes; i++) {
        struct task_member *member = member_of(process, members->members[i].slot);
        if (member != NULL) {
            *member = members->members[i];
        }
    }
    if (!members->changes) {
        memcpy(
            process->members, members->members, members->member_count * sizeof(*members->members));
        process->member_count = (uint32_t)members->member_count;
    }
    process->members_of = members->generation;
    process->members_number = members->number;
    check_changes(sim, process, members);
    const struct task_member *own = member_of(process, process->ref.slot);
    if (!is_server(sim, process) || own == NULL || own->incarnation != process->ref.incarnation) {
        return;
    }
    check_recorded(sim, process, &own->backed);
    if (process->server.serves) {
        backup_record_confirmed(&process->server.backup_record, &own->backed);
    } else {
        begin(sim, process, own);
    }
    send_backed(sim, index);
}

void ps_tick(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct task_member *own = member_of(process, process->ref.slot);
    if (is_server(sim, process) && own != NULL && !process->server.serves &&
        own->incarnation == process->ref.incarnation) {
        begin(sim, process, own);
    }
    send_backed(sim, index);
}

/* ---- the chief ---- */

enum pushed { PUSHED, PUSH_WAITS, PUSH_LOST };

static enum pushed push_to(struct sim *sim, struct process *chief, uint32_t slot, uint64_t step)
{
    struct process *server = reach(sim, chief, slot);
    bool meant = server != NULL && server->server.serves &&
                 generation_equal(server->members_of, chief->members_of);
    if (!meant) {
        return PUSH_WAITS;
    }
    const struct memory *memory = &sim->memories[server->server.memory];
    struct known_memory *known = &chief->knows[slot];
    if (known->nonce == 0 && memory->applied > 0) {
        broken(sim, "KEPT", "job %llu: server %u.%llu begins with %llu steps of another chief",
            (ull)chief->ref.job.n, slot, (ull)server->ref.incarnation, (ull)memory->applied);
    }
    if (known->nonce == 0) {
        *known = (struct known_memory){.nonce = memory->nonce};
    }
    if (known->nonce != memory->nonce) {
        return PUSH_LOST;
    }
    if (memory->applied < known->answered) {
        broken(sim, "KEPT", "job %llu: server %u.%llu has %llu steps, and %llu were answered",
            (ull)chief->ref.job.n, slot, (ull)server->ref.incarnation, (ull)memory->applied,
            (ull)known->answered);
    }
    if (!server_takes(sim, server, step)) {
        return PUSH_WAITS;
    }
    known->answered = step;
    return PUSHED;
}

static bool has_worker(struct sim *sim, struct process *chief)
{
    bool found = false;
    for (uint32_t i = 0; i < ps_job_of(sim, chief)->workers && !found; i++) {
        found = reach(sim, chief, 1 + i) != NULL;
    }
    return found;
}

bool ps_push(struct sim *sim, uint32_t index)
{
    static const struct scenario_death loss = {.kind = DEATH_STATUS, .code = 70};
    struct process *chief = &sim->processes[index];
    const struct ps_job *ps_job = ps_job_of(sim, chief);
    if (!ps_job_is_set(ps_job)) {
        return true;
    }
    bool current = generation_equal(chief->members_of, chief->core.generation);
    enum pushed pushed = current && has_worker(sim, chief) ? PUSHED : PUSH_WAITS;
    uint32_t first = ps_job_first_slot(ps_job, ROLE_SERVER);
    for (uint32_t i = 0; i < ps_job->servers && pushed == PUSHED; i++) {
        pushed = push_to(sim, chief, first + i, chief->core.position + 1);
    }
    if (pushed == PUSH_WAITS) {
        schedule(sim, RETRY_US, ON_PROGRAM, chief->doing, chief->incarnation, index);
    } else if (pushed == PUSH_LOST) {
        trace(sim, "job %llu: the memory of a server is lost", (ull)chief->ref.job.n);
        process_die(sim, index, &loss); /* it begins again from its checkpoint */
    }
    return pushed == PUSHED;
}
