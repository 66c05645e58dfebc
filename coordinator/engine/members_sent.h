/* SPDX-License-Identifier: Apache-2.0
 * What the tasks of a ps job last received of each other, so that a change costs what changed:
 * the chief receives all slots, the others the chief and the servers. Pure; the engine's directory
 * and the simulator keep one for each job, and forget it when the coordinator starts again. */
#ifndef CADRE_COORDINATOR_ENGINE_MEMBERS_SENT_H
#define CADRE_COORDINATOR_ENGINE_MEMBERS_SENT_H

#include "coordinator/core/core.h"

/* A list of members as it was last sent, and its number. */
struct sent_list {
    uint64_t number;
    struct sent_member *members; /* [count] */
    size_t count;
};

/* A zeroed one: nothing was sent yet. */
struct members_sent {
    struct generation generation;
    struct sent_list to_chief;  /* all slots, in their order */
    struct sent_list to_others; /* the chief, then the servers */
    struct sent_hello *hellos;  /* [tasks]: of each slot's task, when it was last sent to */
};

/* Begins again for another generation; nothing for the present one. Numbers of lists differ between
 * the starts of the coordinator (`start`): changes to a list are none to that of the same
 * generation that a task has from an earlier start. False: no memory, and the next messages are
 * whole. */
bool members_sent_begin(
    struct members_sent *sent, const struct core_job_view *view, uint64_t start);
void members_sent_free(struct members_sent *sent);

/* Whether the slot's task has said hello since it was last sent to, and needs the whole list. Notes
 * that it is sent to now. */
bool members_sent_again(struct members_sent *sent, const struct core_task_view *task);

/* Compares the present list with the last one, and keeps it: `ret_changed`[count] receives what
 * differs, in its order. Returns how many; the list has a new number unless it is 0. */
size_t members_sent_compare(
    struct sent_list *list, const struct task_member *members, struct task_member *ret_changed);

/* For the simulator: whether these are the list's members, apart from their addresses. */
bool members_sent_holds(
    const struct sent_list *list, const struct task_member *members, size_t count);

#endif
