/* SPDX-License-Identifier: Apache-2.0
 * What the tasks of a crew are told: who of them is where, each by name, for they are in no roster;
 * and when to leave. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/engine_state.h"

/* Every task of the job as it is now; entries point to addresses. */
struct membership {
    struct task_member *all;
    struct task_member *some; /* the chief and the servers */
    char (*addresses)[LIMIT_ADDRESS_BYTES];
    size_t some_count;
};

static void membership_free(struct membership *membership)
{
    free(membership->all);
    free(membership->some);
    free(membership->addresses);
}

static bool membership_make(
    struct engine *engine, const struct core_job_view *view, struct membership *ret_membership)
{
    size_t tasks = view->tasks;
    *ret_membership = (struct membership){.all = calloc(tasks, sizeof(struct task_member)),
        .some = calloc(tasks, sizeof(struct task_member)),
        .addresses = calloc(tasks, LIMIT_ADDRESS_BYTES)};
    if (ret_membership->all == NULL || ret_membership->some == NULL ||
        ret_membership->addresses == NULL) {
        struct cadre_error error;
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for the members of job %llu",
            (unsigned long long)view->job.n);
        engine_break(engine, &error); /* who never hears of the others would wait for ever */
        return false;
    }
    for (uint32_t slot = 0; slot < view->tasks; slot++) {
        struct core_task_view task;
        core_job_task(engine->core, view->job, slot, &task);
        memcpy(ret_membership->addresses[slot], task.mesh_address, LIMIT_ADDRESS_BYTES);
        ret_membership->all[slot] = (struct task_member){.slot = slot,
            .incarnation = task.incarnation,
            .lives = task.lives,
            .here = task.here,
            .address = ret_membership->addresses[slot]};
        enum role role = crew_role(&view->crew, slot);
        if (role == ROLE_CHIEF || role == ROLE_SERVER) {
            ret_membership->some[ret_membership->some_count++] = ret_membership->all[slot];
        }
    }
    return true;
}

static void tell_slot(struct engine *engine, const struct core_job_view *view,
    const struct core_task_view *task, struct agent_down *down)
{
    down->tell.one = true;
    down->tell.task =
        (struct task_ref){.job = view->job, .slot = task->slot, .incarnation = task->incarnation};
    engine_send_down(engine, task->link, down);
}

static void tell_membership(
    struct engine *engine, const struct core_action *action, const struct core_job_view *view)
{
    struct membership membership;
    struct agent_down down = {.type = AGENT_DOWN_TELL,
        .tell = {.job = view->job,
            .down = {.type = TASK_DOWN_MEMBERS, .members = {.generation = view->generation}}}};
    struct task_members *members = &down.tell.down.members;
    engine_derive_key(engine, view->job, view->generation, members->key);
    bool made = membership_make(engine, view, &membership);
    for (uint32_t slot = 0; made && slot < view->tasks; slot++) {
        struct core_task_view task;
        core_job_task(engine->core, view->job, slot, &task);
        if (!task.here || (action->tell_job.one && slot != action->tell_job.slot)) {
            continue;
        }
        members->members = slot == 0 ? membership.all : membership.some;
        members->member_count = slot == 0 ? view->tasks : membership.some_count;
        tell_slot(engine, view, &task, &down);
    }
    membership_free(&membership);
}

static void tell_bye(
    struct engine *engine, const struct core_action *action, const struct core_job_view *view)
{
    bool servers = action->tell_job.tell == CORE_TELL_BYE_SERVERS;
    struct agent_down down = {.type = AGENT_DOWN_TELL,
        .tell = {.job = view->job,
            .down = {.type = TASK_DOWN_BYE, .generation = action->tell_job.generation}}};
    for (uint32_t slot = 1; slot < view->tasks; slot++) {
        struct core_task_view task;
        core_job_task(engine->core, view->job, slot, &task);
        if (task.here && (crew_role(&view->crew, slot) == ROLE_SERVER) == servers) {
            tell_slot(engine, view, &task, &down);
        }
    }
}

void engine_tell_crew(
    struct engine *engine, const struct core_action *action, const struct core_job_view *view)
{
    if (!view->formed || !generation_equal(view->generation, action->tell_job.generation)) {
        return; /* it is over, and its tasks are being started again */
    }
    if (action->tell_job.tell == CORE_TELL_MEMBERS) {
        tell_membership(engine, action, view);
    } else {
        tell_bye(engine, action, view);
    }
}

void engine_forget(struct engine *engine, struct job_id job, struct link_id link)
{
    struct agent_down down = {.type = AGENT_DOWN_FORGET, .forget = job};
    struct core_worker_view worker;
    if (link.n != 0) {
        engine_send_down(engine, link, &down);
        return;
    }
    uint32_t cursor = 0;
    while (core_worker_next(engine->core, &cursor, &worker)) {
        engine_send_down(engine, worker.link, &down);
    }
}
