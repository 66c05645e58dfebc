/* SPDX-License-Identifier: Apache-2.0
 * A generation that cannot go on: its members freeze and say where they stand, then it is decided
 * who forms the next one and where it begins, or what is waited for.
 *
 *     RUN --a member is gone--> COLLECT --all reported--> enough: plan
 *                                                         too few: wait for joiners
 *                                                         no state is left: JOIN, all begin again
 */
#include "coordinator/core/parts.h"

static void reason_set(struct job *job, const char *sentence, bool guess)
{
    struct text text = text_begin(job->reason, sizeof(job->reason));
    text_add(&text, sentence);
    job->guess = guess;
}

/* Those that left in order and cannot be asked. */
static void resign_gone(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task->rank != NONE && !task->usable) {
            task_resigns(core, job, slot);
            task_vacate(core, job, slot);
        }
    }
}

/* After a start of the coordinator, whoever was not heard yet may be on its way for a lease. */
static uint64_t patience_us(const struct core *core, const struct job *job)
{
    const struct core_options *options = &core->options;
    bool awaited = job->unheard > 0 && options->lease_us > options->report_us;
    return awaited ? options->lease_us : options->report_us;
}

/* Until then the members are to say where they stand. */
static void regroup_asks(struct core *core, struct job *job, uint64_t until_us)
{
    job->aborted_us = core->now_us;
    deadline_set(core, job, DEADLINE_REPORT, until_us);
}

/* A member that had reported has to say so again. Others may have been asked until earlier: that
 * stands. Where nobody was, as when others are waited for, or are about to be, this one is: for as
 * long as its worker may be away, and as it may take to answer when that is back. */
void regroup_asks_again(struct core *core, struct job *job)
{
    if (job->outcome == 0 && !deadline_armed(job, DEADLINE_REPORT)) {
        regroup_asks(core, job, core->now_us + core->options.lease_us + core->options.report_us);
    }
}

void regroup_begin(struct core *core, struct job *job, const char *sentence, bool guess)
{
    if (job->outcome != 0 || job->phase == PHASE_JOIN || job->phase == PHASE_DONE) {
        return;
    }
    if (job->phase == PHASE_RUN) {
        phase_move(job, PHASE_COLLECT);
        deadlines_clear(core, job);
        reason_set(job, sentence, guess);
        resign_gone(core, job);
        regroup_asks(core, job, core->now_us + patience_us(core, job));
        job_due(core, job, DUE_ABORT);
        vacancy_reopen(core, job);
        vacancy_note(core, job);
    } else if (job->guess && !guess) {
        reason_set(job, sentence, false);
    }
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
}

/* ---- what there is ---- */

/* Where the reported members stand. */
struct edge {
    uint64_t position; /* the highest that is held cleanly */
    uint32_t source;   /* slot of the lowest rank that holds it; NONE */
    bool aligned;      /* all that hold it have begun that step, of this stream: */
    uint32_t stream;
    uint32_t draining; /* members that have to go elsewhere */
    uint32_t staying;  /* as source, of those that do not drain */
};

/* Members of a generation are one step apart at most. So whoever was to receive its first position,
 * and did not, stands one before it, with all of its state. */
bool regroup_holds_state(const struct job *job, const struct task *task)
{
    return task->clean && task->position + 1 >= job->resume;
}

static void edge_see(struct edge *edge, const struct core *core, const struct job *job,
    uint32_t slot, const struct task *task)
{
    bool drains = task_drains(core, job, task);
    edge->draining += drains;
    if (!regroup_holds_state(job, task) ||
        (edge->source != NONE && task->position < edge->position)) {
        return;
    }
    bool first = edge->source == NONE || task->position > edge->position;
    if (first) {
        *edge = (struct edge){.position = task->position,
            .source = slot,
            .aligned = true,
            .stream = task->stream,
            .draining = edge->draining,
            .staying = NONE};
    }
    edge->aligned &= task->begun && task->stream == edge->stream;
    if (!drains &&
        (edge->staying == NONE || task->rank < job_task(core, job, edge->staying)->rank)) {
        edge->staying = slot;
    }
    if (task->rank < job_task(core, job, edge->source)->rank) {
        edge->source = slot;
    }
}

static struct edge edge_find(const struct core *core, const struct job *job)
{
    struct edge edge = {.source = NONE, .staying = NONE};
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task->usable && task->rank != NONE && task->reported) {
            edge_see(&edge, core, job, slot, task);
        }
    }
    edge.aligned &= edge.source != NONE && edge.stream <= LIMIT_STREAMS;
    return edge;
}

/* ---- what follows ---- */

static void note_loss(struct job *job, uint64_t position, uint32_t survivors)
{
    struct text text = text_begin(job->note, sizeof(job->note));
    text_add(&text, job->reason);
    text_add(&text, "; ");
    if (survivors < job->roster) {
        text_add(&text, "the ");
        if (survivors > 1) {
            text_add_u64(&text, survivors);
            text_add(&text, " ");
        }
        text_add(&text, survivors == 1 ? "other" : "others");
    } else {
        text_add(&text, survivors == 1 ? "it" : "all");
    }
    text_add(&text, " went on from step ");
    text_add_u64(&text, position);
}

