/* SPDX-License-Identifier: Apache-2.0
 * Actions into messages. A release, abort or plan is one action of the core; the fan-out is here,
 * one message for each worker daemon that has members of the generation. */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

static void put_le(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Every generation has a key of its own, derived from the store's secret, so that a restarted
 * coordinator knows it again and no record holds it. */
void engine_derive_key(const struct engine *engine, struct job_id job, struct generation generation,
    uint8_t ret_key[LIMIT_JOB_KEY_BYTES])
{
    uint8_t text[8 + 3 * 8] = {'c', 'a', 'd', 'r', 'e', 'k', 'e', 'y'};
    put_le(text + 8, job.n, 8);
    put_le(text + 16, generation.number, 8);
    put_le(text + 24, generation.nonce, 8);
    unsigned size = LIMIT_JOB_KEY_BYTES;
    const unsigned char *made =
        HMAC(EVP_sha256(), engine->secret, STORE_SECRET_BYTES, text, sizeof text, ret_key, &size);
    CADRE_ASSERT(made != NULL && size == LIMIT_JOB_KEY_BYTES);
}

void engine_send_down(
    const struct engine *engine, struct link_id link, const struct agent_down *down)
{
    if (link.n != 0) {
        engine->sink.down(engine->user, link, down);
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
static void start_job(struct engine *engine, struct job_id job, const struct link_id *again)
{
    struct core_job_view view;
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    if (entry == NULL || !core_job(engine->core, job, &view)) {
        return; /* it ended in the same turn */
    }
    bool restores = view.restores && view.has_checkpoint;
    for (uint32_t slot = 0; slot < view.tasks; slot++) {
        struct core_task_view task;
        core_job_task(engine->core, job, slot, &task);
        if (!task.starts || (again != NULL && task.link.n != again->n)) {
            continue;
        }
        engine_note_task(engine, job, slot);
        bool attends = crew_is(&view.crew) && slot > 0;
        struct agent_down down = {.type = AGENT_DOWN_START,
            .start = {.task = {.job = job, .slot = slot, .incarnation = task.incarnation},
                .task_count = view.tasks,
                .spec = entry->spec,
                .restores = restores && !attends,
                .predecessor = task.predecessor}};
        if (down.start.restores) {
            down.start.checkpoint = ref_of(&view.checkpoint);
        }
        engine_send_down(engine, task.link, &down);
    }
}

static void stop_job(struct engine *engine, struct job_id job)
{
    struct core_job_view view;
    if (!core_job(engine->core, job, &view)) {
        return;
    }
    struct agent_down down = {
        .type = AGENT_DOWN_STOP, .stop = {.job = job, .grace_us = engine->options.core.grace_us}};
    for (uint32_t i = 0; i < view.workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(engine->core, job, i, &worker, &link, &members);
        engine_send_down(engine, link, &down);
    }
}

/* The roster of a plan with the addresses that it points to. */
struct roster {
    struct roster_entry *entries;
    char (*addresses)[LIMIT_ADDRESS_BYTES];
    size_t count;
};

static bool make_roster(
    struct engine *engine, const struct core_job_view *view, struct roster *ret_roster)
{
    *ret_roster = (struct roster){.entries = calloc(view->roster + 1, sizeof(struct roster_entry)),
        .addresses = calloc(view->roster + 1, LIMIT_ADDRESS_BYTES),
        .count = view->roster};
    if (ret_roster->entries == NULL || ret_roster->addresses == NULL) {
        struct cadre_error error;
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for the plan of job %llu",
            (unsigned long long)view->job.n);
        engine_break(engine, &error); /* members that never hear of it would wait for ever */
        return false;
    }
    for (uint32_t rank = 0; rank < view->roster; rank++) {
        struct core_task_view task;
        core_job_task(
            engine->core, view->job, core_job_member(engine->core, view->job, rank), &task);
        memcpy(ret_roster->addresses[rank], task.mesh_address, LIMIT_ADDRESS_BYTES);
        ret_roster->entries[rank] = (struct roster_entry){.slot = task.slot,
            .incarnation = task.incarnation,
            .replicas = task.replicas,
            .mesh_address = ret_roster->addresses[rank]};
    }
    return true;
}

static bool fill_plan(struct engine *engine, const struct core_job_view *view,
    struct roster *roster, struct task_down *down)
{
    if (!make_roster(engine, view, roster)) {
        return false;
    }
    down->plan = (struct task_plan){.generation = view->generation,
        .roster = roster->entries,
        .roster_count = roster->count,
        .resume = view->resume,
        .source = view->source,
        .checkpoint_at = view->checkpoint_at,
        .halt_at = view->halt_at,
        .halt_kind = view->halt_kind,
        .halt_stream = view->halt_stream};
    engine_derive_key(engine, view->job, view->generation, down->plan.key);
    return true;
}

static void tell_members(
    const struct engine *engine, const struct core_job_view *view, const struct agent_down *down)
{
    for (uint32_t i = 0; i < view->workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(engine->core, view->job, i, &worker, &link, &members);
        if (members > 0) {
            engine_send_down(engine, link, down);
        }
    }
}

static void tell_one(
    const struct engine *engine, const struct core_action *action, struct agent_down *down)
{
    struct core_task_view task;
    core_job_task(engine->core, action->tell_job.job, action->tell_job.slot, &task);
    down->tell.one = true;
    down->tell.task = (struct task_ref){
        .job = action->tell_job.job, .slot = task.slot, .incarnation = task.incarnation};
    engine_send_down(engine, action->tell_job.link, down);
}

static void tell_job(struct engine *engine, const struct core_action *action)
{
    struct core_job_view view;
    enum core_tell tell = action->tell_job.tell;
    if (!core_job(engine->core, action->tell_job.job, &view) ||
        ((tell == CORE_TELL_PLAN || tell == CORE_TELL_RELEASE) &&
            !generation_equal(view.generation, action->tell_job.generation))) {
        return; /* it ended, or a newer generation was made, in the same turn */
    }
    if (tell >= CORE_TELL_MEMBERS) {
        engine_tell_crew(engine, action, &view);
        return;
    }
    struct agent_down down = {.type = AGENT_DOWN_TELL, .tell = {.job = view.job}};
    struct task_down *told = &down.tell.down;
    struct roster roster = {0};
    bool ready = true;
    told->generation = action->tell_job.generation;
    switch (tell) {
    case CORE_TELL_PLAN:
        told->type = TASK_DOWN_PLAN;
        ready = fill_plan(engine, &view, &roster, told);
        break;
    case CORE_TELL_RELEASE:
        told->type = TASK_DOWN_RELEASE;
        told->release = (struct task_release){.generation = view.generation,
            .up_to = view.released,
            .checkpoint_at = view.checkpoint_at,
            .halt_at = view.halt_at,
            .halt_kind = view.halt_kind,
            .halt_stream = view.halt_stream,
            .published = view.published};
        break;
    case CORE_TELL_ABORT:
        told->type = TASK_DOWN_ABORT;
        told->reason = action->tell_job.reason;
        break;
    case CORE_TELL_BYE:
        told->type = TASK_DOWN_BYE;
        break;
    case CORE_TELL_MEMBERS:
    case CORE_TELL_BYE_CREW:
    case CORE_TELL_BYE_SERVERS:
        CADRE_ASSERT(false);
    }
    if (ready && action->tell_job.one) {
        tell_one(engine, action, &down);
    } else if (ready) {
        tell_members(engine, &view, &down);
    }
    free(roster.entries);
    free(roster.addresses);
}

/* Where the job's streams stand, for a joiner. */
static size_t fill_streams(const struct engine *engine, struct job_id job,
    struct stream_position ret_streams[LIMIT_STREAMS])
{
    uint32_t count = 0;
    while (
        count < LIMIT_STREAMS && core_job_stream(engine->core, job, count, &ret_streams[count])) {
        count++;
    }
    return count;
}

static void tell_task(const struct engine *engine, const struct core_action *action)
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
        if (!core_job(engine->core, action->tell_task.task.job, &view)) {
            return; /* it ended in the same turn */
        }
        told->warm = (struct task_warm){.streams = streams,
            .stream_count = fill_streams(engine, view.job, streams),
            .tasks = view.roster};
    }
    engine_send_down(engine, action->tell_task.link, &down);
}

