/* SPDX-License-Identifier: Apache-2.0
 * Crews: jobs whose tasks are of types. The chief alone is the roster: plans, steps, checkpoints,
 * preemption and the end are as of a job of one task. All others attend: they are started, watched
 * and started again in their slots, and told where the others are; they never make a generation
 * end, and none is kept from ending by them.
 *
 *     MEMBERS    full state, whenever one comes or goes, and behind each plan; of the job's own
 *                generation, so not before the chief has one, nor between two. Who is told of n is
 *                told the less often the larger n is
 *     the end    bye to the chief -> workers, evaluator: bye -> all gone -> servers: bye
 */
#include "coordinator/core/parts.h"

/* A wait that is shorter is only that the last task of a slot is collected. */
#define NOTICEABLE_US UINT64_C(1000000)

bool crew_fits(const struct core_job_spec *spec)
{
    const struct crew *crew = &spec->crew;
    return !crew_is(crew) ||
           (crew->workers > 0 && spec->tasks == crew_tasks(crew) && spec->tasks_min == spec->tasks);
}

void crew_open(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks && crew_is(&job->crew); slot++) {
        struct task *task = job_task(core, job, slot);
        task->role = crew_role(&job->crew, slot);
        task->attends = slot > 0;
    }
}

uint32_t job_members_min(const struct job *job)
{
    return crew_is(&job->crew) ? 1 : job->tasks_min;
}

static uint32_t others(const struct job *job)
{
    return job->attending[ROLE_WORKER] + job->attending[ROLE_EVALUATOR];
}

uint32_t crew_held(const struct core *core, const struct job *job)
{
    const struct task *chief = job_task(core, job, 0);
    bool plain = job->generation.number == 0 && chief->has_exit && !chief->owed;
    return job->usable + (plain ? 1 : 0) + others(job) + job->attending[ROLE_SERVER];
}

/* ---- what is said of them ---- */

void crew_changed(struct core *core, struct job *job, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    if (!task->attends) {
        return;
    }
    job_due(core, job,
        DUE_CREW |
            (task->role == ROLE_SERVER ? (uint32_t)DUE_MEMBERS : (uint32_t)DUE_MEMBERS_CHIEF));
}

void crew_planned(struct core *core, struct job *job)
{
    if (crew_is(&job->crew)) {
        job->recalls = false;
        job->members_next_us = 0;
        job_due(core, job, DUE_CREW | DUE_MEMBERS);
    }
}

bool crew_holds_back(struct core *core, struct job *job)
{
    const uint32_t members = DUE_MEMBERS | DUE_MEMBERS_CHIEF;
    job->due |= job->members_held;
    job->members_held = 0;
    if (core->now_us < job->members_next_us) {
        job->members_held = job->due & members;
        job->due &= ~members;
        deadline_set(core, job, DEADLINE_MEMBERS, job->members_next_us);
        return true;
    }
    job->members_next_us = core->now_us + core->options.members_us * job->tasks;
    deadline_clear(core, job, DEADLINE_MEMBERS);
    return false;
}

void crew_members_over(struct core *core, struct job *job)
{
    job_due(core, job, job->members_held);
    job->members_held = 0;
}

bool crew_speaks(const struct job *job)
{
    return crew_is(&job->crew) && job->phase != PHASE_JOIN && !job->recalls && !job->stopped;
}

static void tell_one(struct core *core, const struct job *job, uint32_t slot, enum core_tell what)
{
    struct core_action *action = action_add(core, CORE_ACTION_TELL_JOB);
    action->tell_job.job = job->id;
    action->tell_job.tell = what;
    action->tell_job.generation = job->generation;
    action->tell_job.one = true;
    action->tell_job.slot = slot;
    action->tell_job.link =
        core->workers[job_party(core, job, job_task(core, job, slot)->party)->worker].link;
}

void crew_tell(struct core *core, struct job *job, uint32_t slot)
{
    if (crew_speaks(job) && (job->due & DUE_MEMBERS) == 0) {
        tell_one(core, job, slot, CORE_TELL_MEMBERS);
    }
}

void crew_said_hello(struct core *core, struct job *job, uint32_t slot, bool known)
{
    const struct task *task = job_task(core, job, slot);
    bool leaves =
        task->role == ROLE_SERVER ? job->leaving == LEAVING_SERVERS : job->leaving != LEAVING_NOT;
    if (!known) {
        crew_changed(core, job, slot);
    }
    job_due(core, job, DUE_CREW);
    if (job->phase == PHASE_DONE && leaves && (job->due & (DUE_BYE_CREW | DUE_BYE_SERVERS)) == 0) {
        tell_one(core, job, slot, CORE_TELL_BYE);
    } else {
        crew_tell(core, job, slot);
    }
}

/* ---- places ---- */

void crew_placed(struct core *core, struct job *job, uint32_t slot, uint32_t worker)
{
    struct task *task = job_task(core, job, slot);
    if (!crew_is(&job->crew)) {
        return;
    }
    bool home = task->home.n != 0 && task->home.n == core->workers[worker].id.n;
    task->lives++;
    task->lives_in = job->generation.number + (job->phase == PHASE_JOIN ? 1 : 0);
    task->predecessor = home ? task->kept : 0;
    task->backed.number = 0; /* the life before says nothing any more */
    job_due(core, job, DUE_CREW);
}

