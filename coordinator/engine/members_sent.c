/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/members_sent.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

#define LISTS_BITS 32 /* lists of one start have so many bits of a number */

struct sent_member {
    uint64_t incarnation;
    uint32_t attempts;
    bool here;
    struct task_backed backed;
    char address[LIMIT_ADDRESS_BYTES];
};

struct sent_hello {
    uint64_t incarnation;
    uint32_t hellos;
};

void members_sent_free(struct members_sent *sent)
{
    free(sent->to_chief.members);
    free(sent->to_others.members);
    free(sent->hellos);
    *sent = (struct members_sent){0};
}

bool members_sent_begin(struct members_sent *sent, const struct core_job_view *view, uint64_t start)
{
    if (sent->hellos != NULL && generation_equal(sent->generation, view->generation)) {
        return true;
    }
    members_sent_free(sent);
    sent->generation = view->generation;
    sent->to_chief.number = start << LISTS_BITS;
    sent->to_others.number = start << LISTS_BITS;
    sent->to_chief.count = view->tasks;
    sent->to_others.count = 1 + (size_t)view->ps_job.servers;
    sent->to_chief.members = calloc(sent->to_chief.count, sizeof *sent->to_chief.members);
    sent->to_others.members = calloc(sent->to_others.count, sizeof *sent->to_others.members);
    sent->hellos = calloc(view->tasks, sizeof *sent->hellos);
    if (sent->to_chief.members == NULL || sent->to_others.members == NULL || sent->hellos == NULL) {
        members_sent_free(sent);
        return false;
    }
    return true;
}

bool members_sent_again(struct members_sent *sent, const struct core_task_view *task)
{
    struct sent_hello *last = &sent->hellos[task->slot];
    bool again = last->incarnation != task->incarnation || last->hellos != task->hellos;
    *last = (struct sent_hello){.incarnation = task->incarnation, .hellos = task->hellos};
    return again;
}

static bool is_same(const struct sent_member *sent, const struct task_member *member)
{
    return sent->incarnation == member->incarnation && sent->attempts == member->attempts &&
           sent->here == member->here && sent->backed.number == member->backed.number &&
           sent->backed.by == member->backed.by;
}

size_t members_sent_compare(
    struct sent_list *list, const struct task_member *members, struct task_member *ret_changed)
{
    size_t changed = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct sent_member *sent = &list->members[i];
        if (is_same(sent, &members[i]) && strcmp(sent->address, members[i].address) == 0) {
            continue;
        }
        size_t length = strnlen(members[i].address, LIMIT_ADDRESS_BYTES - 1);
        *sent = (struct sent_member){.incarnation = members[i].incarnation,
            .attempts = members[i].attempts,
            .here = members[i].here,
            .backed = members[i].backed};
        memcpy(sent->address, members[i].address, length);
        ret_changed[changed++] = members[i];
    }
    list->number += changed > 0 ? 1 : 0;
    CADRE_ASSERT(changed <= list->count);
    return changed;
}

bool members_sent_holds(
    const struct sent_list *list, const struct task_member *members, size_t count)
{
    bool holds = count == list->count;
    for (size_t i = 0; holds && i < count; i++) {
        holds = is_same(&list->members[i], &members[i]);
    }
    return holds;
}