void regroup_disband(struct core *core, struct job *job, enum dismissal why)
{
    if (job->phase != PHASE_JOIN) {
        phase_move(job, PHASE_JOIN);
    }
    job->begins_anew = job->generation.number > 0;
    crew_begins_anew(core, job);
    deadlines_clear(core, job);
    control_drop(job);
    job->due &= ~(uint32_t)(DUE_ABORT | DUE_HALT | DUE_RELEASE | DUE_RELEASE_AGAIN);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        if (job_task(core, job, slot)->usable) {
            task_dismiss(core, job, slot, why);
        }
        task_resigns(core, job, slot);
        task_vacate(core, job, slot);
    }
    job->roster = 0;
    vacancy_note(core, job);
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
}

void regroup_begin_anew(struct core *core, struct job *job, enum dismissal why)
{
    if (preempt_stops(job)) {
        preempt_fails(core, job, job->reason);
        return;
    }
    struct text text = text_begin(job->note, sizeof(job->note));
    text_add(&text, job->reason);
    text_add(&text, crew_is(&job->crew) ? "; all tasks began again"
                                        : "; no state was left, so all tasks began again");
    if (job->has_checkpoint) {
        text_add(&text, " from the checkpoint of step ");
        text_add_u64(&text, job->checkpoint.position);
    } else {
        text_add(&text, ", and Cadre has no checkpoint of the job");
    }
    regroup_disband(core, job, why);
}

/* Too few tasks: others are waited for, but not for ever. */
void regroup_waits(struct core *core, struct job *job)
{
    if (!deadline_armed(job, DEADLINE_WAIT)) {
        job->waits_us = core->now_us;
        deadline_set(core, job, DEADLINE_WAIT, core->now_us + job->wait_us);
        job_due(core, job, DUE_CHANGED);
    }
}

/* All that there will be for now have said hello. */
static void decide_forming(struct core *core, struct job *job)
{
    bool complete = job->usable > 0 && job->ready == job->usable && job->silent == 0 &&
                    job->early_slot == NONE && (job->gone == job->owed || crew_is(&job->crew));
    if (job->generation.number > 0) {
        complete = job->usable > 0 && job->ready == job->usable;
    }
    if (complete && job->ready >= job_members_min(job)) {
        struct plan_choice choice = {.resume = job->has_checkpoint ? job->checkpoint.position : 0,
            .source = NONE,
            .first = true};
        plan_make(core, job, &choice);
    } else if (vacancy_needed(core, job) > 0 && (job->silent == 0 || !crew_is(&job->crew))) {
        regroup_waits(core, job);
    } else {
        deadline_clear(core, job, DEADLINE_WAIT);
    }
}

/* Whether those that drain can be left out of the next generation. */
static bool drains_now(const struct job *job, const struct edge *edge, uint32_t aligned)
{
    return edge->draining > 0 && edge->staying != NONE &&
           job->present - edge->draining + aligned >= job_members_min(job);
}

static uint32_t aligned_joiners(const struct job *job, const struct edge *edge)
{
    return edge->aligned ? job->joiners_of[edge->stream] : 0;
}

static void plan_on(struct core *core, struct job *job, const struct edge *edge, bool drains)
{
    struct plan_choice choice = {.resume = edge->position,
        .source = drains ? edge->staying : edge->source,
        .joins = edge->aligned && !preempt_stops(job),
        .stream = edge->stream,
        .drains = drains};
    plan_make(core, job, &choice);
}

/* Of a job that is preempted: whoever is left saves where it stands, and nobody is waited for. */
static void plan_last(struct core *core, struct job *job, const struct edge *edge)
{
    if (!preempt_needs_nothing(core, job, edge->position)) {
        plan_on(core, job, edge, false);
    }
}

/* All members stand before step halt_at. */
static void decide_halted(struct core *core, struct job *job)
{
    struct edge edge = edge_find(core, job);
    uint32_t aligned = aligned_joiners(job, &edge);
    bool stuck = false;
    CADRE_ASSERT(edge.source != NONE);
    CADRE_ASSERT(edge.position == job->halt_at);
    if (preempt_stops(job)) {
        plan_last(core, job, &edge);
        return;
    }
    bool possible = edge.draining > 0 && drain_possible(core, job, &stuck);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_count(&text, edge.draining, "task had", "tasks had");
    text_add(&text, " to leave, since its worker drains");
    bool now = drains_now(job, &edge, aligned);
    if (!possible || now) {
        if (now) {
            reason_set(job, sentence, false);
            note_loss(job, edge.position, job->present - edge.draining);
        }
        plan_on(core, job, &edge, now);
        return;
    }
    job->excused = true;
    /* Too few would be left: the others wait, as they stand, for those that come instead. */
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task->usable && task->rank != NONE && task_drains(core, job, task)) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
    phase_move(job, PHASE_COLLECT);
    deadlines_clear(core, job);
    reason_set(job, sentence, false);
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
}

