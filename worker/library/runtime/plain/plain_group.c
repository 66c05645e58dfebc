/* SPDX-License-Identifier: Apache-2.0
 * Groups of a plain program's tasks: made by a collective of those that they are made of, found
 * again by their handles, closed. The program calls it (cadre/plain_group.h).
 *
 *     color and key of each ─▶ all: the own group's members, in order ─▶ its key, of the other's
 *                                                                        └▶ its mesh is formed */
#include "worker/library/runtime/plain/plain_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/plain/plain.h"

#define WHICH_GROUP 1

/* What a task says about itself when groups are made. */
struct choice {
    uint32_t color;
    uint32_t key;
    uint32_t rank; /* in the group that is divided; set by the receiver */
};

/* --- calls --- */

cadre_status plain_enter_all(
    const char *function, struct cadre_plain_group **ret_group, struct cadre_error *error)
{
    struct plain *plain = NULL;
    CADRE_TRY(plain_enter(function, &plain, error));
    *ret_group = &plain->all;
    return CADRE_OK;
}

/* NULL: no such group is open. The memory at `handle` is not read. */
static struct cadre_plain_group *groups_find(
    const struct plain *plain, const cadre_plain_group *handle)
{
    struct cadre_plain_group *group = plain->groups;
    while (group != NULL && group != handle) {
        group = group->next;
    }
    return group;
}

cadre_status plain_enter_group(const char *function, const cadre_plain_group *handle,
    struct cadre_plain_group **ret_group, struct cadre_error *error)
{
    struct plain *plain = NULL;
    CADRE_TRY(argument_require(handle, function, "group", error));
    CADRE_TRY(plain_enter(function, &plain, error));
    struct cadre_plain_group *group = groups_find(plain, handle);
    if (group == NULL) {
        plain_leave(plain);
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with a group that is not open; make one by cadre_plain_split", function);
    }
    *ret_group = group;
    return CADRE_OK;
}

cadre_status plain_group_barrier(
    struct cadre_plain_group *group, uint64_t key, const char *text, struct cadre_error *error)
{
    const struct mesh_note note = {.key = key, .text = text};
    return plain_end_collective(
        group->plain, group->mesh->ops->barrier(group->mesh, 0, &note, error), error);
}

cadre_status plain_name_wait(const char *call, cadre_status status, struct cadre_error *error)
{
    return status != CADRE_DEADLINE_EXCEEDED
               ? status
               : cadre_error_wrap(error, status,
                     "%s and waited longer than CADRE_COLLECTIVE_TIMEOUT_S; the task that did not "
                     "come may wait in another call, of another group or a message",
                     call);
}

cadre_status plain_refuse(
    const struct plain *plain, struct mesh *mesh, const char *function, struct cadre_error *error)
{
    char text[MESH_NOTE_BYTES];
    snprintf(text, sizeof text, "task %u calls %s with an argument that is refused",
        plain->roster.rank, function);
    const struct mesh_note note = {.key = collective_key_text(0, "refused"), .text = text};
    return mesh->ops->barrier(mesh, 0, &note, error);
}

void plain_group_refuse(struct cadre_plain_group *group, const char *function)
{
    struct cadre_error ignored;
    (void)plain_end_collective(
        group->plain, plain_refuse(group->plain, group->mesh, function, &ignored), &ignored);
}

/* --- lifetime --- */

void plain_group_take_all(struct plain *plain, struct mesh *mesh)
{
    plain->all = (struct cadre_plain_group){.plain = plain,
        .mesh = mesh,
        .rank = plain->roster.rank,
        .size = plain->roster.member_count,
        .members = plain->roster.members};
    memcpy(plain->all.key, plain->roster.key, sizeof plain->all.key);
}

static void group_free(struct cadre_plain_group *group)
{
    plain_pairs_close(group);
    plain_mesh_close(group->plain, group->mesh);
    explicit_bzero(group->key, sizeof group->key);
    free(group->numbers);
    free((void *)(uintptr_t)group->members);
    free(group);
}

