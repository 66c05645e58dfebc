/* SPDX-License-Identifier: Apache-2.0
 * Messages to the tasks of a ps job: the members, each by name, because they are in no roster; and
 * bye. messages.c calls it. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/members_sent.h"
#include "coordinator/engine/messages.h"

/* Tasks of the job as they are now; entries point to addresses. */
struct membership {
    struct task_member *all;  /* by slot; NULL: not for the chief */
    struct task_member *some; /* the chief and the servers */
    struct task_member *all_changed, *some_changed;
    char (*addresses)[LIMIT_ADDRESS_BYTES];
    size_t all_count, some_count, all_changed_count, some_changed_count;
};

static void membership_free(struct membership *membership)
{
    free(membership->all);
    free(membership->some);
    free(membership->all_changed);
    free(membership->some_changed);
    free(membership->addresses);
}

static bool membership_has_room(
    struct membership *membership, const struct core_job_view *view, bool chief)
{
    size_t some = 1 + (size_t)view->ps_job.servers;
    size_t listed = chief ? view->tasks : some;
    *membership =
        (struct membership){.all = chief ? calloc(listed, sizeof(struct task_member)) : NULL,
            .some = calloc(some, sizeof(struct task_member)),
            .all_changed = chief ? calloc(listed, sizeof(struct task_member)) : NULL,
            .some_changed = calloc(some, sizeof(struct task_member)),
            .addresses = calloc(listed, LIMIT_ADDRESS_BYTES),
            .all_count = chief ? view->tasks : 0};
    return (!chief || (membership->all != NULL && membership->all_changed != NULL)) &&
           membership->some != NULL && membership->some_changed != NULL &&
           membership->addresses != NULL;
}

/* Tasks other than the chief get the chief and the servers only, so that the cost does not grow
 * with the workers. */
static bool membership_make(const struct sender *sender, const struct core_job_view *view,
    bool chief, struct membership *ret_membership)
{
    size_t tasks = view->tasks;
    size_t some = 1 + (size_t)view->ps_job.servers;
    uint32_t slot = 0;
    if (!membership_has_room(ret_membership, view, chief)) {
        return false;
    }
    for (size_t i = 0; slot < tasks && (chief || i < some); i++) {
        char *address = ret_membership->addresses[i];
        struct core_task_view task;
        core_job_task(sender->core, view->job, slot, &task);
        memcpy(address, task.mesh_address, LIMIT_ADDRESS_BYTES);
        const struct task_member member = {.slot = slot,
            .incarnation = task.incarnation,
            .attempts = task.attempts,
            .here = task.here,
            .address = address,
            .backed = task.backed};
        if (chief) {
            ret_membership->all[slot] = member;
        }
        if (slot == 0 || ps_job_role(&view->ps_job, slot) == ROLE_SERVER) {
            ret_membership->some[ret_membership->some_count++] = member;
        }
        slot = slot == 0 && !chief ? ps_job_first_slot(&view->ps_job, ROLE_SERVER) : slot + 1;
    }
    return true;
}

static void send_to_slot(const struct sender *sender, const struct core_job_view *view,
    const struct core_task_view *task, struct agent_down *down)
{
    down->relay_down.one = true;
    down->relay_down.task =
        (struct task_ref){.job = view->job, .slot = task->slot, .incarnation = task->incarnation};
    messages_send(sender, task->link, down);
}

/* What the job's tasks were sent before; NULL: not known, and messages are whole. */
static struct members_sent *sent_before(
    const struct sender *sender, const struct core_job_view *view)
{
    struct members_sent *sent =
        sender->members != NULL ? sender->members(sender->user, view->job) : NULL;
    return sent != NULL && members_sent_begin(sent, view, sender->term.start) ? sent : NULL;
}

/* To all, or to the chief alone, the lists have new numbers if they changed. A message to another
 * task alone is whole, and leaves the list that all have as it is. */
static void find_changes(
    struct membership *membership, struct members_sent *sent, bool to_chief, bool to_others)
{
    if (sent != NULL && to_chief) {
        membership->all_changed_count =
            members_sent_compare(&sent->to_chief, membership->all, membership->all_changed);
    }
    if (sent != NULL && to_others) {
        membership->some_changed_count =
            members_sent_compare(&sent->to_others, membership->some, membership->some_changed);
    }
}

/* The whole list to a task that has said hello since, to one alone that is not the chief, and where
 * nothing is known of what was sent; else what changed. False: nothing did. */
static bool fill_members(const struct membership *membership, struct members_sent *sent,
    const struct core_task_view *task, bool one, struct task_members *members)
{
    bool chief = task->slot == 0;
    bool again = sent == NULL || members_sent_again(sent, task);
    size_t changed = chief ? membership->all_changed_count : membership->some_changed_count;
    members->number = sent == NULL ? 0 : chief ? sent->to_chief.number : sent->to_others.number;
    members->changes = !again && (chief || !one);
    if (members->changes) {
        members->members = chief ? membership->all_changed : membership->some_changed;
        members->member_count = changed;
        return changed > 0;
    }
    members->members = chief ? membership->all : membership->some;
    members->member_count = chief ? membership->all_count : membership->some_count;
    return true;
}

static cadre_status send_membership(const struct sender *sender, const struct core_action *action,
    const struct core_job_view *view, struct cadre_error *error)
{
    struct membership membership;
    struct agent_down down = {.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = view->job,
            .down = {.type = TASK_DOWN_MEMBERS, .members = {.generation = view->generation}}}};
    struct task_members *members = &down.relay_down.down.members;
    sender->key(sender->user, view->job, view->generation, members->key);
    bool one = action->notify_job.one;
    uint32_t first = one ? action->notify_job.slot : 0;
    uint32_t end = one ? first + 1 : view->tasks;
    bool made = membership_make(sender, view, first == 0, &membership);
    struct members_sent *sent = made ? sent_before(sender, view) : NULL;
    find_changes(&membership, sent, first == 0, !one);
    for (uint32_t slot = first; made && slot < end; slot++) {
        struct core_task_view task;
        core_job_task(sender->core, view->job, slot, &task);
        if (task.here && fill_members(&membership, sent, &task, one, members)) {
            send_to_slot(sender, view, &task, &down);
        }
    }
    membership_free(&membership);
    return made ? CADRE_OK
                : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                      "no memory for the members of job %llu", (unsigned long long)view->job.n);
}

static void send_goodbye(
    const struct sender *sender, const struct core_action *action, const struct core_job_view *view)
{
    bool servers = action->notify_job.message == CORE_MESSAGE_GOODBYE_SERVERS;
    struct agent_down down = {.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = view->job,
            .down = {.type = TASK_DOWN_GOODBYE, .generation = action->notify_job.generation}}};
    for (uint32_t slot = 1; slot < view->tasks; slot++) {
        struct core_task_view task;
        core_job_task(sender->core, view->job, slot, &task);
        if (task.here && (ps_job_role(&view->ps_job, slot) == ROLE_SERVER) == servers) {
            send_to_slot(sender, view, &task, &down);
        }
    }
}

cadre_status messages_send_ps_job(
    const struct sender *sender, const struct core_action *action, struct cadre_error *error)
{
    struct core_job_view view;
    if (!core_job(sender->core, action->notify_job.job, &view) || !view.formed ||
        !generation_equal(view.generation, action->notify_job.generation)) {
        return CADRE_OK; /* it is over, and its tasks are being started again */
    }
    if (action->notify_job.message == CORE_MESSAGE_MEMBERS) {
        return send_membership(sender, action, &view, error);
    }
    send_goodbye(sender, action, &view);
    return CADRE_OK;
}
