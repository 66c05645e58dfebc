/* SPDX-License-Identifier: Apache-2.0
 * What readers see: the core's live state over the directory's records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/engine/engine_state.h"
#include "coordinator/engine/gpus_copy.h"

/* A worker measures every second, and less often where that costs much. */
#define USAGE_KEPT_US (15 * CADRE_US_PER_S)

/* All of it is unknown when it was reported long ago. */
static struct resource_usage usage_now(
    const struct engine *engine, const struct resource_usage *usage, uint64_t reported_us)
{
    bool current = engine->now_us < reported_us + USAGE_KEPT_US;
    return current ? *usage : (struct resource_usage){.has_cpu = false};
}

/* The index of the worker's details, or where they would be inserted. */
static size_t index_of_detail(const struct engine *engine, struct worker_id id)
{
    size_t low = 0;
    size_t high = engine->detail_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (engine->details[middle].id.n < id.n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct worker_detail *find_detail(const struct engine *engine, struct worker_id id)
{
    size_t at = index_of_detail(engine, id);
    bool found = at < engine->detail_count && engine->details[at].id.n == id.n;
    return found ? &engine->details[at] : NULL;
}

void engine_note_task(struct engine *engine, struct job_id job, uint32_t slot)
{
    struct directory_entry *entry = directory_find(&engine->directory, job);
    enum job_state live;
    if (entry == NULL || slot >= entry->task_count || !core_job_state(engine->core, job, &live)) {
        return;
    }
    struct core_task_view view;
    core_job_task(engine->core, job, slot, &view);
    struct directory_task *task = &entry->tasks[slot];
    if (task->incarnation != view.incarnation) {
        task->usage = (struct resource_usage){.has_cpu = false};
    }
    task->incarnation = view.incarnation;
    task->pid = view.pid;
    task->sent_hello = view.sent_hello;
    const struct worker_detail *detail = find_detail(engine, view.worker);
    if (detail != NULL) {
        snprintf(task->worker, sizeof task->worker, "%s", detail->name);
    }
}

/* Details of workers that the core has removed are dropped, once they are the larger part. Both
 * lists are in order of id. */
static void drop_forgotten(struct engine *engine)
{
    if (engine->detail_count <= 2 * (size_t)core_worker_count(engine->core) + 16) {
        return;
    }
    struct core_worker_view worker = {0};
    uint32_t cursor = 0;
    size_t kept = 0;
    for (size_t i = 0; i < engine->detail_count; i++) {
        uint64_t id = engine->details[i].id.n;
        bool more = true;
        while (more && worker.worker.n < id) {
            more = core_worker_next(engine->core, &cursor, &worker);
        }
        if (worker.worker.n == id) {
            engine->details[kept++] = engine->details[i];
        } else {
            free(engine->details[i].gpus);
        }
    }
    engine->detail_count = kept;
}

void engine_forget_workers(struct engine *engine)
{
    for (size_t i = 0; i < engine->detail_count; i++) {
        free(engine->details[i].gpus);
    }
    free(engine->details);
    engine->details = NULL;
    engine->detail_count = 0;
}

/* Room for the details of a new worker; NULL: out of memory. */
static struct worker_detail *add_detail(struct engine *engine, struct worker_id id)
{
    if (engine->detail_count == engine->detail_capacity) {
        size_t capacity = engine->detail_capacity > 0 ? engine->detail_capacity * 2 : 16;
        struct worker_detail *grown = realloc(engine->details, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        engine->details = grown;
        engine->detail_capacity = capacity;
    }
    size_t at = index_of_detail(engine, id);
    memmove(&engine->details[at + 1], &engine->details[at],
        (engine->detail_count - at) * sizeof engine->details[0]);
    engine->detail_count++;
    engine->details[at].gpus = NULL;
    return &engine->details[at];
}

void engine_note_worker(
    struct engine *engine, struct worker_id worker, const struct agent_hello *hello)
{
    drop_forgotten(engine);
    struct worker_detail *detail = find_detail(engine, worker);
    if (detail == NULL) {
        detail = add_detail(engine, worker);
    }
    if (detail == NULL) {
        return; /* listings show it without its details */
    }
    free(detail->gpus);
    *detail = (struct worker_detail){.id = worker,
        .cpus = hello->cpus,
        .memory_bytes = hello->memory_bytes,
        .gpus = gpus_copy(&hello->gpus),
        .joined_us = clock_wall_us()};
    snprintf(detail->name, sizeof detail->name, "%s", hello->name);
    snprintf(detail->host, sizeof detail->host, "%s", hello->host);
    snprintf(detail->version, sizeof detail->version, "%s", hello->library_version);
}

void engine_note_expected(struct engine *engine)
{
    struct core_worker_view view;
    uint32_t cursor = 0;
    while (core_worker_next(engine->core, &cursor, &view)) {
        struct worker_detail *detail = add_detail(engine, view.worker);
        if (detail != NULL) {
            *detail = (struct worker_detail){.id = view.worker};
            snprintf(detail->name, sizeof detail->name, "%s", view.name);
        }
    }
}

struct worker_detail *engine_detail_on_link(struct engine *engine, struct link_id link)
{
    struct core_worker_view worker;
    bool known = core_worker_linked(engine->core, link, &worker);
    return known ? find_detail(engine, worker.worker) : NULL;
}

void engine_note_certificate(struct engine *engine, struct link_id link, uint64_t ends_us)
{
    struct worker_detail *detail = ends_us != 0 ? engine_detail_on_link(engine, link) : NULL;
    if (detail != NULL) {
        detail->certificate_ends_us = ends_us;
    }
}

uint64_t engine_position(const struct engine *engine, const struct directory_entry *entry)
{
    uint64_t live;
    bool more = core_job_committed(engine->core, entry->id, &live) && live > entry->position;
    return more ? live : entry->position; /* after a start the core waits for arrivals */
}

void engine_fill_basics(
    const struct engine *engine, struct directory_entry *entry, struct job_info *ret_info)
{
    *ret_info = (struct job_info){.id = entry->id,
        .name = entry->spec.name,
        .program = entry->spec.program.name,
        .state = entry->state,
        .code = entry->code,
        .message = entry->text,
        .workers = entry->spec.workers,
        .workers_min = entry->spec.workers_min > 0 ? entry->spec.workers_min : entry->spec.workers,
        .restarts = entry->restarts,
        .replicas = entry->spec.replicas,
        .priority = entry->spec.priority,
        .submitted_us = entry->submitted_us,
        .started_us = entry->started_us,
        .ended_us = entry->ended_us,
        .position = engine_position(engine, entry),
        .verified_position = entry->verified.position,
        .verified_digest = entry->verified.digest,
        .generation = entry->generation,
        .checkpoint = entry->checkpoint,
        .exit_code = entry->exit_code,
        .ps_job = entry->spec.ps_job,
        .limits = entry->spec.limits,
        .outputs_folder = entry->spec.outputs_folder,
        .has_progress = entry->progress.present,
        .progress = entry->progress.value,
        .has_evaluation = entry->evaluation.present,
        .evaluation = entry->evaluation.value};
    struct core_job_view live;
    if (!job_state_is_final(entry->state) && core_job(engine->core, entry->id, &live)) {
        /* In the entry, so that several jobs can be listed at once. */
        (void)core_job_text(engine->core, entry->id, entry->text);
        ret_info->state = live.state;
        ret_info->roster = live.roster;
        ret_info->restarts = live.restarts;
        if (live.verified.digest != 0) {
            ret_info->verified_position = live.verified.position;
            ret_info->verified_digest = live.verified.digest;
        }
        if (live.stall.slot < entry->task_count) {
            ret_info->wait = (struct job_wait){.slot = live.stall.slot,
                .worker = entry->tasks[live.stall.slot].worker,
                .waited_us = live.stall.waited_us};
        }
    }
    if (entry->end_unstored) { /* shown once it is stored */
        ret_info->state = JOB_ENDING;
        ret_info->code = CADRE_OK;
        ret_info->exit_code = 0;
        ret_info->ended_us = 0;
    }
    if (engine->hold.held && !job_state_is_final(ret_info->state)) {
        ret_info->message = engine->hold.error.text;
    }
}

static enum task_state state_of_ended(const struct directory_task *task)
{
    return task->state != 0 ? task->state : TASK_WAITING;
}

static bool is_live(const struct engine *engine, const struct directory_entry *entry)
{
    enum job_state state;
    return !job_state_is_final(entry->state) && core_job_state(engine->core, entry->id, &state);
}

/* The worker's reports end with the start of the process, the program's with their last one. */
static bool is_fetching(const struct task_fetch *fetch, enum task_state state)
{
    return state == TASK_STARTING || (state == TASK_RUNNING && fetch->kind == FETCH_READ &&
                                         fetch->done_bytes < fetch->whole_bytes);
}

static void fill_task(const struct engine *engine, const struct directory_entry *entry,
    uint32_t slot, bool live, struct task_info *info)
{
    const struct directory_task *task = &entry->tasks[slot];
    *info = (struct task_info){.slot = slot,
        .role = ps_job_role(&entry->spec.ps_job, slot),
        .index = ps_job_role_index(&entry->spec.ps_job, slot),
        .incarnation = task->incarnation,
        .state = state_of_ended(task),
        .worker = task->worker,
        .pid = task->pid,
        .has_exit = task->has_exit,
        .exit = task->exit,
        .uses_cadre = task->sent_hello,
        .log_bytes = task->log_bytes};
    if (live) {
        struct core_task_view view;
        core_job_task(engine->core, entry->id, slot, &view);
        info->incarnation = view.incarnation;
        info->state = view.state;
        info->worker = view.state == TASK_WAITING ? "" : task->worker;
        info->pid = view.pid;
        info->has_exit = view.has_exit;
        info->exit = task->exit; /* with the text, which the core does not keep */
        info->uses_cadre = view.sent_hello;
        if (is_fetching(&task->fetch, view.state)) {
            info->fetch = task->fetch;
        }
        if (view.state == TASK_RUNNING) {
            info->usage = usage_now(engine, &task->usage, task->usage_us);
        }
        info->waited_us = view.waited_us;
    }
}

bool engine_job_info(struct engine *engine, struct job_id job, struct job_info *ret_info)
{
    struct directory_entry *entry = engine_find_stored(engine, job);
    if (entry == NULL) {
        return false;
    }
    engine_fill_basics(engine, entry, ret_info);
    ret_info->shards = entry->shards.datasets;
    ret_info->shards_count = entry->shards.count;
    struct task_info *infos = realloc(engine->task_infos, (entry->task_count + 1) * sizeof *infos);
    if (infos == NULL) {
        return true; /* without its tasks */
    }
    engine->task_infos = infos;
    bool live = is_live(engine, entry);
    for (uint32_t slot = 0; slot < entry->task_count; slot++) {
        fill_task(engine, entry, slot, live, &infos[slot]);
    }
    ret_info->tasks = infos;
    ret_info->task_count = entry->task_count;
    return true;
}

bool engine_job_basics(struct engine *engine, struct job_id job, struct job_info *ret_info)
{
    struct directory_entry *entry = engine_find_stored(engine, job);
    if (entry != NULL) {
        engine_fill_basics(engine, entry, ret_info);
    }
    return entry != NULL;
}

bool engine_job_position(struct engine *engine, struct job_id job, uint64_t *ret_position)
{
    const struct directory_entry *entry = engine_find_stored(engine, job);
    if (entry != NULL) {
        *ret_position = engine_position(engine, entry);
    }
    return entry != NULL;
}

const struct job_spec *engine_job_spec(struct engine *engine, struct job_id job)
{
    const struct directory_entry *entry = engine_find_stored(engine, job);
    return entry != NULL ? &entry->spec : NULL;
}

uint32_t engine_job_count(const struct engine *engine)
{
    size_t count = engine->directory.count;
    while (count > 0 && engine->directory.entries[count - 1]->id.n > engine->stored_max.n) {
        count--; /* in a turn that is not stored yet */
    }
    return (uint32_t)count;
}

/* The i-th from the newest; NULL: there are not so many. */
static struct directory_entry *entry_at(const struct engine *engine, uint32_t i)
{
    uint32_t count = engine_job_count(engine);
    return i < count ? engine->directory.entries[count - 1 - i] : NULL;
}

bool engine_job_at(struct engine *engine, uint32_t i, struct job_info *ret_info)
{
    struct directory_entry *entry = entry_at(engine, i);
    if (entry != NULL) {
        engine_fill_basics(engine, entry, ret_info);
    }
    return entry != NULL;
}

bool engine_job_brief_at(struct engine *engine, uint32_t i, struct engine_job_brief *ret_brief)
{
    const struct directory_entry *entry = entry_at(engine, i);
    if (entry == NULL) {
        return false;
    }
    *ret_brief = (struct engine_job_brief){.id = entry->id,
        .state = entry->end_unstored ? JOB_ENDING : entry->state,
        .submitted_us = entry->submitted_us,
        .started_us = entry->started_us,
        .ended_us = entry->end_unstored ? 0 : entry->ended_us};
    if (!job_state_is_final(entry->state)) {
        (void)core_job_state(engine->core, entry->id, &ret_brief->state);
    }
    return true;
}

bool engine_worker_next(struct engine *engine, uint32_t *cursor, struct worker_info *ret_info)
{
    struct core_worker_view view;
    if (!core_worker_next(engine->core, cursor, &view)) {
        return false;
    }
    *ret_info = (struct worker_info){.id = view.worker,
        .name = "",
        .host = "",
        .version = "",
        .slots = view.slots,
        .slots_used = view.slots_used,
        .draining = view.draining,
        .connected = view.link.n != 0,
        .expected = view.expected,
        .drained_by = view.drained_by != NULL ? view.drained_by : "",
        .drained_why = view.drained_by != NULL ? view.drained_why : ""};
    const struct worker_detail *detail = find_detail(engine, view.worker);
    if (detail != NULL) {
        ret_info->name = detail->name;
        ret_info->host = detail->host;
        ret_info->version = detail->version;
        ret_info->cpus = detail->cpus;
        ret_info->memory_bytes = detail->memory_bytes;
        ret_info->joined_us = detail->joined_us;
        ret_info->certificate_ends_us = detail->certificate_ends_us;
        ret_info->usage = usage_now(engine, &detail->usage, detail->usage_us);
    }
    ret_info->gpus = detail != NULL && detail->gpus != NULL
                         ? *detail->gpus
                         : (struct gpus){.driver = "", .runtime = "", .reason = ""};
    return true;
}

void engine_log_bytes(struct engine *engine, struct task_ref task, uint64_t bytes)
{
    struct directory_entry *entry = directory_find(&engine->directory, task.job);
    if (entry != NULL && task.slot < entry->task_count) {
        entry->tasks[task.slot].log_bytes = bytes;
    }
}

struct link_id engine_task_link(struct engine *engine, struct task_ref task)
{
    const struct directory_entry *entry = directory_find(&engine->directory, task.job);
    enum job_state live;
    if (entry == NULL || task.slot >= entry->task_count ||
        !core_job_state(engine->core, task.job, &live)) {
        return (struct link_id){0};
    }
    struct core_task_view view;
    core_job_task(engine->core, task.job, task.slot, &view);
    return view.incarnation == task.incarnation ? view.link : (struct link_id){0};
}

bool engine_task_on_link(struct engine *engine, struct task_ref task, struct link_id link)
{
    return link.n != 0 && engine_task_link(engine, task).n == link.n;
}

enum role engine_task_role(struct engine *engine, struct task_ref task)
{
    const struct directory_entry *entry = directory_find(&engine->directory, task.job);
    return entry != NULL && task.slot < entry->task_count
               ? ps_job_role(&entry->spec.ps_job, task.slot)
               : ROLE_NONE;
}

bool engine_job_next_step(struct engine *engine, struct job_id job, uint64_t *ret_step)
{
    struct core_job_view view;
    if (engine_find_stored(engine, job) == NULL || !core_job(engine->core, job, &view)) {
        return false;
    }
    /* A program may have its batch already, and wait for the release. */
    bool begun = view.formed && view.generation.number > 0;
    *ret_step = begun ? view.released + 1 : view.committed;
    return true;
}

bool engine_task_is_of(struct engine *engine, struct task_ref task, const char *worker)
{
    const struct directory_entry *entry = engine_find_stored(engine, task.job);
    struct task_info info;
    if (entry == NULL || task.slot >= entry->task_count) {
        return false;
    }
    fill_task(engine, entry, task.slot, is_live(engine, entry), &info);
    return info.incarnation == task.incarnation && strcmp(info.worker, worker) == 0;
}

bool engine_worker_has_job(struct engine *engine, const char *worker, struct job_id job)
{
    const struct directory_entry *entry = engine_find_stored(engine, job);
    bool has = false;
    if (entry == NULL || !is_live(engine, entry)) {
        return false;
    }
    for (uint32_t slot = 0; slot < entry->task_count && !has; slot++) {
        struct task_info info;
        fill_task(engine, entry, slot, true, &info);
        has = strcmp(info.worker, worker) == 0;
    }
    return has;
}

bool engine_worker_has_tasks(const struct engine *engine, const char *worker)
{
    struct core_worker_view view;
    return core_worker_named(engine->core, worker, &view) && view.slots_used > 0;
}
