/* SPDX-License-Identifier: Apache-2.0
 * What tasks of a job say of themselves: hellos, that they would join, where they stand when they
 * are frozen. Whatever names another generation than the job's is dropped (rule 13). */
#include "coordinator/core/parts.h"

static const struct {
    uint8_t may_become; /* bits of enum phase */
} phase_moves[] = {
    [PHASE_JOIN] = {1 << PHASE_RUN},
    [PHASE_RUN] = {1 << PHASE_RUN | 1 << PHASE_COLLECT | 1 << PHASE_JOIN | 1 << PHASE_DONE},
    [PHASE_COLLECT] = {1 << PHASE_RUN | 1 << PHASE_JOIN},
    [PHASE_DONE] = {1 << PHASE_JOIN},
};

void phase_move(struct job *job, enum phase phase)
{
    CADRE_ASSERT((phase_moves[job->phase].may_become >> phase & 1) != 0);
    job->phase = phase;
}

void generation_await(struct core *core, struct job *job)
{
    if (job->phase == PHASE_JOIN && job->outcome == 0 && !deadline_armed(job, DEADLINE_FORM) &&
        job->running == job->alive && job->ready > 0 && job->ready < job->usable) {
        deadline_set(core, job, DEADLINE_FORM, core->now_us + core->options.form_us);
    }
}

void generation_overdue(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint32_t slot = 0;
    if (job->phase != PHASE_JOIN || job->ready == job->usable) {
        return;
    }
    while (!job_task(core, job, slot)->usable || job_task(core, job, slot)->joined) {
        slot++;
    }
    task_name(core, job, slot, &text);
    text_add(&text, " did not join within ");
    text_time(&text, core->options.form_us);
    text_add(&text, " of the others; ");
    text_add_u64(&text, job->ready);
    text_add(&text, " of ");
    text_add_u64(&text, job->usable);
    text_add(&text, " tasks joined");
    job_fail(core, job, CADRE_DEADLINE_EXCEEDED, 1, sentence);
}

/* The daemon has checked the frame's version by its preamble already; here it is checked again. */
static cadre_status hello_check(const struct task_hello *hello, struct text *text)
{
    if (hello->frame_version != TASK_FRAME_VERSION) {
        text_add(text, " speaks task frame version ");
        text_add_u64(text, hello->frame_version);
        text_add(text, ", the coordinator ");
        text_add_u64(text, TASK_FRAME_VERSION);
        text_add(text, ": link the program with the libcadre of the same version");
        return CADRE_FAILED_PRECONDITION;
    }
    if (hello->replicas == 0 || hello->replicas > LIMIT_REPLICAS_PER_TASK) {
        text_add(text, " wants to run ");
        text_add_u64(text, hello->replicas);
        text_add(text, " replicas: 1 to ");
        text_add_u64(text, LIMIT_REPLICAS_PER_TASK);
        text_add(text, " are possible");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->mesh_address == NULL || strlen(hello->mesh_address) >= LIMIT_ADDRESS_BYTES) {
        text_add(text, " gave a mesh address of more than ");
        text_add_u64(text, LIMIT_ADDRESS_BYTES - 1);
        text_add(text, " bytes");
        return CADRE_INVALID_ARGUMENT;
    }
    return CADRE_OK;
}

static void hello_taken(
    struct core *core, struct job *job, struct task *task, const struct task_hello *hello)
{
    struct text address = text_begin(task->mesh_address, sizeof(task->mesh_address));
    task->pid = hello->pid;
    task->replicas = hello->replicas;
    text_add(&address, hello->mesh_address);
    task_joins_in(job, task);
    job_due(core, job, DUE_CHANGED);
}

/* Before a plan: the roster forms. */
static void hello_forms(struct core *core, struct job *job)
{
    if (job->outcome != 0) {
        return; /* it is being stopped */
    }
    if (job->silent > 0) {
        failure_silent(core, job);
        return;
    }
    generation_await(core, job);
    job_due(core, job, DUE_REGROUP);
}

/* A member is back on a new connection, or the plan is still on its way to it. What it knows of the
 * watermark outranks what is recorded (rule 4); a hello is not a report, but from one that is
 * frozen it tells that the generation is at its end. */
