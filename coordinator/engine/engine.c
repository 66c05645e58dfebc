/* SPDX-License-Identifier: Apache-2.0
 * Opening, restoring and most events. coordinator/daemon and deploy/local call it. */
#include "coordinator/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/engine/engine_state.h"

struct loading {
    struct directory_entry *entry;
    cadre_status status;
    struct cadre_error *error;
};

static void load_exit(void *user, const struct store_task_exit *exit)
{
    const struct loading *loading = user;
    if (exit->slot < loading->entry->task_count) {
        directory_task_exit(loading->entry, exit);
    }
}

static void load_checkpoint(void *user, const struct core_checkpoint *checkpoint)
{
    struct loading *loading = user;
    if (loading->status == CADRE_OK) {
        loading->status = directory_checkpoint_add(loading->entry, checkpoint, loading->error);
    }
}

/* The time since then, by a clock that may have been set back meanwhile. */
static uint64_t ran_us(uint64_t first_us)
{
    uint64_t now_us = clock_wall_us();
    return first_us > 0 && now_us > first_us ? now_us - first_us : 0;
}

static cadre_status add_entry(
    struct engine *engine, struct directory_entry *entry, struct cadre_error *error)
{
    entry->counted = entry->position; /* by an earlier start */
    entry->counted_restarts = entry->restarts;
    cadre_status status = directory_add(&engine->directory, entry, error);
    if (status != CADRE_OK) {
        directory_entry_free(entry);
        return status;
    }
    engine->stored_max = entry->id;
    return CADRE_OK;
}

static cadre_status unless_lost(cadre_status status)
{
    return status == CADRE_DATA_LOSS ? CADRE_OK : status;
}

/* It is listed, and never goes on. Its whole checkpoints can still be restored by other jobs. */
static cadre_status restore_damaged(
    struct engine *engine, const struct store_job *job, struct cadre_error *error)
{
    const struct store_ops *ops = engine->store->ops;
    struct loading loading = {.error = error};
    CADRE_TRY(directory_entry_damaged(job, &loading.entry, error));
    CADRE_TRY(add_entry(engine, loading.entry, error));
    struct job_id id = job->restore.job;
    CADRE_TRY(unless_lost(ops->task_exits(engine->store, id, load_exit, &loading, error)));
    CADRE_TRY(unless_lost(ops->checkpoints(engine->store, id, load_checkpoint, &loading, error)));
    return loading.status;
}

static cadre_status restore_job(void *user, const struct store_job *job, struct cadre_error *error)
{
    struct engine *engine = user;
    const struct store_ops *ops = engine->store->ops;
    struct job_id id = job->restore.job;
    struct loading loading = {.error = error};
    if (job->damage != NULL) {
        return restore_damaged(engine, job, error);
    }
    CADRE_TRY(directory_entry_load(job, &loading.entry, error));
    loading.entry->roster =
        job->restore.roster != 0 ? job->restore.roster : (uint32_t)job->restore.task_count;
    CADRE_TRY(add_entry(engine, loading.entry, error));
    CADRE_TRY(ops->task_exits(engine->store, id, load_exit, &loading, error));
    CADRE_TRY(ops->checkpoints(engine->store, id, load_checkpoint, &loading, error));
    CADRE_TRY(loading.status);
    if (!job_state_is_final(loading.entry->state)) {
        struct core_event event = {
            .type = CORE_EVENT_RESTORE_JOB, .now_us = engine->now_us, .restore = job->restore};
        event.restore.spec.ps_job =
            loading.entry->spec.ps_job; /* the spec has it, no record besides */
        event.restore.spec.gpus = loading.entry->spec.gpus;
        event.restore.spec.time_limit_us = loading.entry->spec.limits.time_limit_us;
        event.restore.ran_us = ran_us(job->first_us);
        CADRE_TRY(engine_history_restore(engine, loading.entry, error));
        engine_step(engine, &event);
    }
    return CADRE_OK;
}

static void restore_drain(void *user, const struct core_drained *drained)
{
    struct engine *engine = user;
    engine_step(engine,
        &(struct core_event){
            .type = CORE_EVENT_RESTORE_DRAIN, .now_us = engine->now_us, .restore_drain = *drained});
}

static void restore_culprit(void *user, const struct core_culprit *culprit)
{
    struct engine *engine = user;
    engine_step(engine, &(struct core_event){.type = CORE_EVENT_RESTORE_CULPRIT,
                            .now_us = engine->now_us,
                            .restore_culprit = *culprit});
}

/* The next turn stores it before it sends anything (protocol, section 4). */
static void begin_term(struct engine *engine, uint64_t above)
{
    engine->term.start = (above > engine->term.start ? above : engine->term.start) + 1;
    engine->term_unstored = true;
}

