/* SPDX-License-Identifier: Apache-2.0
 * Feeds events to the core (worker/core/agent_core.h) and carries its actions out: tasks,
 * sockets, messages. Called by the daemon, `cadre run` and the other files of this folder. */
#include "worker/host/agent/agent.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/host/agent/agent_state.h"
#include "worker/host/agent/ps_memory.h"

struct agent_task *agent_task_find(struct agent *agent, struct task_ref ref)
{
    struct agent_task *task = agent->tasks;
    while (task != NULL && !task_ref_equal(task->ref, ref)) {
        task = task->next;
    }
    return task;
}

void agent_notice(struct agent *agent, struct task_ref task, const char *format, ...)
{
    char text[LIMIT_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    agent->callbacks.notice(agent->user, task, text);
}

void agent_forget(struct agent *agent, struct task_ref ref)
{
    struct agent_task **at = &agent->tasks;
    while (*at != NULL && !task_ref_equal((*at)->ref, ref)) {
        at = &(*at)->next;
    }
    struct agent_task *task = *at;
    if (task == NULL) {
        return;
    }
    agent->callbacks.forget(agent->user, ref);
    *at = task->next;
    task->forgotten = true;
    task_socket_close(task);
    process_close(task);
    agent_task_free_if_closed(task);
}

cadre_status agent_copy_start(
    struct agent_task *task, const struct agent_start *start, struct cadre_error *error)
{
    struct wire_buffer packed = {0};
    struct agent_down down = {.type = AGENT_DOWN_START, .start = *start};
    cadre_status status = wire_pack_agent_down(&down, &packed, error);
    if (status == CADRE_OK) {
        task->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
        status =
            task->arena != NULL
                ? wire_unpack_agent_down(packed.bytes, packed.size, task->arena, &down, error)
                : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the task's spec");
    }
    if (status == CADRE_OK) {
        task->start = down.start;
    }
    wire_buffer_free(&packed);
    return status;
}

static void refuse_for_memory(struct agent *agent, struct task_ref ref, const char *what)
{
    struct cadre_error error;
    cadre_error_set(
        &error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory for another %s", what);
    agent_task_failed(agent, ref, 126, &error);
}

static void agent_prepare(struct agent *agent, const struct agent_start *start)
{
    struct cadre_error error = {0};
    struct agent_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        refuse_for_memory(agent, start->task, "task");
        return;
    }
    *task = (struct agent_task){.next = agent->tasks,
        .agent = agent,
        .ref = start->task,
        .memory = -1,
        .bound = -1,
        .gpu_slot = -1,
        .keeper_socket = -1};
    agent->tasks = task;
    if (agent_copy_start(task, start, &error) != CADRE_OK) {
        agent_task_failed(agent, start->task, 126, &error);
        return;
    }
    if (ps_memory_is_for(start) && !ps_memory_reserve(agent, start)) {
        refuse_for_memory(agent, start->task, "server");
        return;
    }
    agent->callbacks.prepare(agent->user, &task->start);
}

static void agent_spawn(struct agent *agent, struct task_ref ref)
{
    struct agent_task *task = agent_task_find(agent, ref);
    CADRE_ASSERT(task != NULL);
    struct cadre_error error = {0};
    if (ps_memory_is_for(&task->start) &&
        ps_memory_open(agent, ref, &task->memory, &error) != CADRE_OK) {
        agent_task_failed(agent, ref, 126, &error);
        return;
    }
    if (task_socket_listen(task, &error) != CADRE_OK) {
        agent_task_failed(agent, ref, 126, &error);
        return;
    }
    task->gpu_slot = gpu_slot_choose(agent);
    cadre_status status = process_spawn(task, &error);
    if (status != CADRE_OK) {
        task->gpu_slot = -1;
        agent_task_failed(agent, ref, status == CADRE_NOT_FOUND ? 127 : 126, &error);
    } /* else its keeper reports it: keeper_link.c */
}

/* Fills in the parts of a hello that the core does not have: name, host, limits; and lists the
 * tasks that are here. */
static void send_hello(struct agent *agent, struct agent_up *up)
{
    size_t count = 0;
    struct agent_task_view view;
    for (uint32_t i = 0; i < AGENT_ENTRIES(agent->setup.core.slots); i++) {
        if (agent_core_task(agent->core, i, &view)) {
            agent->refs[count++] = view.task;
        }
    }
    up->hello = (struct agent_hello){.protocol_version = AGENT_PROTOCOL_OLDEST,
        .protocol_newest = AGENT_PROTOCOL_VERSION,
        .library_version = CADRE_VERSION,
        .name = agent->name,
        .host = agent->host,
        .boot_nonce = agent->setup.identity.boot_nonce,
        .slots = agent->setup.core.slots,
        .cpus = agent->setup.identity.cpus,
        .memory_bytes = agent->setup.identity.memory_bytes,
        .draining = up->hello.draining,
        .orphan_us = agent->setup.core.orphan_us,
        .tasks = agent->refs,
        .task_count = count,
        .kept = agent->kept,
        .kept_count =
            ps_memory_jobs(agent, agent->kept, AGENT_ENTRIES((size_t)agent->setup.core.slots)),
        .gpus = agent->setup.identity.gpus,
        .seen = agent->term,
        .seen_index = agent->log_index};
    agent->callbacks.send(agent->user, up);
}

static void agent_act(
    struct agent *agent, struct agent_action *action, const struct agent_event *event)
{
    struct agent_task *task = NULL;
    switch (action->type) {
    case AGENT_ACTION_SEND:
        if (action->up.type == AGENT_UP_HELLO) {
            send_hello(agent, &action->up);
        } else {
            agent->callbacks.send(agent->user, &action->up);
        }
        break;
    case AGENT_ACTION_PREPARE:
        agent_prepare(agent, &event->down->start);
        break;
    case AGENT_ACTION_SPAWN:
        agent_spawn(agent, action->task);
        break;
    case AGENT_ACTION_SIGNAL:
        if ((task = agent_task_find(agent, action->task)) != NULL) {
            process_signal(task, action->signal);
        }
        break;
    case AGENT_ACTION_COLLECT:
        if ((task = agent_task_find(agent, action->task)) != NULL) {
            task_socket_close(task);
            agent->callbacks.collect(agent->user, action->task);
        } else {
            agent_task_collected(agent, action->task, CADRE_OK, ""); /* it never got a slot */
        }
        break;
    case AGENT_ACTION_PUBLISH:
        agent->callbacks.publish(agent->user, action->task, action->part);
        break;
    case AGENT_ACTION_DELIVER:
        if ((task = agent_task_find(agent, action->task)) != NULL) {
            task_socket_send(task, &event->down->relay_down.down);
        }
        break;
    case AGENT_ACTION_REFUSE:
        if ((task = agent_task_find(agent, action->task)) != NULL) {
            task_socket_refuse(task, action->code, action->text);
        }
        break;
    case AGENT_ACTION_FORGET:
        agent_forget(agent, action->task);
        break;
    case AGENT_ACTION_FORGET_JOB:
        ps_memory_forget(agent, action->task.job);
        break;
    case AGENT_ACTION_EXIT:
        agent->callbacks.drained(agent->user);
        break;
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    agent->armed_us = 0;
    agent_step(agent, &(struct agent_event){.type = AGENT_EVENT_TICK});
}

void agent_arm_tick(struct agent *agent)
{
    uint64_t wake_us = agent_core_wake_us(agent->core);
    if (wake_us == agent->armed_us) {
        return; /* mostly: a message hardly ever changes a deadline */
    }
    agent->armed_us = wake_us;
    if (wake_us == CADRE_TIME_NEVER) {
        uv_timer_stop(&agent->tick);
        return;
    }
    uint64_t now_us = clock_monotonic_us();
    uint64_t wait_ms = wake_us > now_us ? (wake_us - now_us + 999) / 1000 : 0;
    uv_timer_start(&agent->tick, on_tick, wait_ms, 0);
}

/* Checks the core's invariants, in debug builds and in those for AddressSanitizer, which all
 * tests run in: it walks the table, which is too much for each frame of a busy host. */
static void check_core(const struct agent_core *core)
{
#if !defined NDEBUG || defined __SANITIZE_ADDRESS__
    const char *broken = agent_core_invariant(core);
    if (broken != NULL) {
        cadre_panic(broken, __FILE__, __LINE__);
    }
#else
    (void)core;
#endif
}

static void step_once(struct agent *agent, struct agent_event *event)
{
    event->now_us = clock_monotonic_us();
    struct agent_actions out = {.items = agent->actions, .capacity = agent->action_capacity};
    agent_core_step(agent->core, event, &out);
    check_core(agent->core);
    for (size_t i = 0; i < out.count; i++) {
        agent_act(agent, &out.items[i], event);
    }
}

void agent_step(struct agent *agent, struct agent_event *event)
{
    if (agent->closing) {
        return;
    }
    CADRE_ASSERT(!agent->acting);
    agent->acting = true;
    step_once(agent, event);
    struct deferred *done;
    while ((done = agent->deferred) != NULL) {
        agent->deferred = done->next;
        if (agent->deferred == NULL) {
            agent->deferred_tail = &agent->deferred;
        }
        step_once(agent, &done->event);
        free(done);
    }
    agent->acting = false;
    mailboxes_wake(agent);
    agent_arm_tick(agent);
}

/* Steps the core at once, or after the current actions when the event came out of one of them. */
static void agent_complete(struct agent *agent, const struct agent_event *event, const char *text)
{
    struct deferred now;
    struct deferred *done = agent->acting ? calloc(1, sizeof *done) : &now;
    CADRE_ASSERT(done != NULL);
    done->next = NULL;
    done->event = *event;
    snprintf(done->text, sizeof done->text, "%s", text);
    done->event.text = done->text;
    if (event->type == AGENT_EVENT_FAILED) {
        memcpy(done->event.exit.text, done->text, sizeof done->text);
    }
    if (agent->acting) {
        *agent->deferred_tail = done;
        agent->deferred_tail = &done->next;
    } else {
        agent_step(agent, &done->event);
    }
}

void agent_step_after(struct agent *agent, const struct agent_event *event)
{
    agent_complete(agent, event, "");
}

/* With a slash in it, so that exec does not look it up in PATH. */
static char *program_to_start(const char *program)
{
    char *path = NULL;
    const char *prefix = strchr(program, '/') != NULL ? "" : "./";
    return asprintf(&path, "%s%s", prefix, program) >= 0 ? path : NULL;
}

void agent_task_prepared(
    struct agent *agent, struct task_ref ref, const struct agent_launch *launch)
{
    struct agent_task *task = agent_task_find(agent, ref);
    if (task == NULL || task->program != NULL) {
        close(launch->listener);
        return; /* it was stopped meanwhile */
    }
    task->bound = launch->listener;
    task->program = program_to_start(launch->program);
    task->folder = strdup(launch->folder);
    task->output = strdup(launch->output);
    task->socket_path = strdup(launch->socket);
    task->restore = launch->restore != NULL ? strdup(launch->restore) : NULL;
    task->object_folder = launch->object_folder != NULL ? strdup(launch->object_folder) : NULL;
    task->object_mib = launch->object_mib;
    task->temporary = launch->temporary != NULL ? strdup(launch->temporary) : NULL;
    task->confinement = launch->confinement != NULL
                            ? *launch->confinement
                            : (struct task_confinement){.change_user = agent->setup.change_user,
                                  .uid = agent->setup.uid,
                                  .gid = agent->setup.gid};
    task->keeper_path = launch->keeper != NULL ? strdup(launch->keeper) : NULL;
    task->inherit_environment = launch->inherit_environment;
    if (task->program == NULL || task->folder == NULL || task->output == NULL ||
        task->socket_path == NULL || (task->restore == NULL) != (launch->restore == NULL) ||
        (task->temporary == NULL) != (launch->temporary == NULL) ||
        (task->keeper_path == NULL) != (launch->keeper == NULL)) {
        refuse_for_memory(agent, ref, "task");
        return;
    }
    agent_step_after(agent, &(struct agent_event){.type = AGENT_EVENT_PREPARED, .task = ref});
}

void agent_task_failed(
    struct agent *agent, struct task_ref task, int exit_code, const struct cadre_error *cause)
{
    agent_complete(agent,
        &(struct agent_event){
            .type = AGENT_EVENT_FAILED, .task = task, .exit.code = exit_code, .code = cause->code},
        cause->text);
}

void agent_set_output_paused(struct agent *agent, struct task_ref ref, bool held)
{
    struct agent_task *task = agent_task_find(agent, ref);
    if (task != NULL) {
        process_set_output_paused(task, held);
    }
}

void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    agent_complete(agent,
        &(struct agent_event){.type = AGENT_EVENT_PUBLISHED, .task = task, .code = code}, text);
}

void agent_task_collected(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    agent_complete(agent,
        &(struct agent_event){.type = AGENT_EVENT_COLLECTED, .task = task, .code = code}, text);
}

void agent_link_up(struct agent *agent)
{
    agent_step(agent, &(struct agent_event){.type = AGENT_EVENT_LINK_UP});
}

void agent_link_down(struct agent *agent)
{
    agent_step(agent, &(struct agent_event){.type = AGENT_EVENT_LINK_DOWN});
}

void agent_down(struct agent *agent, const struct agent_down *down)
{
    agent_step(agent, &(struct agent_event){.type = AGENT_EVENT_DOWN, .down = down});
}

void agent_drain(struct agent *agent)
{
    agent_step(agent, &(struct agent_event){.type = AGENT_EVENT_DRAIN});
}

uint32_t agent_task_count(const struct agent *agent)
{
    uint32_t count = 0;
    for (const struct agent_task *task = agent->tasks; task != NULL; task = task->next) {
        count++;
    }
    return count;
}

bool agent_task_process(struct agent *agent, struct task_ref ref, struct agent_process *ret_process)
{
    const struct agent_task *task = agent_task_find(agent, ref);
    if (task == NULL || !task->has_process) {
        return false;
    }
    *ret_process = (struct agent_process){
        .pid = task->pid, .group = &task->confinement.group, .gpu_slot = task->gpu_slot};
    return true;
}