/* Counts the failure that ended the generation, if one did. False: it was one too many. A worker
 * that was lost is nobody's failure, and whoever gave up because of it only followed. */
static bool account(struct core *core, struct job *job, const struct edge *edge)
{
    bool progressed = edge->source != NONE && edge->position > job->resume;
    bool allowed = true;
    if (job->counted || job->excused) {
        return true;
    }
    if (job->followed.code != CADRE_OK) {
        allowed = failure_count(
            core, job, job->followed.code, job->followed.exit_code, job->followed.text);
    } else if (!progressed && !preempt_stops(job)) {
        allowed = failure_count(core, job, CADRE_ABORTED, 1, job->reason);
    } else {
        return true;
    }
    job->counted = true;
    return allowed;
}

/* All that had applied the last step are lost, so it is undone, and the line is cut before it. Who
 * was about to receive what is lost and has nothing of its own was let in for a later step than
 * that: its program cannot begin there. */
static void step_back(struct core *core, struct job *job, const struct edge *edge)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool there = task->position == edge->position && (task->clean || edge->position > 0);
        if (task->usable && task->rank != NONE && !there) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
}

static void decide_collected(struct core *core, struct job *job)
{
    struct edge edge = edge_find(core, job);
    if (!account(core, job, &edge)) {
        return;
    }
    deadline_clear(core, job, DEADLINE_REPORT);
    if (edge.source == NONE || crew_is(&job->crew)) { /* attendants are of one generation */
        regroup_begin_anew(core, job, DISMISSED_RESET);
        return;
    }
    if (edge.position < job->resume) {
        step_back(core, job, &edge);
        edge = edge_find(core, job);
    }
    if (preempt_stops(job)) {
        plan_last(core, job, &edge);
        return;
    }
    uint32_t aligned = aligned_joiners(job, &edge);
    bool unaligned = job->joiners > aligned;
    if (job->present + aligned >= job_members_min(job) || unaligned) {
        note_loss(job, edge.position, job->present);
        plan_on(core, job, &edge, drains_now(job, &edge, aligned));
    } else {
        regroup_waits(core, job);
    }
}

void regroup_decide(struct core *core, struct job *job)
{
    bool halted = job->halt_kind == HALT_REGROUP && job->finished == 0;
    if (job->outcome != 0) {
        return;
    }
    switch (job->phase) {
    case PHASE_JOIN:
        if (job->preempt == PREEMPT_NOT && job->state != JOB_QUEUED) {
            decide_forming(core, job);
        }
        break;
    case PHASE_RUN:
        if (halted && job->reported == job->roster) {
            decide_halted(core, job);
        } else {
            preempt_halted(core, job);
        }
        break;
    case PHASE_COLLECT:
        if (job->reported == job->present) {
            decide_collected(core, job);
        }
        break;
    case PHASE_DONE:
        break;
    }
}

/* ---- deadlines ---- */

/* Who has not reported is lost. If that leaves no state, the lease is waited for: it is the last
 * that could be had of work that would be done again. Then who is silent with its worker is waited
 * for as long as that is (lease.c). */
void regroup_report_over(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint64_t until_us = job->aborted_us + core->options.lease_us;
    bool named = false;
    bool stateless = edge_find(core, job).source == NONE;
    bool waits = false;
    if (job->phase != PHASE_COLLECT || job->reported == job->present) {
        return;
    }
    if (until_us > core->now_us && stateless) {
        deadline_set(core, job, DEADLINE_REPORT, until_us);
        return;
    }
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (!task->usable || task->rank == NONE || task->reported) {
            continue;
        }
        if (stateless && !lease_hears(core, job_party(core, job, task->party)->worker)) {
            waits = true;
            continue;
        }
        if (!named) {
            task_name(core, job, slot, &text);
            text_add(&text, " did not answer for ");
            text_time(&text, core->now_us - job->aborted_us);
            named = true;
        }
        task_dismiss(core, job, slot, DISMISSED_SILENT);
    }
    CADRE_ASSERT(named || waits);
    if (waits) {
        deadline_set(core, job, DEADLINE_REPORT, core->now_us + core->options.lease_us);
    }
    if (named) {
        regroup_begin(core, job, sentence, false);
    }
}

void regroup_wait_over(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool placed = job->usable >= job->tasks_min;
    uint32_t left = job->phase == PHASE_JOIN ? job->ready : job->present;
    if (crew_is(&job->crew)) {
        crew_wait_over(core, job);
        return;
    }
    if (left == 0) {
        text_add(&text, "none");
    } else {
        text_add_u64(&text, left);
    }
    text_add(&text, " of ");
    text_count(&text, job->tasks_min, "task", "tasks");
    text_add(&text, left > 1 ? " are left, and no " : " is left, and no ");
    text_add(&text, placed ? "other joined within " : "place for another was found within ");
    text_time(&text, job->wait_us);
    if (job->reason[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, job->reason);
    }
    job_fail(core, job, CADRE_UNAVAILABLE, 1, sentence);
}
