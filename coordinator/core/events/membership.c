/* SPDX-License-Identifier: Apache-2.0
 * Membership: hellos and losses of worker daemons. A worker is one incarnation of a daemon, known
 * by its boot nonce; declared lost is lost for good (protocol, rule 7), and the daemon comes back
 * as another worker. turn/core.c and silence.c call this. */
#include "coordinator/core/events/membership.h"

#include "coordinator/core/events/task_lifecycle.h"
#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/states.h"

static struct version_range range_of(const struct agent_hello *hello)
{
    bool more = hello->protocol_newest > hello->protocol_version;
    return (struct version_range){.oldest = hello->protocol_version,
        .newest = more ? hello->protocol_newest : hello->protocol_version};
}

/* "7", or "7 to 9". */
static void text_range(struct text *text, struct version_range range)
{
    text_add_u64(text, range.oldest);
    if (range.newest > range.oldest) {
        text_add(text, " to ");
        text_add_u64(text, range.newest);
    }
}

/* Whether this hello is well formed; else `sentence` names the fault and the remedy. */
static cadre_status hello_check(
    const struct core *core, const struct agent_hello *hello, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    uint32_t protocol;
    if (!version_range_common(range_of(hello), AGENT_PROTOCOL_RANGE, &protocol)) {
        text_add(&text, "the worker has agent protocol ");
        text_range(&text, range_of(hello));
        text_add(&text, ", this coordinator ");
        text_range(&text, AGENT_PROTOCOL_RANGE);
        text_add(&text, ": install the same version of both");
        return CADRE_FAILED_PRECONDITION;
    }
    if (hello->name == NULL || hello->name[0] == '\0' || strlen(hello->name) >= LIMIT_NAME_BYTES) {
        text_add(&text, "a worker's name has 1 to ");
        text_add_u64(&text, LIMIT_NAME_BYTES - 1);
        text_add(&text, " bytes: give another one with --name");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->slots == 0 || hello->slots > LIMIT_SLOTS_PER_WORKER) {
        text_add(&text, "a worker offers 1 to ");
        text_add_u64(&text, LIMIT_SLOTS_PER_WORKER);
        text_add(&text, " slots, not ");
        text_add_u64(&text, hello->slots);
        text_add(&text, ": give another number with --slots");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->gpus.usable > LIMIT_GPUS_PER_WORKER) {
        text_add(&text, "a worker has at most ");
        text_add_u64(&text, LIMIT_GPUS_PER_WORKER);
        text_add(&text, " GPUs, not ");
        text_add_u64(&text, hello->gpus.usable);
        text_add(&text, ": use fewer with --gpus");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->task_count > AGENT_ENTRIES(LIMIT_SLOTS_PER_WORKER)) {
        text_add(&text, "a worker holds at most ");
        text_add_u64(&text, AGENT_ENTRIES(LIMIT_SLOTS_PER_WORKER));
        text_add(&text, " tasks, not ");
        text_add_u64(&text, hello->task_count);
        return CADRE_INVALID_ARGUMENT;
    }
    if (behind_newest(hello).n > core->job_last) {
        behind_text(core, behind_newest(hello), &text);
        text_add(&text, ", or the worker once without --keep-tasks, which drops that state");
        return CADRE_FAILED_PRECONDITION;
    }
    if (hello->task_count > STRAYS_MAX - core->stray_count) {
        text_add(&text, "many workers came back at once with tasks to be checked: try again");
        return CADRE_UNAVAILABLE;
    }
    return CADRE_OK;
}

/* Binds the worker to the stream. An older stream of it is refused. */
static void worker_bind(
    struct core *core, uint32_t worker, struct link_id link, const struct agent_hello *hello)
{
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(link.n != 0);
    if (w->state == WORKER_CONNECTED && w->link.n != link.n) {
        stream_refuse(core, w->link, CADRE_ABORTED, "the worker came back on a newer stream");
    }
    if (w->link.n != 0) {
        map_remove(&core->workers_by_link, w->link.n, worker);
    }
    map_add(&core->workers_by_link, link.n, worker);
    worker_move(w, WORKER_CONNECTED, ABSENCE_NONE);
    w->link = link;
    bool common = version_range_common(range_of(hello), AGENT_PROTOCOL_RANGE, &w->protocol);
    CADRE_ASSERT(common); /* hello_check() saw it */
    w->overdue = false;
    w->orphan_us = hello->orphan_us;
    w->boot_nonce = hello->boot_nonce;
    w->slots = hello->slots;
    w->slot_gpus = gpus_per_slot(hello->gpus.usable, hello->slots);
    w->last_seen_us = core->now_us;
    if (w->leaves && !hello->draining) { /* a new daemon, which took over the tasks */
        w->leaves = false;
        drain_ends(core, worker);
    }
    worker_lease_set(core, worker);
    worker_offer(core, worker);

