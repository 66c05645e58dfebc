/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/words.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

void words_send(const struct speaker *speaker, struct link_id link, const struct agent_down *down)
{
    if (link.n != 0) {
        speaker->down(speaker->user, link, down);
    }
}

static struct checkpoint_ref ref_of(const struct core_checkpoint *checkpoint)
{
    struct checkpoint_ref ref = {.position = checkpoint->position,
        .shared = checkpoint->shared,
        .path = checkpoint->path,
        .manifest_bytes = checkpoint->manifest_bytes};
    memcpy(ref.manifest_sha256, checkpoint->manifest_sha256, LIMIT_SHA256_BYTES);
    return ref;
}

/* What is STARTING, through every link; `again`: only on this one. */
static void start_job(const struct speaker *speaker, struct job_id job, const struct link_id *again)
{
    struct core_job_view view;
    const struct job_spec *spec = speaker->spec(speaker->user, job);
    if (spec == NULL || !core_job(speaker->core, job, &view)) {
        return; /* it ended in the same turn */
    }
    bool restores = view.restores && view.has_checkpoint;
    for (uint32_t slot = 0; slot < view.tasks; slot++) {
        struct core_task_view task;
        core_job_task(speaker->core, job, slot, &task);
        if (!task.starts || (again != NULL && task.link.n != again->n)) {
            continue;
        }
        speaker->starts(speaker->user, job, slot);
        bool attends = crew_is(&view.crew) && slot > 0;
        struct agent_down down = {.type = AGENT_DOWN_START,
            .start = {.task = {.job = job, .slot = slot, .incarnation = task.incarnation},
                .task_count = view.tasks,
                .spec = *spec,
                .restores = restores && !attends,
                .predecessor = task.predecessor}};
        if (down.start.restores) {
            down.start.checkpoint = ref_of(&view.checkpoint);
        }
        words_send(speaker, task.link, &down);
    }
}

static void stop_job(const struct speaker *speaker, struct job_id job)
{
    struct core_job_view view;
    if (!core_job(speaker->core, job, &view)) {
        return;
    }
    struct agent_down down = {
        .type = AGENT_DOWN_STOP, .stop = {.job = job, .grace_us = speaker->grace_us}};
    for (uint32_t i = 0; i < view.workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(speaker->core, job, i, &worker, &link, &members);
        words_send(speaker, link, &down);
    }
}

static bool make_roster(
    const struct speaker *speaker, const struct core_job_view *view, struct words *words)
{
    words->roster = calloc(view->roster + 1, sizeof(struct roster_entry));
    words->addresses = calloc(view->roster + 1, LIMIT_ADDRESS_BYTES);
    if (words->roster == NULL || words->addresses == NULL) {
        return false;
    }
    for (uint32_t rank = 0; rank < view->roster; rank++) {
        struct core_task_view task;
        core_job_task(
            speaker->core, view->job, core_job_member(speaker->core, view->job, rank), &task);
        memcpy(words->addresses[rank], task.mesh_address, LIMIT_ADDRESS_BYTES);
        words->roster[rank] = (struct roster_entry){.slot = task.slot,
            .incarnation = task.incarnation,
            .replicas = task.replicas,
            .mesh_address = words->addresses[rank]};
    }
    return true;
}

static bool fill_plan(const struct speaker *speaker, const struct core_job_view *view,
    struct words *words, struct task_down *told)
{
    if (!make_roster(speaker, view, words)) {
        return false;
    }
    told->plan = (struct task_plan){.generation = view->generation,
        .roster = words->roster,
        .roster_count = view->roster,
        .resume = view->resume,
        .source = view->source,
        .checkpoint_at = view->checkpoint_at,
        .halt_at = view->halt_at,
        .halt_kind = view->halt_kind,
        .halt_stream = view->halt_stream};
    speaker->key(speaker->user, view->job, view->generation, told->plan.key);
    return true;
}

static struct task_release release_of(const struct core_job_view *view)
{
    return (struct task_release){.generation = view->generation,
        .up_to = view->released,
        .checkpoint_at = view->checkpoint_at,
        .halt_at = view->halt_at,
        .halt_kind = view->halt_kind,
        .halt_stream = view->halt_stream,
        .published = view->published};
}

bool words_are_of_job(const struct core_action *action)
{
    return action->type == CORE_ACTION_TELL_JOB && action->tell_job.tell < CORE_TELL_MEMBERS;
}

cadre_status words_make(const struct speaker *speaker, const struct core_action *action,
    struct words *ret_words, struct cadre_error *error)
{
    CADRE_ASSERT(words_are_of_job(action));
    struct core_job_view view;
    enum core_tell tell = action->tell_job.tell;
    *ret_words = (struct words){.down = {.type = AGENT_DOWN_TELL}};
    if (!core_job(speaker->core, action->tell_job.job, &view) ||
        ((tell == CORE_TELL_PLAN || tell == CORE_TELL_RELEASE) &&
            !generation_equal(view.generation, action->tell_job.generation))) {
        ret_words->outdated = true;
        return CADRE_OK;
    }
    struct task_down *told = &ret_words->down.tell.down;
    ret_words->down.tell.job = view.job;
    told->generation = action->tell_job.generation;
    if (tell == CORE_TELL_PLAN) {
        told->type = TASK_DOWN_PLAN;
        if (!fill_plan(speaker, &view, ret_words, told)) {
            words_free(ret_words);
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for the plan of job %llu", (unsigned long long)view.job.n);
        }
    } else if (tell == CORE_TELL_RELEASE) {
        told->type = TASK_DOWN_RELEASE;
        told->release = release_of(&view);
    } else if (tell == CORE_TELL_ABORT) {
        told->type = TASK_DOWN_ABORT;
        told->reason = action->tell_job.reason;
    } else {
        told->type = TASK_DOWN_BYE;
    }
    return CADRE_OK;
}