static void groups_remove(struct plain *plain, const struct cadre_plain_group *group)
{
    struct cadre_plain_group **at = &plain->groups;
    while (*at != group) {
        CADRE_ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = group->next;
}

void plain_groups_close(struct plain *plain)
{
    while (plain->groups != NULL) {
        struct cadre_plain_group *group = plain->groups;
        groups_remove(plain, group);
        group_free(group);
    }
    plain_pairs_close(&plain->all);
    plain_mesh_close(plain, plain->all.mesh);
    plain->all.mesh = NULL;
}

/* --- making one --- */

static int compare_choices(const void *left, const void *right)
{
    const struct choice *a = left;
    const struct choice *b = right;
    uint32_t a_key = a->key != b->key ? a->key : a->rank;
    uint32_t b_key = a->key != b->key ? b->key : b->rank;
    return (a_key > b_key) - (a_key < b_key);
}

/* Keeps those of the own color, in the order of their ranks in the new group; returns how many. */
static uint32_t sort_choices(struct choice *choices, uint32_t count, uint32_t color)
{
    uint32_t kept = 0;
    for (uint32_t rank = 0; rank < count; rank++) {
        if (choices[rank].color == color) {
            choices[kept] = choices[rank];
            choices[kept].rank = rank;
            kept++;
        }
    }
    qsort(choices, kept, sizeof *choices, compare_choices);
    return kept;
}

static void take_members(struct cadre_plain_group *group, const struct cadre_plain_group *parent,
    struct mesh_member *members, const struct choice *choices, uint32_t count)
{
    group->size = count;
    group->members = members;
    for (uint32_t rank = 0; rank < count; rank++) {
        uint32_t before = choices[rank].rank;
        members[rank] = parent->members[before];
        group->numbers[rank] = plain_group_number(parent, before);
        group->rank = before == parent->rank ? rank : group->rank;
    }
}

static cadre_status form(struct cadre_plain_group *group, const struct cadre_plain_group *parent,
    uint32_t color, struct cadre_error *error)
{
    struct plain *plain = group->plain;
    const struct membership membership = {.environment = plain->environment};
    const struct plain_mesh_of of = {.members = group->members,
        .numbers = group->numbers,
        .count = group->size,
        .rank = group->rank,
        .key = parent->key,
        .which = {WHICH_GROUP, parent->splits, color}};
    CADRE_TRY(plain_mesh_post(plain, &of, group->key, &group->mesh, error));
    return membership_wait(&membership, group->mesh, error);
}

/* Room for a group of at most the tasks of `parent`. */
static cadre_status group_new(const struct cadre_plain_group *parent,
    struct cadre_plain_group **ret_group, struct mesh_member **ret_members,
    struct choice **ret_choices, struct cadre_error *error)
{
    *ret_group = calloc(1, sizeof **ret_group);
    *ret_members = calloc(parent->size, sizeof **ret_members);
    *ret_choices = calloc(parent->size, sizeof **ret_choices);
    if (*ret_group != NULL) {
        (*ret_group)->plain = parent->plain;
        (*ret_group)->numbers = calloc(parent->size, sizeof *(*ret_group)->numbers);
        (*ret_group)->members = *ret_members;
    }
    return *ret_group != NULL && (*ret_group)->numbers != NULL && *ret_members != NULL &&
                   *ret_choices != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                     "no memory for a group of %u tasks", parent->size);
}

static cadre_status exchange_choices(struct cadre_plain_group *parent, const struct choice *own,
    struct choice *choices, struct cadre_error *error)
{
    char text[MESH_NOTE_BYTES];
    snprintf(text, sizeof text, "task %u calls cadre_plain_split", parent->plain->roster.rank);
    const struct mesh_note note = {.key = collective_key_text(0, "split"), .text = text};
    return plain_name_wait(text,
        parent->mesh->ops->all_gather(
            parent->mesh, 0, own, sizeof *own, NULL, choices, &note, error),
        error);
}