    struct core_action *action = action_add(core, CORE_ACTION_WELCOME);
    action->welcome.link = link;
    action->welcome.worker = w->id;
    action->welcome.protocol = w->protocol;
    CADRE_ASSERT(w->state == WORKER_CONNECTED && w->link.n == link.n);
    CADRE_ASSERT(worker_by_link(core, link) == worker);
}

/* A task of the job that is to end, and whose stop its worker may have missed. */
static bool ends_listed(const struct job *job, const struct task *task)
{
    return (job->stopped || task->dismissed != DISMISSED_NOT) && !task->collected &&
           !behind_is(job);
}

/* The tasks that the agent holds: unwanted ones are stopped. Tasks of no known job take entries
 * until they are collected. */
static void tasks_listed(struct core *core, uint32_t worker, const struct agent_hello *hello)
{
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state == WORKER_CONNECTED);
    w->leftovers = 0;
    w->keeps = false;
    for (size_t i = 0; i < hello->task_count; i++) { /* before any of them is stopped */
        struct job *job;
        w->keeps |= task_find(core, worker, hello->tasks[i], &job) == NULL &&
                    behind_keeps(core, worker, hello->tasks[i]);
    }
    for (size_t i = 0; i < hello->task_count; i++) {
        struct job *job;
        struct task *task = task_find(core, worker, hello->tasks[i], &job);
        bool unwanted =
            task == NULL ? !behind_keeps(core, worker, hello->tasks[i]) : ends_listed(job, task);
        if (unwanted) {
            stray_add(core, w->link, hello->tasks[i]);
        }
        if (task != NULL) {
            task->listed_step = core->steps;
        } else {
            w->leftovers++;
        }
    }
    worker_offer(core, worker);
    CADRE_ASSERT(core->stray_count <= STRAYS_MAX);
}

/* Rule 19: a returning worker may have missed messages to its old stream. A task that ran and is
 * not listed is lost; one that was never started there is started (again), if the worker has an
 * entry for it: a collected task may still have its entry, because its daemon was started again
 * before it received STOP_TASK. The other messages are repeated when the tasks' hellos are. */
static void task_group_resume(struct core *core, struct job *job, uint32_t worker, bool expected)
{
    CADRE_ASSERT(core->workers[worker].state == WORKER_CONNECTED);
    /* After a start of the coordinator it is not known whether this daemon ever had a task that it
     * does not list. Before the first plan such a task has no state, and is started (again). */
    bool known = !expected || job->generation.number == 0;
    bool again = false;
    for (uint32_t slot = task_group_first(core, job, worker); slot != NONE;
         slot = task_group_next(core, job, worker, slot)) {
        const struct task *task = job_task(core, job, slot);
        bool listed = task->listed_step == core->steps;
        bool starts = task->state == TASK_STARTING && task->dismissed == DISMISSED_NOT;
        bool serves = worker_serves(core, worker, job) && !worker_is_overfull(core, worker);
        if (!listed && starts && known && !job->stopped && serves) {
            again = true; /* of a job that is behind it is sent when that is over */
        } else if (!listed) {
            task_lose(core, job, slot, "which came back without it");
        }
    }
    if (again) {
        task_group_restart(core, job, task_group_find(core, job, worker));
    }
}

static void worker_resume(struct core *core, uint32_t worker, bool expected)
{
    struct task_group_ref ref = core->workers[worker].task_groups;
    CADRE_ASSERT(!core->workers[worker].overdue);
    while (ref.job != NONE) {
        struct job *job = &core->jobs[ref.job];
        struct task_group_ref next = job_task_group(core, job, ref.task_group)->next;
        task_group_resume(core, job, worker, expected);
        ref = next;
    }
}

static void worker_join(struct core *core, struct link_id link, const struct agent_hello *hello)
{
    uint32_t worker = worker_add(core, hello->name);
    CADRE_ASSERT(worker != NONE);
    worker_bind(core, worker, link, hello);
    tasks_listed(core, worker, hello);
    if (hello->draining) {
        worker_draining(core, worker); /* before anything is placed on it */
    }
    CADRE_ASSERT(core->workers[worker].state == WORKER_CONNECTED);
}