static void hello_member(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello, bool ours)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    speak_again(core, job, slot, ours);
    crew_tell(core, job, slot);
    if (!ours || job->phase != PHASE_RUN || job->outcome != 0) {
        return;
    }
    if (hello->released > job->released && hello->released < LIMIT_POSITION) {
        barrier_raise(core, job, hello->released);
    }
    if (hello->frozen && (hello->reason == REPORT_ABORT || hello->reason == REPORT_PEER_ERROR)) {
        task_name(core, job, slot, &text);
        text_add(&text, " lost its peers");
        regroup_begin(core, job, sentence, true);
    }
    job_due(core, job, DUE_CONTROL);
}

void generation_hello(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    struct task *task = job_task(core, job, slot);
    task_name(core, job, slot, &text);
    cadre_status code = hello_check(hello, &text);
    if (code != CADRE_OK) {
        speak_to_task(core, job, slot, TASK_DOWN_REFUSED, code, sentence);
        job_fail(core, job, code, 1, sentence);
        return;
    }
    if (task->attends) {
        bool known = task->joined && task->heard;
        hello_taken(core, job, task, hello);
        crew_said_hello(core, job, slot, known);
        return;
    }
    bool joiner = hello->generation.number == 0;
    bool ours = job->generation.number > 0 && generation_equal(hello->generation, job->generation);
    bool older = hello->generation.number < job->generation.number;
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_COLLECT;
    if (job->phase == PHASE_JOIN && joiner) {
        hello_taken(core, job, task, hello);
        hello_forms(core, job);
    } else if (task->rank != NONE && (ours || (older && runs))) {
        hello_taken(core, job, task, hello);
        hello_member(core, job, slot, hello, ours);
    } else if (task->rank == NONE && joiner && runs) {
        hello_taken(core, job, task, hello);
        speak_to_task(core, job, slot, TASK_DOWN_WARM, CADRE_OK, "");
    } else {
        /* Rule 16: it must not run on as if it had seen the end. */
        speak_to_task(core, job, slot, TASK_DOWN_SUPERSEDED, CADRE_ABORTED,
            "this task is not of the job's current generation");
        if (task->usable && task->rank == NONE && runs && job->outcome == 0) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
}

/* Their programs may have something else to do, or be at their end. */
void generation_outdate(struct core *core, struct job *job, uint32_t stream)
{
    for (uint32_t slot = 0; slot < job->tasks && job->joiners_of[stream] > 0; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task->usable && task->joins && task->join_stream == stream) {
            task->outdated = true;
            job->outdated = true;
            job_due(core, job, 0);
        }
    }
}

void generation_join(
    struct core *core, struct job *job, uint32_t slot, const struct task_join *join)
{
    struct task *task = job_task(core, job, slot);
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_COLLECT;
    if (!runs || task->attends || task->rank != NONE || !task->joined ||
        join->stream > LIMIT_STREAMS) {
        return;
    }
    task_waits_to_join(job, task, join->stream);
    if (proof_stream_is_over(job, join->stream)) {
        generation_outdate(core, job, join->stream); /* it was at its end while this one prepared */
    }
    job_due(core, job,
        DUE_CHANGED | DUE_CONTROL | (job->phase == PHASE_COLLECT ? (uint32_t)DUE_REGROUP : 0));
}

/* All have called cadre_finish at one position: bye. Who is no member leaves too. */
static void finish(struct core *core, struct job *job)
{
    if (job->halt_kind == HALT_STOP) { /* it was quicker */
        control_drop(job);
        job_due(core, job, DUE_HALT);
    }
    job->preempt = PREEMPT_NOT;
    phase_move(job, PHASE_DONE);
    deadlines_clear(core, job);
    ending_dismiss_joiners(core, job);
    vacancy_note(core, job);
    job_due(core, job, DUE_FEEDS | DUE_DONE | DUE_CREW | DUE_CHANGED);
}

