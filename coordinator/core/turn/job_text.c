/* SPDX-License-Identifier: Apache-2.0
 * What a job waits for, or why it ends, in a sentence for people: the text of core_job_text(). */
#include "coordinator/core/turn/job_text.h"

#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

/* " slot", " free slots with 2 GPUs" */
static void add_slots(struct text *text, const struct job *job, const char *before, bool one)
{
    text_add(text, before);
    text_add(text, one ? "slot" : "slots");
    if (job->gpus > 0) {
        text_add(text, " with ");
        text_count(text, job->gpus, "GPU", "GPUs");
        if (!one) {
            text_add(text, " each");
        }
    }
}

static void add_too_few(const struct core *core, const struct job *job, struct text *text)
{
    uint32_t total = offers_total(core, job);
    CADRE_ASSERT(job->tasks_min > total);
    text_add(text, "waits for more workers: it asks for ");
    text_add_u64(text, job->tasks_min);
    add_slots(text, job, " ", job->tasks_min == 1);
    text_add(text, ", the cluster has ");
    if (job->gpus > 0 && total == 0) {
        text_add(text, "none such");
    } else {
        text_add_u64(text, total);
    }
    if (job->gpus > 0) {
        text_add(text, " among ");
        text_count(text, core->slots_total[0], "slot", "slots");
    }
}

static void placement_text(
    const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    uint32_t head = queue_head(core);
    CADRE_ASSERT(job->state == JOB_QUEUED);
    if (core->slots_total[0] == 0) {
        text_add(&text, "waits for workers: none has joined");
    } else if (job->tasks_min > offers_total(core, job)) {
        add_too_few(core, job, &text);
    } else if (head == job_index(core, job)) {
        text_add(&text, "waits for ");
        text_add_u64(&text, job->tasks_min);
        add_slots(&text, job, " free ", job->tasks_min == 1);
        text_add(&text, ", ");
        text_add_u64(&text, offers_free(core, job));
        text_add(&text, " of ");
        text_add_u64(&text, offers_total(core, job));
        text_add(&text, offers_free(core, job) == 1 ? " is free" : " are free");
    } else {
        uint32_t before = queue_before(core, job);
        text_add(&text, "waits for its turn: ");
        text_add_u64(&text, before);
        text_add(&text, before == 1 ? " job is before it" : " jobs are before it");
    }
    CADRE_ASSERT(sentence[0] != '\0');
}

/* "<why>; waits for 1 more task, 0 of 4 slots are free, for 12 s" */
static void waits_text(const struct core *core, const struct job *job, struct text *text)
{
    uint32_t needed = underfilled_lack(core, job);
    CADRE_ASSERT(deadline_armed(job, DEADLINE_WAIT));
    if (job->reason[0] != '\0') {
        text_add(text, job->reason);
        text_add(text, "; ");
    }
    text_add(text, "waits for ");
    if (needed > 0) {
        text_count(text, needed, "more task", "more tasks");
        text_add(text, " (");
        text_add_u64(text, offers_free(core, job));
        text_add(text, " of ");
        if (job->gpus > 0) {
            text_count(text, offers_total(core, job), "slot with ", "slots with ");
            text_count(text, job->gpus, "GPU is", "GPUs are");
        } else {
            text_count(text, offers_total(core, job), "slot is", "slots are");
        }
        text_add(text, " free)");
    } else {
        text_count(text, job->usable - job->present, "task", "tasks");
        text_add(text, " to join");
    }
    text_add(text, " for ");
    text_time(text, (core->now_us - job->waits_us) / 1000000 * 1000000);
    text_add(text, " of at most ");
    text_time(text, job->wait_us);
}

static void form_text(const struct job *job, struct text *text)
{
    /* Those of an ended generation, which are to be started again, had joined that. */
    uint32_t joined = job->restart_all ? job->ready : job->joined;
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    if (job->state == JOB_STARTING) {
        text_add_u64(text, job->running);
        text_add(text, " of ");
        text_add_u64(text, job->alive + job->gone);
        text_add(text, " tasks run");
    } else if (joined > 0) {
        text_add_u64(text, joined);
        text_add(text, " of ");
        text_add_u64(text, job->alive + job->gone);
        text_add(text, " tasks joined");
    } else {
        text_add(text, job->note);
    }
}

/* "is preempted (worker b drains): stops at step 41" */
static void preempt_text(const struct job *job, struct text *text)
{
    CADRE_ASSERT(preempt_stops(job));
    text_add(text, "is preempted (");
    text_add(text, job->preempt_text);
    text_add(text, "): ");
    if (job->halt_kind != HALT_STOP) {
        text_add(text, "looks for a step to stop at");
    } else {
        text_add(text, job->saves ? "saves step " : "stops at step ");
        text_add_u64(text, job->halt_at);
    }
}

/* "2 of 4 tasks run, 1 more waits for the next save" */
static void joiners_text(const struct job *job, struct text *text)
{
    CADRE_ASSERT(job->plain && job->joiners > 0);
    text_add_u64(text, job->present);
    text_add(text, " of ");
    text_count(text, job->tasks, "task", "tasks");
    text_add(text, job->present == 1 ? " runs, " : " run, ");
    text_add_u64(text, job->joiners);
    text_add(
        text, job->joiners == 1 ? " more waits for the next save" : " more wait for the next save");
}

void job_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    if (behind_is(job)) {
        text_add(&text, job->note);
    } else if (job->state == JOB_QUEUED) {
        char placement[LIMIT_TEXT_BYTES];
        placement_text(core, job, placement);
        text_add(&text, job->note);
        text_add(&text, job->note[0] == '\0' ? "" : "; ");
        text_add(&text, placement);
    } else if (job->outcome != 0) {
        text_add(&text, job->text);
    } else if (preempt_stops(job)) {
        preempt_text(job, &text);
    } else if (deadline_armed(job, DEADLINE_WAIT) && !ps_job_only_waits(core, job)) {
        waits_text(core, job, &text);
    } else if (job->phase == PHASE_JOIN) {
        form_text(job, &text);
    } else if (job->phase == PHASE_REGROUP) {
        text_add(&text, job->reason);
    } else if (health_text(core, job, sentence)) {
        return;
    } else if (job->plain && job->joiners > 0 && job->phase == PHASE_RUN) {
        joiners_text(job, &text);
    } else {
        text_add(&text, job->note);
    }
}