void words_free(struct words *words)
{
    free(words->roster);
    free(words->addresses);
    words->roster = NULL;
    words->addresses = NULL;
}

static void tell_members(
    const struct speaker *speaker, const struct core_job_view *view, const struct agent_down *down)
{
    for (uint32_t i = 0; i < view->workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(speaker->core, view->job, i, &worker, &link, &members);
        if (members > 0) {
            words_send(speaker, link, down);
        }
    }
}

static void tell_one(
    const struct speaker *speaker, const struct core_action *action, struct agent_down *down)
{
    struct core_task_view task;
    core_job_task(speaker->core, action->tell_job.job, action->tell_job.slot, &task);
    down->tell.one = true;
    down->tell.task = (struct task_ref){
        .job = action->tell_job.job, .slot = task.slot, .incarnation = task.incarnation};
    words_send(speaker, action->tell_job.link, down);
}

void words_spread(
    const struct speaker *speaker, const struct core_action *action, struct agent_down *down)
{
    struct core_job_view view;
    if (action->tell_job.one) {
        tell_one(speaker, action, down);
    } else if (core_job(speaker->core, action->tell_job.job, &view)) {
        tell_members(speaker, &view, down);
    }
}

static cadre_status tell_job(
    const struct speaker *speaker, const struct core_action *action, struct cadre_error *error)
{
    struct words words;
    if (!words_are_of_job(action)) {
        return words_to_crew(speaker, action, error);
    }
    CADRE_TRY(words_make(speaker, action, &words, error));
    if (!words.outdated) {
        words_spread(speaker, action, &words.down);
    }
    words_free(&words);
    return CADRE_OK;
}

/* Where the job's streams stand, for a joiner. */
static size_t fill_streams(const struct speaker *speaker, struct job_id job,
    struct stream_position ret_streams[LIMIT_STREAMS])
{
    uint32_t count = 0;
    while (
        count < LIMIT_STREAMS && core_job_stream(speaker->core, job, count, &ret_streams[count])) {
        count++;
    }
    return count;
}

static void tell_task(const struct speaker *speaker, const struct core_action *action)
{
    struct stream_position streams[LIMIT_STREAMS];
    struct agent_down down = {.type = AGENT_DOWN_TELL,
        .tell = {.job = action->tell_task.task.job,
            .one = true,
            .task = action->tell_task.task,
            .down = {.type = action->tell_task.type}}};
    struct task_down *told = &down.tell.down;
    if (told->type == TASK_DOWN_REFUSED) {
        told->refused = (struct task_refused){action->tell_task.code, action->tell_task.text};
    } else if (told->type == TASK_DOWN_WARM) {
        struct core_job_view view;
        if (!core_job(speaker->core, action->tell_task.task.job, &view)) {
            return; /* it ended in the same turn */
        }
        told->warm = (struct task_warm){.streams = streams,
            .stream_count = fill_streams(speaker, view.job, streams),
            .tasks = view.roster};
    }
    words_send(speaker, action->tell_task.link, &down);
}

/* To one worker, or (0) to all that are connected. */
static void forget(const struct speaker *speaker, struct job_id job, struct link_id link)
{
    struct agent_down down = {.type = AGENT_DOWN_FORGET, .forget = job};
    struct core_worker_view worker;
    if (link.n != 0) {
        words_send(speaker, link, &down);
        return;
    }
    uint32_t cursor = 0;
    while (core_worker_next(speaker->core, &cursor, &worker)) {
        words_send(speaker, worker.link, &down);
    }
}

cadre_status words_say(
    const struct speaker *speaker, const struct core_action *action, struct cadre_error *error)
{
    switch (action->type) {
    case CORE_ACTION_WELCOME:
        words_send(speaker, action->welcome.link,
            &(struct agent_down){.type = AGENT_DOWN_WELCOME,
                .welcome = {.worker = action->welcome.worker,
                    .lease_us = speaker->lease_us,
                    .term = speaker->term}});
        break;
    case CORE_ACTION_START_JOB:
        start_job(speaker, action->job, NULL);
        break;
    case CORE_ACTION_START_AGAIN:
        start_job(speaker, action->start_again.job, &action->start_again.link);
        break;
    case CORE_ACTION_STOP_JOB:
        stop_job(speaker, action->job);
        break;
    case CORE_ACTION_STOP_TASK:
        words_send(speaker, action->stop_task.link,
            &(struct agent_down){.type = AGENT_DOWN_STOP,
                .stop = {.job = action->stop_task.task.job,
                    .one = true,
                    .task = action->stop_task.task,
                    .grace_us = speaker->grace_us}});
        break;
    case CORE_ACTION_TELL_JOB:
        return tell_job(speaker, action, error);
    case CORE_ACTION_TELL_TASK:
        tell_task(speaker, action);
        break;
    case CORE_ACTION_FORGET_JOB:
        forget(speaker, action->forget_job.job, action->forget_job.link);
        break;
    case CORE_ACTION_ANSWER:
    case CORE_ACTION_REFUSE:
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
    case CORE_ACTION_RECORD:
        break;
    }
    return CADRE_OK;
}