void member_hello(struct core *core, struct link_id link, const struct agent_hello *hello)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    cadre_status code = hello_check(core, hello, sentence);
    CADRE_ASSERT(link.n != 0);
    behind_note_newest(core, hello);
    if (code != CADRE_OK) {
        stream_refuse(core, link, code, sentence);
        return;
    }
    uint32_t worker = worker_by_name(core, hello->name);
    uint32_t bound = worker_by_link(core, link);
    bool returns = worker != NONE && (core->workers[worker].absence == ABSENCE_EXPECTED ||
                                         core->workers[worker].boot_nonce == hello->boot_nonce);
    if (bound != NONE && (!returns || bound != worker)) {
        stream_refuse(
            core, link, CADRE_INVALID_ARGUMENT, "a stream belongs to one worker: open another");
        return;
    }
    if (returns) {
        bool expected = core->workers[worker].absence == ABSENCE_EXPECTED;
        lease_returns(core, worker);
        worker_bind(core, worker, link, hello);
        tasks_listed(core, worker, hello);
        worker_resume(core, worker, expected);
        if (hello->draining) {
            worker_draining(core, worker);
        }
        return;
    }
    if (worker != NONE && core->workers[worker].state == WORKER_CONNECTED) {
        text_add(&text, "a worker named ");
        text_add(&text, hello->name);
        text_add(&text, " is connected already: give this one another name with --name");
        stream_refuse(core, link, CADRE_ALREADY_EXISTS, sentence);
        return;
    }
    if (worker != NONE) { /* Rule 7: another incarnation of the daemon. */
        worker_lose(core, worker, "which was started again");
    }
    if (core->workers_free.count == 0) {
        text_add(&text, "the coordinator knows ");
        text_add_u64(&text, core->options.limits.workers_max);
        text_add(&text, " workers already, which is its limit: raise --workers-max");
        stream_refuse(core, link, CADRE_RESOURCE_EXHAUSTED, sentence);
        return;
    }
    worker_join(core, link, hello);
}

/* Members that had reported may have died with their daemon just now: a plan with them would cost a
 * lease. They report again when the worker is back. */
static void reports_lapse(struct core *core, uint32_t worker)
{
    struct task_group_ref at = core->workers[worker].task_groups;
    CADRE_ASSERT(core->workers[worker].state == WORKER_AWAY);
    while (at.job != NONE) {
        struct job *job = &core->jobs[at.job];
        for (uint32_t slot = task_group_first(core, job, worker);
             generation_is_broken(job) && slot != NONE;
             slot = task_group_next(core, job, worker, slot)) {
            struct task *task = job_task(core, job, slot);
            if (task_is_usable(task) && task->rank != NONE && task->reported) {
                task_report_again(job, task);
                abort_ask_again(core, job);
            }
        }
        at = job_task_group(core, job, at.task_group)->next;
    }
}

static void worker_goes_away(struct core *core, uint32_t worker, enum absence why)
{
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state == WORKER_CONNECTED);
    CADRE_ASSERT(worker_by_link(core, w->link) == worker);
    map_remove(&core->workers_by_link, w->link.n, worker);
    worker_move(w, WORKER_AWAY, why);
    w->link.n = 0;
    worker_offer(core, worker);
    reports_lapse(core, worker);
    CADRE_ASSERT(w->state == WORKER_AWAY && w->counted_free == 0);
}

void worker_disconnect(struct core *core, uint32_t worker, const char *sentence)
{
    CADRE_ASSERT(core->workers[worker].link.n != 0);
    stream_refuse(core, core->workers[worker].link, CADRE_UNAVAILABLE, sentence);
    worker_goes_away(core, worker, ABSENCE_SILENT);
    CADRE_ASSERT(core->workers[worker].state == WORKER_AWAY);
}

void member_relist(struct core *core)
{
    const struct list *live = &core->workers_live;
    for (uint32_t i = live->first; core->relists && i != LIST_NONE; i = live->nodes[i].next) {
        if (core->workers[i].state != WORKER_CONNECTED || !core->workers[i].keeps) {
            continue;
        }
        if (actions_left(core) == 0) {
            return; /* the next step goes on */
        }
        core->workers[i].keeps = false;
        worker_disconnect(core, i,
            "a job was cancelled of which this worker has tasks that the ledger does not have: "
            "connect again");
    }
    core->relists = false;
}

void member_link_down(struct core *core, struct link_id link)
{
    uint32_t worker = worker_by_link(core, link);
    if (worker == NONE) {
        return;
    }
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->link.n == link.n);
    worker_goes_away(core, worker, ABSENCE_CUT);
    w->last_seen_us = core->now_us;
    worker_lease_set(core, worker);
    if (w->leaves && w->task_groups.job == NONE) {
        worker_lose(core, worker, "which was drained");
    }
}

void worker_lose(struct core *core, uint32_t worker, const char *how)
{
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state != WORKER_FREE);
    CADRE_ASSERT(how[0] != '\0');
    w->leaves = false;
    while (w->task_groups.job != NONE) {
        struct job *job = &core->jobs[w->task_groups.job];
        for (uint32_t slot = task_group_first(core, job, worker); slot != NONE;
             slot = task_group_next(core, job, worker, slot)) {
            task_lose(core, job, slot, how);
        }
        uint32_t number = task_group_find(core, job, worker);
        if (number != NONE) { /* else its tasks have been removed */
            task_group_orphan(core, job, number);
        }
    }
    if (w->state == WORKER_CONNECTED) {
        stream_refuse(core, w->link, CADRE_UNAVAILABLE,
            "the worker was silent for too long and is lost: join again");
        map_remove(&core->workers_by_link, w->link.n, worker);
    }
    worker_forget(core, worker);
    CADRE_ASSERT(w->state == WORKER_FREE);
}