void crew_vacates(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    if (task->role == ROLE_SERVER) {
        const struct party *party = job_party(core, job, task->party);
        task->home = party->worker == NONE ? (struct worker_id){0} : party->worker_id;
        task->kept = task->incarnation;
    }
}

void crew_begins_anew(struct core *core, struct job *job)
{
    job->recalls = false;
    job->leaving = LEAVING_NOT;
    for (uint32_t slot = 0; slot < job->tasks && crew_is(&job->crew); slot++) {
        struct task *task = job_task(core, job, slot);
        /* What was started for the next generation already, in vain, counts for it. */
        task->lives = task->lives_in == job->generation.number + 1 ? task->lives : 0;
        task->backed = (struct task_backed){0}; /* nothing of this generation is taken over */
    }
}

/* The copy may be taken as long as this is recorded, and no longer: a server that goes on alone,
 * and one in its place that takes the copy, exclude each other, because whoever was replaced or is
 * lost is not heard. */
void crew_backed(
    struct core *core, struct job *job, uint32_t slot, const struct task_backed *backed)
{
    struct task *task = job_task(core, job, slot);
    if (task->role != ROLE_SERVER || !job->crew.backups || backed->number < task->backed.number) {
        return;
    }
    uint32_t first = crew_first(&job->crew, ROLE_SERVER);
    const struct task *behind =
        job_task(core, job, first + (slot - first + 1) % job->crew.servers);
    if (backed->by != 0 && (behind->incarnation != backed->by || !behind->usable)) {
        return; /* it hears that this one is not there, and says something else */
    }
    if (backed->number > task->backed.number) {
        task->backed = *backed;
        struct core_record *record = record_add(core, job, CORE_RECORD_BACKED, true);
        record->backed.slot = slot;
        record->backed.incarnation = task->incarnation;
        record->backed.backed = *backed;
    }
    crew_tell(core, job, slot);
}

static uint32_t home_of(const struct core *core, const struct job *job, const struct task *task)
{
    const struct list *live = &core->workers_live;
    uint32_t i = live->first;
    while (i != LIST_NONE && core->workers[i].id.n != task->home.n) {
        i = live->nodes[i].next;
    }
    bool room = i != LIST_NONE && core->workers[i].counted_free > 0 && worker_serves(core, i, job);
    return room ? i : NONE;
}

uint32_t crew_go_home(struct core *core, struct job *job, uint32_t count,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    uint32_t first = crew_first(&job->crew, ROLE_SERVER);
    uint32_t gone = 0;
    for (uint32_t i = 0; i < job->crew.servers && gone < count; i++) {
        const struct task *task = job_task(core, job, first + i);
        bool waits = task->state == TASK_WAITING && task->home.n != 0;
        uint32_t worker = waits ? home_of(core, job, task) : NONE;
        if (worker != NONE) {
            task_place(core, job, first + i, worker, job->incarnation_max + 1);
            placed(core, job, first + i);
            gone++;
        }
    }
    return gone;
}

bool crew_drains(const struct core *core, const struct job *job)
{
    uint32_t first = crew_first(&job->crew, ROLE_SERVER);
    const struct task *chief = job_task(core, job, 0);
    bool drains = chief->usable && task_drains(core, job, chief);
    for (uint32_t i = 0; i < job->crew.servers && !drains; i++) {
        const struct task *server = job_task(core, job, first + i);
        drains = server->usable && task_drains(core, job, server);
    }
    return drains;
}

/* ---- ends ---- */

void crew_exited(struct core *core, struct job *job, uint32_t slot, const struct task_exit *exit,
    const struct death *death)
{
    struct task *task = job_task(core, job, slot);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    crew_changed(core, job, slot);
    if (job->phase == PHASE_DONE) {
        if (job->preempt == PREEMPT_NOT && (exit->code != 0 || exit->signal != 0)) {
            text_add(&text, death->text);
            text_finished(job, &text);
            job_fail(core, job, death->code, death->exit_code, sentence);
        }
        return;
    }
    bool excused = task_drains(core, job, task) || (task->adopted && !task->heard) ||
                   (preempt_stops(job) && exit->signal != 0);
    if (task->joined) {
        job->restarts_without_step = 0; /* it had come as far as it can */
    }
    if (!excused && !failure_count(core, job, death->code, death->exit_code, death->text)) {
        return;
    }
    crew_lost(core, job, slot, death->text);
}

void crew_lost(struct core *core, struct job *job, uint32_t slot, const char *sentence)
{
    crew_changed(core, job, slot);
    if (job->phase == PHASE_DONE || job->preempt > PREEMPT_STOPS) {
        return;
    }
    struct text note = text_begin(job->note, sizeof(job->note));
    text_add(&note, sentence);
    text_add(&note, "; it is started again");
    if (job->phase != PHASE_COLLECT) { /* else it is known why all begin again */
        struct text reason = text_begin(job->reason, sizeof(job->reason));
        text_add(&reason, sentence);
    }
}

