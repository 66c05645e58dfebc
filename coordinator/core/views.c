/* SPDX-License-Identifier: Apache-2.0
 * What the shell may look at: jobs, their tasks, members and workers, and the worker daemons. */
#include "coordinator/core/state.h"

static void text_set(char *bytes, size_t size_bytes, const char *string)
{
    struct text text = text_begin(bytes, size_bytes);
    text_add(&text, string);
}

static void job_text(
    const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    if (job->state == JOB_QUEUED) {
        placement_text(core, job, sentence);
    } else if (job->text[0] != '\0') {
        text_add(&text, job->text);
    } else if (job->state == JOB_STARTING) {
        text_add_u64(&text, job->running);
        text_add(&text, " of ");
        text_add_u64(&text, job->tasks);
        text_add(&text, " tasks run");
    } else if (job->phase == PHASE_JOIN && job->joined > 0) {
        text_add_u64(&text, job->joined);
        text_add(&text, " of ");
        text_add_u64(&text, job->tasks);
        text_add(&text, " tasks joined");
    }
}

bool core_job(const struct core *core, struct job_id id, struct core_job_view *ret_view)
{
    const struct job *job = job_find(core, id);
    if (job == NULL) {
        return false;
    }
    bool formed = job->generation.number > 0;
    *ret_view = (struct core_job_view){
        .job = job->id,
        .state = job->state,
        .tasks = job->tasks,
        .roster = job->roster,
        .workers = job->parties,
        .queued_before = job->state == JOB_QUEUED ? job_queued_before(core, job) : 0,
        .generation = job->generation,
        .resume = job->resume,
        .released = job->released,
        .committed = formed ? job->applied.least : 0,
        .checkpoint_at = POSITION_NONE,
        .halt_at = POSITION_NONE,
        .halt_kind = HALT_NONE,
        .checkpoint_slot = job->checkpoint_slot,
    };
    job_text(core, job, ret_view->text);
    text_set(ret_view->checkpoint, sizeof(ret_view->checkpoint), job->checkpoint_path);
    return true;
}

void core_job_task(
    const struct core *core, struct job_id id, uint32_t slot, struct core_task_view *ret_view)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(job != NULL);
    const struct task *task = job_task(core, job, slot);
    *ret_view = (struct core_task_view){
        .slot = slot,
        .incarnation = task->incarnation,
        .state = task->state,
        .pid = task->pid,
        .has_exit = task->has_exit,
        .exit = {.code = task->exit_code, .signal = task->exit_signal},
        .said_hello = task->joined,
        .collected = task->collected,
        .rank = task->rank,
        .replicas = task->replicas,
    };
    text_set(ret_view->mesh_address, sizeof(ret_view->mesh_address), task->mesh_address);
    if (task->party != NONE) {
        const struct party *party = job_party(core, job, task->party);
        ret_view->worker = party->worker_id;
        if (party->worker != NONE) {
            ret_view->link = core->workers[party->worker].link;
        }
    }
}

uint32_t core_job_member(const struct core *core, struct job_id id, uint32_t rank)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(job != NULL);
    CADRE_ASSERT(rank < job->roster);
    return core->members[job->first + rank];
}

void core_job_worker(const struct core *core, struct job_id id, uint32_t i,
    struct worker_id *ret_worker, struct link_id *ret_link, uint32_t *ret_members)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(job != NULL);
    const struct party *party = job_party(core, job, i);
    *ret_worker = party->worker_id;
    *ret_link = party->worker == NONE ? (struct link_id){0} : core->workers[party->worker].link;
    *ret_members = party->members;
}

uint32_t core_worker_count(const struct core *core)
{
    return core->workers_live.count;
}

bool core_worker(const struct core *core, uint32_t i, struct core_worker_view *ret_view)
{
    const struct list *live = &core->workers_live;
    uint32_t index = live->first;
    while (i > 0 && index != LIST_NONE) {
        index = live->nodes[index].next;
        i--;
    }
    if (index == LIST_NONE) {
        return false;
    }
    const struct worker *worker = &core->workers[index];
    *ret_view = (struct core_worker_view){
        .worker = worker->id,
        .link = worker->link,
        .boot_nonce = worker->boot_nonce,
        .slots = worker->slots,
        .slots_used = worker->slots_used,
        .draining = worker->draining,
    };
    text_set(ret_view->name, sizeof(ret_view->name), worker->name);
    return true;
}
