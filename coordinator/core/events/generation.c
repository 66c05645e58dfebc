/* SPDX-License-Identifier: Apache-2.0
 * Hellos and joins of tasks. A message that names another generation than the job's is dropped
 * (protocol, rule 13). task_lifecycle.c calls this for each relayed hello and join. */
#include "coordinator/core/events/generation.h"

#include "coordinator/core/events/failure.h"
#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/timeline.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/text_format.h"

void generation_await(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->running <= job->alive);
    if (job->phase == PHASE_JOIN && job->outcome == 0 && !deadline_armed(job, DEADLINE_FORM) &&
        job->running == job->alive && job->ready > 0 && job->ready < job->usable) {
        deadline_set(core, job, DEADLINE_FORM, core->now_us + core->options.form_us);
    }
}

void generation_form_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint32_t slot = 0;
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_FORM));
    if (job->phase != PHASE_JOIN || job->ready == job->usable) {
        return;
    }
    while (!task_is_usable(job_task(core, job, slot)) || job_task(core, job, slot)->joined) {
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
    CADRE_ASSERT(job->outcome != 0);
}

/* The daemon has checked the frame version by the preamble; this checks it again. */
static cadre_status hello_check(const struct task_hello *hello, struct text *text)
{
    if (hello->frame_version != TASK_FRAME_VERSION) {
        text_add(text, " has task frame version ");
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

static void hello_accepted(
    struct core *core, struct job *job, struct task *task, const struct task_hello *hello)
{
    struct text address = text_begin(task->mesh_address, sizeof(task->mesh_address));
    CADRE_ASSERT(task_is_usable(task));
    task->pid = hello->pid;
    task->replicas = hello->replicas;
    task->hellos++;
    job->plain |= hello->plain;
    text_add(&address, hello->mesh_address);
    task_set_joined(job, task);
    job_due(core, job, DUE_CHANGED);
    CADRE_ASSERT(task->joined && task->pid == hello->pid);
}

/* Before a plan: a task of the roster to be formed. */
static void hello_forms(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    CADRE_ASSERT(job->joined > 0);
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

/* A member has a new connection, or has not received the plan yet. Rules 4 and 5: its watermark
 * outranks the recorded one, and a raised one is sent to the whole roster. Rule 6: a hello is not a
 * report, but a frozen member's shows that the generation has ended. */
static void hello_member(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello, bool ours)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job_task(core, job, slot)->rank != NONE);
    CADRE_ASSERT(job->phase != PHASE_JOIN);
    notify_again(core, job, slot, ours);
    ps_job_send_members(core, job, slot);
    if (!ours || job->phase != PHASE_RUN || job->outcome != 0) {
        return;
    }
    if (hello->frozen && (hello->reason == REPORT_ABORT || hello->reason == REPORT_PEER_ERROR)) {
        task_name(core, job, slot, &text);
        text_add(&text, " lost its peers");
        generation_abort(core, job, sentence, true);
    } else if (hello->released > job->released && barrier_may_rise(job, hello->released)) {
        barrier_raise(core, job, hello->released);
    }
    job_due(core, job, DUE_CONTROL);
}

void generation_hello(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->dismissed == DISMISSED_NOT);
    task_name(core, job, slot, &text);
    cadre_status code = hello_check(hello, &text);
    if (code != CADRE_OK) {
        notify_task_status(core, job, slot, TASK_DOWN_REFUSED, code, sentence);
        job_fail(core, job, code, 1, sentence);
        return;
    }
    if (task_is_ps_task(task)) {
        bool known = task->joined;
        hello_accepted(core, job, task, hello);
        ps_job_hello(core, job, slot, known);
        return;
    }
    bool joiner = hello->generation.number == 0;
    bool ours = job->generation.number > 0 && generation_equal(hello->generation, job->generation);
    bool older = hello->generation.number < job->generation.number;
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_REGROUP;
    if (job->phase == PHASE_JOIN && joiner) {
        hello_accepted(core, job, task, hello);
        hello_forms(core, job);
    } else if (task->rank != NONE && (ours || (older && runs))) { /* Rule 13. */
        hello_accepted(core, job, task, hello);
        hello_member(core, job, slot, hello, ours);
    } else if (task->rank == NONE && joiner && runs) { /* Rule 20: it is warmed up first. */
        hello_accepted(core, job, task, hello);
        notify_task_status(core, job, slot, TASK_DOWN_WARM, CADRE_OK, "");
    } else {
        /* Rule 16: superseded, so that it does not run the code behind the loop. One of a newer
         * generation does not come here (rule 30, task_lifecycle.c). */
        CADRE_ASSERT(job->outcome != 0 || !behind_of_generation(job, hello->generation));
        notify_task_status(core, job, slot, TASK_DOWN_SUPERSEDED, CADRE_ABORTED,
            "this task is not of the job's current generation");
        if (task_is_usable(task) && task->rank == NONE && runs && job->outcome == 0) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
}

void generation_join(
    struct core *core, struct job *job, uint32_t slot, const struct task_join *join)
{
    struct task *task = job_task(core, job, slot);
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_REGROUP;
    CADRE_ASSERT(task->dismissed == DISMISSED_NOT);
    if (!runs || task_is_ps_task(task) || task->rank != NONE || !task->joined ||
        join->stream > LIMIT_STREAMS) {
        return;
    }
    job->joiner_us = task->joining == JOINING_NOT ? core->now_us : job->joiner_us;
    task_waits_to_join(job, task, join->stream);
    if (sample_audit_stream_ended(job, join->stream) ||
        sample_audit_stream_is_past(job, join->stream, join->epoch)) {
        joiners_outdate(core, job, join->stream); /* the stream advanced while the task warmed up */
    }
    job_due(core, job,
        DUE_CHANGED | DUE_CONTROL | (job->phase == PHASE_REGROUP ? (uint32_t)DUE_REGROUP : 0));
    CADRE_ASSERT(task->joining != JOINING_NOT);
}