/* On success of all but a task without a group, `group` is in the list. */
static cadre_status divide(struct cadre_plain_group *parent, struct cadre_plain_group *group,
    struct mesh_member *members, struct choice *choices, const struct choice *own,
    struct cadre_error *error)
{
    struct plain *plain = parent->plain;
    CADRE_TRY(plain_end_collective(plain, exchange_choices(parent, own, choices, error), error));
    parent->splits++;
    if (own->color == CADRE_PLAIN_NO_GROUP) {
        return CADRE_OK;
    }
    uint32_t count = sort_choices(choices, parent->size, own->color);
    CADRE_ASSERT(count > 0);
    take_members(group, parent, members, choices, count);
    return plain_end_collective(plain, form(group, parent, own->color, error), error);
}

static cadre_status make(struct cadre_plain_group *parent, const struct choice *own,
    cadre_plain_group **ret_group, struct cadre_error *error)
{
    struct plain *plain = parent->plain;
    struct cadre_plain_group *group = NULL;
    struct mesh_member *members = NULL;
    CADRE_FREE_AT_EXIT struct choice *choices = NULL;
    cadre_status status = group_new(parent, &group, &members, &choices, error);
    if (status != CADRE_OK) {
        plain_group_refuse(parent, "cadre_plain_split");
    } else {
        status = divide(parent, group, members, choices, own, error);
    }
    if (status == CADRE_OK && own->color != CADRE_PLAIN_NO_GROUP) {
        group->next = plain->groups;
        plain->groups = group;
        *ret_group = group;
    } else if (group != NULL) {
        group_free(group);
    } else {
        free(members);
    }
    return status;
}

/* --- public --- */

static cadre_status split(cadre_status entered, struct cadre_plain_group *parent,
    const char *function, const struct choice *own, cadre_plain_group **ret_group,
    struct cadre_error *error)
{
    CADRE_TRY(entered);
    cadre_status status = argument_require(ret_group, function, "ret_group", error);
    if (status == CADRE_OK) {
        *ret_group = NULL;
        status = make(parent, own, ret_group, error);
    } else {
        plain_group_refuse(parent, function);
    }
    plain_leave(parent->plain);
    return status;
}

cadre_status cadre_plain_split(uint32_t color, uint32_t key, cadre_plain_group **ret_group)
{
    struct cadre_error error = {0};
    struct cadre_plain_group *all = NULL;
    const struct choice own = {.color = color, .key = key};
    cadre_status status = plain_enter_all(__func__, &all, &error);
    return api_return(split(status, all, __func__, &own, ret_group, &error), &error);
}

cadre_status cadre_plain_group_split(
    cadre_plain_group *group, uint32_t color, uint32_t key, cadre_plain_group **ret_group)
{
    struct cadre_error error = {0};
    struct cadre_plain_group *parent = NULL;
    const struct choice own = {.color = color, .key = key};
    cadre_status status = plain_enter_group(__func__, group, &parent, &error);
    return api_return(split(status, parent, __func__, &own, ret_group, &error), &error);
}

static const struct cadre_plain_group *look(const char *function, const cadre_plain_group *handle)
{
    struct cadre_error error = {0};
    struct cadre_plain_group *group = NULL;
    cadre_status status = plain_enter_group(function, handle, &group, &error);
    if (status != CADRE_OK) {
        api_return(status, &error);
        return NULL;
    }
    plain_leave(group->plain);
    return group;
}

uint32_t cadre_plain_group_rank(const cadre_plain_group *group)
{
    const struct cadre_plain_group *found = look(__func__, group);
    return found != NULL ? found->rank : 0;
}

uint32_t cadre_plain_group_size(const cadre_plain_group *group)
{
    const struct cadre_plain_group *found = look(__func__, group);
    return found != NULL ? found->size : 0;
}

void cadre_plain_group_close(cadre_plain_group *group)
{
    struct cadre_error error = {0};
    struct plain *plain = NULL;
    if (group == NULL || plain_enter_last(__func__, &plain, &error) != CADRE_OK) {
        return;
    }
    struct cadre_plain_group *found = groups_find(plain, group);
    if (found != NULL) {
        groups_remove(plain, found);
        group_free(found);
    }
    plain_leave(plain);
}