void engine_speak(struct engine *engine, const struct core_action *action)
{
    const struct engine_sink *sink = &engine->sink;
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        sink->answer(engine->user, action->answer.call, action->answer.code, action->answer.job,
            action->answer.queued_before, action->answer.text);
        break;
    case CORE_ACTION_WELCOME:
        engine_send_down(engine, action->welcome.link,
            &(struct agent_down){.type = AGENT_DOWN_WELCOME,
                .welcome = {.worker = action->welcome.worker,
                    .lease_us = engine->options.core.lease_us,
                    .term = engine->term}});
        break;
    case CORE_ACTION_REFUSE:
        sink->refuse(engine->user, action->refuse.link, action->refuse.code, action->refuse.text);
        break;
    case CORE_ACTION_START_JOB:
        start_job(engine, action->job, NULL);
        break;
    case CORE_ACTION_START_AGAIN:
        start_job(engine, action->start_again.job, &action->start_again.link);
        break;
    case CORE_ACTION_STOP_JOB:
        stop_job(engine, action->job);
        break;
    case CORE_ACTION_STOP_TASK:
        engine_send_down(engine, action->stop_task.link,
            &(struct agent_down){.type = AGENT_DOWN_STOP,
                .stop = {.job = action->stop_task.task.job,
                    .one = true,
                    .task = action->stop_task.task,
                    .grace_us = engine->options.core.grace_us}});
        break;
    case CORE_ACTION_TELL_JOB:
        tell_job(engine, action);
        break;
    case CORE_ACTION_TELL_TASK:
        tell_task(engine, action);
        break;
    case CORE_ACTION_FORGET_JOB:
        engine_forget(engine, action->forget_job.job, action->forget_job.link);
        break;
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
        engine_note_changed(engine, action->job);
        break;
    case CORE_ACTION_RECORD:
        CADRE_ASSERT(false);
        break;
    }
}