static cadre_status engine_restore(struct engine *engine, struct cadre_error *error)
{
    CADRE_TRY(engine->store->ops->drains(engine->store, restore_drain, engine, error));
    CADRE_TRY(engine->store->ops->culprits(engine->store, restore_culprit, engine, error));
    CADRE_TRY(engine->store->ops->load(engine->store, restore_job, engine, error));
    if (engine->options.log != NULL) {
        engine->term = engine->options.log->term; /* of an entry that is in the log */
    } else {
        engine->term = engine->store->ops->term(engine->store);
        begin_term(engine, 0);
    }
    engine_step(engine, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE,
                            .now_us = engine->now_us,
                            .restore_done.job_max = engine->store->ops->job_id_max(engine->store)});
    engine_note_expected(engine);
    return CADRE_OK;
}

cadre_status engine_open(const struct engine_options *options, struct store *store,
    const struct engine_sink *sink, void *user, uint64_t now_us, struct engine **ret_engine,
    struct cadre_error *error)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the coordinator");
    }
    *engine = (struct engine){.options = *options, .sink = *sink, .user = user, .now_us = now_us};
    size_t bytes = core_bytes(&options->core.limits);
    engine->core_memory = calloc(1, bytes);
    if (engine->core_memory == NULL) {
        free(engine);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the coordinator's %zu bytes of state: lower its limits", bytes);
    }
    engine->core = core_init(engine->core_memory, &options->core);
    engine->store = store;
    engine->surplus_of_all = true;
    engine->surplus = true; /* a start may come between a checkpoint and the removal of an older one
                             */
    store->ops->secret(store, engine->secret);
    cadre_status status = engine_restore(engine, error);
    if (status == CADRE_OK && engine->broken != CADRE_OK) {
        *error = engine->broken_error;
        status = engine->broken;
    }
    if (status != CADRE_OK) {
        engine->store = NULL; /* stays the caller's */
        engine_close(engine);
        return status;
    }
    *ret_engine = engine;
    return CADRE_OK;
}

cadre_status engine_open_reader(const struct engine_options *options, struct store *store,
    uint64_t now_us, struct engine **ret_engine, struct cadre_error *error)
{
    static const struct engine_sink nothing;
    CADRE_TRY(engine_open(options, store, &nothing, NULL, now_us, ret_engine, error));
    (*ret_engine)->reads_only = true;
    return CADRE_OK;
}

struct term engine_term(const struct engine *engine)
{
    return engine->term;
}

void engine_supersede(struct engine *engine, uint64_t start)
{
    begin_term(engine, start);
}

bool engine_job_is_damaged(const struct engine *engine, struct job_id job)
{
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    return entry != NULL && entry->damaged;
}

void engine_close(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    if (engine->store != NULL && !engine->reads_only) {
        engine->store->ops->close(engine->store);
    }
    directory_entry_free(engine->submitting);
    directory_clear(&engine->directory);
    engine_drop_placements(engine);
    free(engine->placements);
    engine_history_free(&engine->history);
    engine_log_free(&engine->log);
    engine_history_page_free(&engine->history_page);
    engine_audit_free(&engine->audit);
    free(engine->turn.items);
    free(engine->changed);
    free(engine->surplus_of);
    free(engine->removals.items);
    engine_forget_workers(engine);
    free(engine->task_infos);
    free(engine->core_memory);
    free(engine);
}

void engine_cancel(struct engine *engine, uint64_t now_us, struct call_id call, struct job_id job)
{
    engine_step(engine,
        &(struct core_event){
            .type = CORE_EVENT_CANCEL, .now_us = now_us, .cancel = {.call = call, .job = job}});
}

void engine_checkpoint_now(
    struct engine *engine, uint64_t now_us, struct call_id call, struct job_id job)
{
    engine_step(engine, &(struct core_event){.type = CORE_EVENT_CHECKPOINT,
                            .now_us = now_us,
                            .checkpoint = {.call = call, .job = job}});
}

void engine_drain(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct drain_request *asked, const char *who)
{
    struct core_event event = {
        .type = CORE_EVENT_DRAIN, .now_us = now_us, .drain = {.call = call, .ends = asked->ends}};
    struct core_drained *drained = &event.drain.drained;
    snprintf(drained->worker, sizeof drained->worker, "%s", asked->worker);
    snprintf(drained->who, sizeof drained->who, "%s", who);
    snprintf(drained->why, sizeof drained->why, "%s", asked->reason);
    engine_step(engine, &event);
}

/* Progress and shards are shown to people; no decision uses them, and no record keeps them. */
static bool is_for_people(const struct agent_up *up)
{
    return up->type == AGENT_UP_RELAY &&
           (up->relay_up.up.type == TASK_UP_PROGRESS || up->relay_up.up.type == TASK_UP_SHARDS);
}