static void report_finished(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    struct task *task = job_task(core, job, slot);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    if (task->finished) {
        return;
    }
    if (!report->clean || (report->position > job->released && job->unheard == 0)) {
        task_name(core, job, slot, &text);
        text_add(&text, " called cadre_finish at position ");
        text_add_u64(&text, report->position);
        text_add(&text, report->clean ? ", of which only " : " with a step half applied; ");
        text_add_u64(&text, job->released);
        text_add(&text, " steps were released");
        job_fail(core, job, CADRE_INTERNAL, 1, sentence);
        return;
    }
    if (job->finished > 0 && job->finished_position != report->position) {
        task_name(core, job, job->finished_slot, &text);
        text_add(&text, " called cadre_finish at position ");
        text_add_u64(&text, job->finished_position);
        text_add(&text, ", ");
        task_name(core, job, slot, &text);
        text_add(&text, " at position ");
        text_add_u64(&text, report->position);
        text_add(&text, ": the programs took different paths");
        job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
        return;
    }
    if (report->position > job->released) {
        barrier_raise(core, job, report->position);
    }
    if (job->roster == 1 && job->wanted > report->position) {
        job->wanted =
            report->position; /* the step that it began has failed; nobody else wants it */
    }
    if (job->finished == 0) {
        job->finished_slot = slot;
        job->finished_position = report->position;
    }
    task->finished = true;
    job->finished++;
    CADRE_ASSERT(job->finished <= job->roster);
    if (!barrier_deserted(core, job) && job->finished == job->roster) {
        finish(core, job);
    }
    publish_consider(core, job);
}

/* It froze, and not because a halt asks for it: a member lost its peers and nobody is known to have
 * died, or it was told to abort by a coordinator that was started again since (rule 31). One that
 * came to a halt before it heard that this was lifted is nobody's failure. */
static void report_unordered(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool lifted = report->reason == REPORT_HALT;
    task_name(core, job, slot, &text);
    text_add(&text, lifted ? " stood before step " : " lost its peers in step ");
    text_add_u64(&text, report->position);
    if (lifted) {
        text_add(&text, " when that halt was lifted");
    } else if (report->text != NULL && report->text[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, report->text);
    }
    job->excused |= lifted;
    if (job->early_slot != NONE) {
        failure_early(core, job);
    } else {
        regroup_begin(core, job, sentence, true);
    }
}

/* The program's own function failed, or the programs disagree: no regroup mends that. */
static void report_failed(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    bool attends = job_task(core, job, slot)->attends;
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool says = report->text != NULL && report->text[0] != '\0';
    task_name(core, job, slot, &text);
    text_add(&text, attends ? " failed" : " failed in step ");
    if (!attends) {
        text_add_u64(&text, report->position);
    }
    text_add(&text, says ? ": " : "");
    text_add(&text, says ? report->text : "");
    job_fail(core, job, report->code == CADRE_OK ? CADRE_INTERNAL : report->code, 1, sentence);
}

void generation_report(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    struct task *task = job_task(core, job, slot);
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_COLLECT;
    bool current = generation_equal(report->generation, job->generation);
    if (task->attends) { /* it takes part in no step */
        if (report->reason == REPORT_FAILED && job->phase != PHASE_DONE && task->joined) {
            report_failed(core, job, slot, report);
        }
        return;
    }
    /* A program that failed has failed, also where its peers' reports were quicker and the next
     * generation is planned: it may be gone before it could fail in that one, too. */
    if ((!current && report->reason != REPORT_FAILED) || task->rank == NONE || !runs ||
        !task->joined || job->outcome != 0) {
        return;
    }
    if (report->reason == REPORT_FAILED && current && job->halt_kind == HALT_STOP &&
        report->position == job->halt_at) {
        preempt_fails(core, job, report->text); /* of saving: the job is as it was */
        return;
    }
    if (report->reason == REPORT_FAILED) {
        report_failed(core, job, slot, report);
        return;
    }
    task_reports(job, task, report);
    if (job->phase == PHASE_COLLECT) {
        job_due(core, job, DUE_REGROUP);
    } else if (report->reason == REPORT_FINISHED) {
        report_finished(core, job, slot, report);
    } else if (!control_met(job, report)) {
        report_unordered(core, job, slot, report);
    } else if (job->halt_kind == HALT_STOP) {
        job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    } else {
        barrier_wants(core, job, slot, report->position + 1);
        health_halted(core, job);
        job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    }
}