static void dismiss(struct core *core, struct job *job, bool servers, bool strangers)
{
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool stranger = !task->joined && !task->adopted;
        if (task->usable && (task->role == ROLE_SERVER) == servers && (stranger || !strangers)) {
            task_dismiss(core, job, slot, strangers ? DISMISSED_SUPERSEDED : DISMISSED_SILENT);
        }
    }
}

void crew_dismiss(struct core *core, struct job *job)
{
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        if (job_task(core, job, slot)->usable) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
}

/* ---- what follows, once a turn ---- */

/* All that ran before the coordinator was started again have said who they are, or are gone. */
static bool recalled(const struct core *core, struct job *job)
{
    for (; job->recalled < job->tasks; job->recalled++) {
        const struct task *task = job_task(core, job, job->recalled);
        if (task->usable && task->adopted && !task->heard) {
            return false;
        }
    }
    return true;
}

/* Who said no hello yet has nothing to end in order. */
static void leave(struct core *core, struct job *job)
{
    if (job->leaving == LEAVING_NOT) {
        job->leaving = LEAVING_WORKERS;
        dismiss(core, job, false, true);
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.collect_us);
        job_due(core, job, DUE_BYE_CREW);
    }
    if (job->leaving == LEAVING_WORKERS && job->present == 0 && others(job) == 0) {
        job->leaving = LEAVING_SERVERS;
        dismiss(core, job, true, true);
        deadline_clear(core, job, DEADLINE_CREW);
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.grace_us);
        job_due(core, job, DUE_BYE_SERVERS);
    }
}

void crew_consider(struct core *core, struct job *job)
{
    if (!crew_is(&job->crew) || job->stopped) {
        return;
    }
    if (job->recalls && recalled(core, job)) {
        job->recalls = false;
        job_due(core, job, DUE_MEMBERS);
        if (job->phase != PHASE_DONE) {
            deadline_clear(core, job, DEADLINE_CREW);
        }
    }
    bool lacks =
        job->attending[ROLE_SERVER] < job->crew.servers || job->attending[ROLE_WORKER] == 0;
    if (job->phase == PHASE_DONE) {
        leave(core, job);
    } else if (job->phase == PHASE_RUN && job->outcome == 0 && lacks && job->present > 0) {
        regroup_waits(core, job);
    } else if (job->phase == PHASE_RUN) {
        deadline_clear(core, job, DEADLINE_WAIT);
    }
}

/* Who is silent with its worker, and not lost, is not to be told as gone. */
static bool recalls_silent(const struct core *core, const struct job *job)
{
    bool silent = false;
    for (uint32_t slot = job->recalled; slot < job->tasks && !silent; slot++) {
        const struct task *task = job_task(core, job, slot);
        silent = task->usable && task->adopted && !task->heard &&
                 !lease_hears(core, job_party(core, job, task->party)->worker);
    }
    return silent;
}

void crew_over(struct core *core, struct job *job)
{
    if (job->recalls && recalls_silent(core, job)) {
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.lease_us);
        return;
    }
    if (job->recalls) {
        job->recalls = false;
        job_due(core, job, DUE_MEMBERS);
    }
    if (job->phase == PHASE_DONE) {
        dismiss(core, job, job->leaving == LEAVING_SERVERS, false);
    }
    job_due(core, job, DUE_CREW);
}

bool crew_just_waits(const struct core *core, const struct job *job)
{
    return crew_is(&job->crew) && core->now_us - job->waits_us < NOTICEABLE_US;
}

void crew_wait_over(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint32_t slot = 0;
    while (slot + 1 < job->tasks && job_task(core, job, slot)->usable) {
        slot++;
    }
    text_add(&text, "no place for ");
    task_title(job, slot, &text);
    text_add(&text, " was found within ");
    text_time(&text, job->wait_us);
    if (job->reason[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, job->reason);
    }
    job_fail(core, job, CADRE_UNAVAILABLE, 1, sentence);
}

/* ---- after a start of the coordinator ---- */

/* What was started for an older generation is no life of this one, nor of the next. */
void crew_relives(const struct job *job, struct task *task, const struct core_restore_task *restore)
{
    task->lives = restore->lives_in >= job->generation.number ? restore->lives : 0;
    task->lives_in = restore->lives_in;
    task->backed = restore->lives_in >= job->generation.number ? restore->backed
                                                               : (struct task_backed){0};
}

void crew_restored(struct core *core, struct job *job)
{
    bool goes_on = job->phase == PHASE_RUN || job->phase == PHASE_DONE;
    if (!crew_is(&job->crew) || !goes_on || job->stopped) {
        return;
    }
    /* Those of an older generation were told to end, as far as they could be. */
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task->usable && task->lives_in != job->generation.number) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
    job->recalls = true;
    job->recalled = 0;
    if (job->phase == PHASE_RUN) {
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.lease_us);
    }
    job_due(core, job, DUE_CREW);
}
