/* SPDX-License-Identifier: Apache-2.0
 * After a start of the coordinator: what the store knows of live jobs. Nothing of the workers is
 * durable; their hellos fill it in again. */
#include "coordinator/core/state.h"

/* It ends without ever having been in the core. */
static void restore_end(struct core *core, struct job_id job, const char *sentence)
{
    struct core_record *record = &action_add(core, CORE_ACTION_RECORD)->record;
    struct text text = text_begin(record->ended.text, sizeof(record->ended.text));
    record->type = CORE_RECORD_ENDED;
    record->sync = true;
    record->job = job;
    record->ended.state = JOB_FAILED;
    record->ended.code = CADRE_UNAVAILABLE;
    record->ended.exit_code = 1;
    text_add(&text, sentence);
    action_add(core, CORE_ACTION_JOB_ENDED)->job = job;
    core->job_last = job.n;
}

void restore_job(struct core *core, const struct core_restore_job *restore)
{
    char sentence[LIMIT_TEXT_BYTES];
    CADRE_ASSERT(restore->job.n > core->job_last);
    CADRE_ASSERT(core->workers_live.count == 0);
    if (restore->started) {
        restore_end(core, restore->job, "the coordinator was restarted while it ran");
    } else if (restore->tasks == 0 || !job_fits(core, restore->tasks, sentence)) {
        restore_end(core, restore->job,
            "the coordinator was restarted with limits that do not hold this job");
    } else {
        job_create(core, restore->job, restore->tasks, restore->priority);
    }
}

void restore_done(struct core *core, const struct core_restore_done *done)
{
    if (done->job_max > core->job_last) {
        core->job_last = done->job_max;
    }
}