static void engine_show(
    struct engine *engine, struct link_id link, const struct agent_relay_up *relay_up)
{
    struct directory_entry *entry = directory_find(&engine->directory, relay_up->task.job);
    if (relay_up->up.type == TASK_UP_PROGRESS && relay_up->up.progress.fetch.kind != FETCH_NONE) {
        engine_note_fetch(engine, link, relay_up->task, &relay_up->up.progress.fetch);
        return;
    }
    if (entry == NULL || !engine_task_on_link(engine, relay_up->task, link)) {
        return;
    }
    bool evaluates = ps_job_role(&entry->spec.ps_job, relay_up->task.slot) == ROLE_EVALUATOR;
    if (relay_up->up.type == TASK_UP_PROGRESS && evaluates) {
        directory_progress_set(&entry->evaluation, &relay_up->up.progress);
    } else if (relay_up->up.type == TASK_UP_PROGRESS) {
        directory_progress_set(&entry->progress, &relay_up->up.progress);
    } else {
        directory_shards_set(&entry->shards, &relay_up->up.shards);
    }
    engine_note_changed(engine, relay_up->task.job);
}

/* A worker that was away when a job ended, or went back to the queue, did not get its FORGET. */
static void forget_kept(struct engine *engine, struct link_id link, const struct agent_hello *hello)
{
    for (size_t i = 0; i < hello->kept_count; i++) {
        struct core_job_view view;
        bool attempts = core_job(engine->core, hello->kept[i], &view);
        if (!attempts || (view.state == JOB_QUEUED && !view.behind)) {
            engine_add_forget(engine, hello->kept[i], link);
        }
    }
}

static void note_leaves(struct engine *engine, struct link_id link)
{
    struct core_worker_view worker;
    if (core_worker_linked(engine->core, link, &worker)) {
        engine_history_leaves(engine, worker.name);
    }
}

void engine_agent_up(
    struct engine *engine, uint64_t now_us, struct link_id link, const struct agent_up *up)
{
    engine->now_us = now_us;
    if (is_for_people(up)) {
        engine_show(engine, link, &up->relay_up);
        return;
    }
    if (up->type == AGENT_UP_TASK_GONE && up->gone.damaged_step > 0 &&
        engine_task_on_link(engine, up->gone.task, link)) { /* so its end is no failure */
        engine_checkpoint_damaged(
            engine, now_us, up->gone.task.job, up->gone.damaged_step, up->gone.exit.text);
    }
    size_t before = engine->turn.count;
    if (up->type == AGENT_UP_ARRIVED && engine->arrived_us == 0) {
        engine->arrived_us = now_us;
    }
    engine_step(engine,
        &(struct core_event){
            .type = CORE_EVENT_AGENT_UP, .now_us = now_us, .agent = {.link = link, .up = up}});
    switch (up->type) {
    case AGENT_UP_HELLO:
        for (size_t i = before; i < engine->turn.count; i++) {
            const struct core_action *action = &engine->turn.items[i];
            if (action->type == CORE_ACTION_WELCOME && action->welcome.link.n == link.n) {
                engine_note_worker(engine, action->welcome.worker, &up->hello);
                engine_note_certificate(engine, link, up->certificate_ends_us);
                forget_kept(engine, link, &up->hello);
                break;
            }
        }
        break;
    case AGENT_UP_HEARTBEAT:
        engine_note_certificate(engine, link, up->certificate_ends_us);
        engine_note_fetches(engine, link, &up->heartbeat);
        engine_note_usages(engine, link, &up->heartbeat);
        break;
    case AGENT_UP_TASK_STARTED:
        engine_note_task(engine, up->started.task.job, up->started.task.slot);
        engine_history_task(engine, up->started.task);
        break;
    case AGENT_UP_DRAINING:
        note_leaves(engine, link);
        break;
    case AGENT_UP_RELAY:
        engine_note_task(engine, up->relay_up.task.job, up->relay_up.task.slot);
        break;
    default:
        break;
    }
}

void engine_link_down(struct engine *engine, uint64_t now_us, struct link_id link)
{
    engine_step(engine,
        &(struct core_event){.type = CORE_EVENT_LINK_DOWN, .now_us = now_us, .link_down = link});
}

void engine_tick(struct engine *engine, uint64_t now_us)
{
    engine_step(engine, &(struct core_event){.type = CORE_EVENT_TICK, .now_us = now_us});
}

uint64_t engine_wake_us(const struct engine *engine)
{
    if (engine->hold.held) {
        return engine->hold.retry_at_us;
    }
    if (engine->removals.asked > 0) {
        return engine->now_us;
    }
    uint64_t wake_us = hold_real_time(&engine->hold, core_wake_us(engine->core));
    uint64_t sync_us = engine_sync_due_us(engine);
    return wake_us < sync_us ? wake_us : sync_us;
}
