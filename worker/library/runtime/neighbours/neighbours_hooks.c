/* SPDX-License-Identifier: Apache-2.0
 * Which tasks are neighbours: each sends where it is asked in its status, and each finds those of
 * the generation in the statuses of all. The strategy's hooks call it. */
#include "worker/library/runtime/neighbours/neighbours_hooks.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/neighbours/neighbours.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/regroup/member_status.h"
#include "worker/library/runtime/strategy/strategy.h"

struct neighbours_part {
    struct neighbours *neighbours; /* NULL: not opened, or it could not be */
    bool tried;
    char address[LIMIT_ADDRESS_BYTES]; /* "": this task is not asked */
};

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    strategy->neighbours = calloc(1, sizeof *strategy->neighbours);
    return strategy->neighbours != NULL ? CADRE_OK
                                        : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                              "no memory to ask other tasks for objects");
}

static void close_part(cadre_strategy *strategy)
{
    if (strategy->neighbours != NULL) {
        neighbours_close(strategy->neighbours->neighbours);
        strategy->neighbours->neighbours = NULL;
    }
}

static void free_part(cadre_strategy *strategy)
{
    free(strategy->neighbours);
    strategy->neighbours = NULL;
}

/* Behind the mesh's listener, which comes first where the ports of tasks are few. */
static void neighbours_listen(const cadre_strategy *strategy)
{
    struct neighbours_part *part = strategy->neighbours;
    const struct environment *environment = strategy->environment;
    struct cadre_error error = {0};
    if (part->tried || strategy->listener == NULL || !environment->object_neighbours) {
        return;
    }
    part->tried = true;
    if (neighbours_open(environment->mesh_host, &environment->mesh_ports, &part->neighbours,
            part->address, &error) != CADRE_OK) {
        part->address[0] = '\0';
        show_warning("this task reads all that it needs of objects from the store, and gives "
                     "nothing of it to other tasks: %s",
            error.text);
    }
}

static void neighbours_fill_status(
    const cadre_strategy *strategy, struct member_status *member_status)
{
    _Static_assert(sizeof member_status->neighbour == sizeof strategy->neighbours->address,
        "an address as text");
    neighbours_listen(strategy);
    memcpy(
        member_status->neighbour, strategy->neighbours->address, sizeof member_status->neighbour);
}

static const char *address_of(const struct member_status *member_status)
{
    const char *address = (const char *)member_status->neighbour;
    bool ends = memchr(address, '\0', sizeof member_status->neighbour) != NULL;
    return ends ? address : "";
}

static void neighbours_members(
    cadre_strategy *strategy, const struct member_status *statuses, uint32_t count)
{
    const struct task_roster *roster = &strategy->roster;
    struct neighbours *neighbours = strategy->neighbours->neighbours;
    struct cadre_error error = {0};
    uint32_t found = 0;
    if (neighbours == NULL) {
        return;
    }
    CADRE_ASSERT(roster->slots != NULL && count == roster->member_count);
    struct neighbour_member *members = calloc((size_t)count + 1, sizeof members[0]);
    for (uint32_t i = 0; members != NULL && i < count; i++) {
        if (address_of(&statuses[i])[0] != '\0') {
            members[found++] = (struct neighbour_member){
                .id = roster->slots[i], .address = address_of(&statuses[i])};
        }
    }
    if (members == NULL || neighbours_set(neighbours, roster->generation, roster->key, members,
                               found, roster->slots[roster->rank], &error) != CADRE_OK) {
        show_warning("this task reads what it needs of objects from the store: %s",
            members != NULL ? error.text : "no memory for the list of other tasks");
    }
    free(members);
}

const struct strategy_hooks neighbours_hooks = {
    .name = "neighbours",
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .fill_status = neighbours_fill_status,
    .members = neighbours_members,
};
