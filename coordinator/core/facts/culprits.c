/* SPDX-License-Identifier: Apache-2.0
 * Culprits are counted by the worker's name, because bad memory stays with the host. There are as
 * many entries as workers; an entry of a worker that is not known any more is reused. */
#include "coordinator/core/facts/divergence.h"

#include "coordinator/core/facts/drain.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/text_format.h"

#define DRAINED_AT 2 /* times */

static void culprits_record(struct core *core, const struct core_culprit *culprit)
{
    struct core_record *record = &action_add(core, CORE_ACTION_RECORD)->record;
    record->type = CORE_RECORD_CULPRIT;
    record->sync = true;
    record->culprit = *culprit;
}

static struct core_culprit *culprit_entry(struct core *core, const char *name)
{
    uint32_t gone = NONE;
    CADRE_ASSERT(core->culprit_count <= core->options.limits.workers_max);
    for (uint32_t i = 0; i < core->culprit_count; i++) {
        if (strcmp(core->culprits[i].worker, name) == 0) {
            return &core->culprits[i];
        }
        bool here = worker_by_name(core, core->culprits[i].worker) != NONE;
        gone = gone == NONE && !here ? i : gone;
    }
    if (core->culprit_count < core->options.limits.workers_max) {
        gone = core->culprit_count++;
    } else if (gone != NONE) {
        core->culprits[gone].times = 0;
        culprits_record(core, &core->culprits[gone]);
    }
    struct core_culprit *culprit = gone == NONE ? NULL : &core->culprits[gone];
    if (culprit != NULL) {
        *culprit = (struct core_culprit){.times = 0};
        struct text text = text_begin(culprit->worker, sizeof(culprit->worker));
        text_add(&text, name);
    }
    return culprit;
}

/* "the coordinator", "the state of task 2 of job 5 was not that of most" */
static void drain_culprit(
    struct core *core, const struct job *job, uint32_t slot, const struct core_culprit *culprit)
{
    struct core_drained drained = {.worker = ""};
    struct text name = text_begin(drained.worker, sizeof(drained.worker));
    struct text who = text_begin(drained.who, sizeof(drained.who));
    struct text why = text_begin(drained.why, sizeof(drained.why));
    text_add(&name, culprit->worker);
    text_add(&who, "the coordinator");
    text_add(&why, "the state of a task on it was not that of the others, ");
    text_count(&why, culprit->times, "time", "times");
    text_add(&why, "; last ");
    task_title(job, slot, &why);
    text_add(&why, " of job ");
    text_add_u64(&why, job->id.n);
    drain_asked(core, &drained);
}

/* If the list or the table is full, the worker is counted or drained the next time. */
void culprit_note(struct core *core, const struct job *job, uint32_t slot, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    CADRE_ASSERT(worker != NONE);
    if (actions_left(core) <= 2 * ACTIONS_PER_JOB_MAX) {
        return;
    }
    struct core_culprit *culprit = culprit_entry(core, w->name);
    if (culprit == NULL) {
        return;
    }
    culprit->times++;
    culprits_record(core, culprit);
    if (culprit->times >= DRAINED_AT && !w->drained && drain_has_room(core, w->name)) {
        drain_culprit(core, job, slot, culprit);
        CADRE_ASSERT(w->drained);
    }
}

void culprit_restore(struct core *core, const struct core_culprit *culprit)
{
    if (core->culprit_count < core->options.limits.workers_max) { /* it may be lower than it was */
        core->culprits[core->culprit_count++] = *culprit;
    }
}
