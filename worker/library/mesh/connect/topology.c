/* SPDX-License-Identifier: Apache-2.0
 * Grouping the roster by host: a pure function that host.c calls once per mesh. */
#include "worker/library/mesh/connect/topology.h"

#include <stdlib.h>
#include <string.h>

/* A member before it is assigned to a host. */
struct entry {
    const char *address;
    size_t host_bytes; /* of the address, up to the port's colon */
    bool shares;       /* has a token */
    uint32_t rank;
};

static struct entry entry_of(const struct mesh_member *member, uint32_t rank)
{
    const char *colon = strrchr(member->address, ':');
    return (struct entry){
        .address = member->address,
        .host_bytes = colon != NULL ? (size_t)(colon - member->address) : 0,
        .shares = colon != NULL && strchr(colon, '/') != NULL,
        .rank = rank,
    };
}

/* 0 when two tasks share a host. */
static int compare_hosts(const struct entry *a, const struct entry *b)
{
    if (a->shares != b->shares) {
        return a->shares ? -1 : 1;
    }
    if (!a->shares) {
        return (a->rank > b->rank) - (a->rank < b->rank);
    }
    if (a->host_bytes != b->host_bytes) {
        return a->host_bytes < b->host_bytes ? -1 : 1;
    }
    return memcmp(a->address, b->address, a->host_bytes);
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    int order = compare_hosts(a, b);
    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Gives each rank the lowest rank of its host. */
static void find_leads(struct entry *entries, uint32_t count, uint32_t *ret_leads)
{
    qsort(entries, count, sizeof *entries, compare_entries);
    uint32_t lead = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || compare_hosts(&entries[i - 1], &entries[i]) != 0) {
            lead = entries[i].rank;
        }
        ret_leads[entries[i].rank] = lead;
    }
}

/* Counts hosts, tasks and slots; task_hosts comes in as each rank's lead and goes out as its host.
 */
static void count_hosts(struct topology *topology, const struct mesh_member *members)
{
    for (uint32_t rank = 0; rank < topology->task_count; rank++) {
        uint32_t lead = topology->task_hosts[rank];
        /* The lead is the lowest rank, so it has its number already. */
        uint32_t number = lead == rank ? topology->host_count++ : topology->task_hosts[lead];
        struct topology_host *host = &topology->hosts[number];
        if (lead == rank) {
            host->lead = rank;
        }
        topology->task_hosts[rank] = number;
        topology->task_slots[rank] = host->slot_count;
        host->task_count++;
        host->slot_count += members[rank].replicas;
    }
    for (uint32_t i = 1; i < topology->host_count; i++) {
        struct topology_host *host = &topology->hosts[i];
        host->first_task = host[-1].first_task + host[-1].task_count;
        host->first_slot = host[-1].first_slot + host[-1].slot_count;
    }
}

/* Fills in the host and slot of every task and replica. */
static void fill_hosts(
    struct topology *topology, const struct mesh_member *members, uint32_t *task_cursors)
{
    uint32_t replica = 0;
    for (uint32_t rank = 0; rank < topology->task_count; rank++) {
        uint32_t number = topology->task_hosts[rank];
        const struct topology_host *host = &topology->hosts[number];
        topology->tasks[host->first_task + task_cursors[number]++] = rank;
        for (uint32_t i = 0; i < members[rank].replicas; i++, replica++) {
            uint32_t slot = topology->task_slots[rank] + i;
            topology->replicas[host->first_slot + slot] = replica;
            topology->locations[replica] = (struct topology_location){.host = number, .slot = slot};
        }
    }
}

cadre_status mesh_topology_make(struct topology *ret_topology, const struct mesh_member *members,
    uint32_t member_count, struct cadre_error *error)
{
    struct topology *topology = ret_topology;
    *topology = (struct topology){.task_count = member_count};
    for (uint32_t rank = 0; rank < member_count; rank++) {
        topology->replica_count += members[rank].replicas;
    }
    struct entry *entries = calloc(member_count, sizeof *entries);
    uint32_t *cursors = calloc(member_count, sizeof *cursors);
    topology->hosts = calloc(member_count, sizeof *topology->hosts);
    topology->tasks = calloc(member_count, sizeof *topology->tasks);
    topology->task_hosts = calloc(member_count, sizeof *topology->task_hosts);
    topology->task_slots = calloc(member_count, sizeof *topology->task_slots);
    topology->replicas = calloc(topology->replica_count, sizeof *topology->replicas);
    topology->locations = calloc(topology->replica_count, sizeof *topology->locations);
    bool good = entries != NULL && cursors != NULL && topology->hosts != NULL &&
                topology->tasks != NULL && topology->task_hosts != NULL &&
                topology->task_slots != NULL && topology->replicas != NULL &&
                topology->locations != NULL;
    if (good) {
        for (uint32_t rank = 0; rank < member_count; rank++) {
            entries[rank] = entry_of(&members[rank], rank);
        }
        find_leads(entries, member_count, topology->task_hosts);
        count_hosts(topology, members);
        fill_hosts(topology, members, cursors);
    }
    free(entries);
    free(cursors);
    if (!good) {
        mesh_topology_finish(topology);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the topology of %u tasks", (unsigned)member_count);
    }
    return CADRE_OK;
}

void mesh_topology_finish(struct topology *topology)
{
    free(topology->hosts);
    free(topology->tasks);
    free(topology->task_hosts);
    free(topology->task_slots);
    free(topology->replicas);
    free(topology->locations);
    *topology = (struct topology){.host_count = 0};
}

enum topology_connection mesh_topology_connection(
    const struct topology *topology, uint32_t a, uint32_t b)
{
    if (topology->task_hosts[a] == topology->task_hosts[b]) {
        return a == b ? TOPOLOGY_UNCONNECTED : TOPOLOGY_LINK;
    }
    bool leads = mesh_topology_is_lead(topology, a) && mesh_topology_is_lead(topology, b);
    return leads ? TOPOLOGY_WIRE : TOPOLOGY_UNCONNECTED;
}
