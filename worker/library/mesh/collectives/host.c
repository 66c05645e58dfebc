/* SPDX-License-Identifier: Apache-2.0
 * The host mesh's table of functions, and the lifetime of one mesh: it checks the configuration,
 * makes topology, links, page and wire, polls the forming, and ends all of them. The worker's
 * library calls it through mesh_host_ops. */
#include "worker/library/mesh/wire/host.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "worker/library/mesh/collectives/collective.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/collectives/form.h"
#include "worker/library/mesh/wire/wire_state.h"

static void host_close(struct mesh *mesh);

static cadre_status host_check(const struct mesh_config *config, struct cadre_error *error)
{
    if (config->member_count == 0 || config->member_count > MESH_MEMBERS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a mesh of %" PRIu32 " tasks; 1 to %d are possible", config->member_count,
            MESH_MEMBERS_MAX);
    }
    if (config->rank >= config->member_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "rank %" PRIu32 " in a mesh of %" PRIu32 " tasks", config->rank, config->member_count);
    }
    if (config->member_count > 1 && config->listener == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a mesh of %" PRIu32 " tasks needs a listener; open one with mesh_listener_open",
            config->member_count);
    }
    uint64_t replicas = 0;
    for (uint32_t rank = 0; rank < config->member_count; rank++) {
        if (config->members[rank].replicas == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the task of rank %" PRIu32 " has no replica; each needs at least one", rank);
        }
        replicas += config->members[rank].replicas;
    }
    if (replicas > MESH_REPLICAS_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "a mesh of %" PRIu64 " replicas; at most %u are possible", replicas, MESH_REPLICAS_MAX);
    }
    return CADRE_OK;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a mesh");
}

/* Copies the roster and numbers the replicas. */
static cadre_status take_roster(
    struct host_mesh *host, const struct mesh_config *config, struct cadre_error *error)
{
    uint32_t tasks = config->member_count;
    host->members = calloc(tasks, sizeof *host->members);
    host->firsts = calloc(tasks + 1, sizeof *host->firsts);
    host->numbers = calloc(tasks, sizeof *host->numbers);
    if (host->members == NULL || host->firsts == NULL || host->numbers == NULL) {
        return no_memory(error);
    }
    memcpy(host->members, config->members, tasks * sizeof *host->members);
    host->roster = prng_mix(tasks);
    for (uint32_t rank = 0; rank < tasks; rank++) {
        host->members[rank].address[MESH_ADDRESS_BYTES - 1] = '\0';
        host->numbers[rank] = config->numbers != NULL ? config->numbers[rank] : rank;
        host->firsts[rank + 1] = host->firsts[rank] + host->members[rank].replicas;
    }
    CADRE_TRY(mesh_topology_make(&host->topology, host->members, tasks, error));
    /* All must derive the same connections and the same order of sums. */
    for (uint32_t rank = 0; rank < tasks; rank++) {
        uint64_t host_bits = (uint64_t)host->topology.task_hosts[rank] << 32;
        host->roster = prng_mix(host->roster ^ host->members[rank].replicas ^ host_bits);
    }
    host->task_count = tasks;
    host->rank = config->rank;
    host->replica_count = host->firsts[tasks];
    host->first_replica = host->firsts[host->rank];
    host->local_count = host_replicas_of(host, host->rank);
    return CADRE_OK;
}

static cadre_status host_build(
    struct host_mesh *host, const struct mesh_config *config, struct cadre_error *error)
{
    CADRE_TRY(mesh_fault_open(&host->fault, error));
    CADRE_TRY(take_roster(host, config, error));
    uint32_t own = host->topology.task_hosts[host->rank];
    CADRE_TRY(mesh_links_open(&host->links, mesh_topology_tasks(&host->topology, own),
        host->topology.hosts[own].task_count, host->rank, error));
    if (host->topology.host_count > 1 && mesh_topology_is_lead(&host->topology, host->rank)) {
        CADRE_TRY(mesh_wire_open(host, error));
    }
    CADRE_TRY(mesh_share_open(host, error));
    if (host->task_count > 1) {
        CADRE_TRY(mesh_form_open(host, error));
    }
    return CADRE_OK;
}

static cadre_status host_form_post(
    const struct mesh_config *config, struct mesh **ret_mesh, struct cadre_error *error)
{
    *ret_mesh = NULL;
    CADRE_TRY(host_check(config, error));
    struct host_mesh *host = calloc(1, sizeof *host);
    if (host == NULL) {
        return no_memory(error);
    }
    host->mesh.ops = &mesh_host_ops;
    host->fault.event_fd = -1;
    host->generation = config->generation;
    host->nonce = config->nonce;
    host->listener = config->listener;
    host->form_deadline_us = config->form_deadline_us;
    host->timeout_us = config->collective_timeout_us;
    host->stalled = config->stalled;
    host->stalled_user = config->stalled_user;
    memcpy(host->key, config->key, sizeof host->key);
    cadre_status status = host_build(host, config, error);
    if (status != CADRE_OK) {
        host_close(&host->mesh);
        return cadre_error_wrap(
            error, status, "form the mesh of generation %" PRIu64, config->generation);
    }
    *ret_mesh = &host->mesh;
    return CADRE_OK;
}

static cadre_status host_form_test(struct mesh *mesh, struct cadre_error *error)
{
    struct host_mesh *host = host_of(mesh);
    bool formed = atomic_load(&host->formed);
    cadre_status status = mesh_fault_raised(host) ? CADRE_ABORTED : CADRE_OK;
    if (status == CADRE_OK && !formed && host->task_count > 1) {
        status = mesh_form_step(host);
        if (status == CADRE_OK) {
            status = mesh_share_take(host);
        }
    }
    if (status == CADRE_OK) {
        atomic_store(&host->formed, true);
    } else if (status != CADRE_PENDING) {
        if (!formed && host->task_count > 1) {
            mesh_watch_close(host); /* it runs when only the memory was missing */
            mesh_fault_close_streams(host);
            mesh_form_drop(host);
        }
        return mesh_fault_error(host, true, error);
    }
    return status;
}

uint32_t mesh_host_rank_of(const struct host_mesh *host, uint32_t replica)
{
    uint32_t low = 0;
    uint32_t high = host->task_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (host->firsts[middle] <= replica) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static int host_form_fd(struct mesh *mesh)
{
    struct host_mesh *host = host_of(mesh);
    return host->forming != NULL ? mesh_form_watch_fd(host) : -1;
}

static uint32_t host_form_missing(const struct mesh *mesh)
{
    return mesh_form_missing((const struct host_mesh *)mesh);
}

static void host_abort(struct mesh *mesh, const char *reason)
{
    mesh_fault_raise(
        host_of(mesh), CADRE_ABORTED, "%s", reason != NULL ? reason : "it was aborted");
}

static void host_close(struct mesh *mesh)
{
    if (mesh == NULL) {
        return;
    }
    struct host_mesh *host = host_of(mesh);
    mesh_watch_close(host);
    if (atomic_load(&host->formed) && !mesh_fault_raised(host)) {
        mesh_watch_announce_end(host, CADRE_OK, NULL);
        group_leave(&host->group, host->topology.task_slots[host->rank], host->local_count);
    }
    mesh_form_close(host->forming);
    mesh_wire_close(host->wire);
    mesh_share_close(host);
    mesh_fault_close(&host->fault);
    mesh_links_close(&host->links);
    mesh_topology_finish(&host->topology);
    free(host->numbers);
    free(host->firsts);
    free(host->members);
    OPENSSL_cleanse(host->key, sizeof host->key);
    free(host);
}

const struct mesh_ops mesh_host_ops = {
    .name = "host",
    .form_post = host_form_post,
    .form_test = host_form_test,
    .form_fd = host_form_fd,
    .form_missing = host_form_missing,
    .all_reduce = host_all_reduce,
    .reduce_scatter = host_reduce_scatter,
    .broadcast = host_broadcast,
    .all_gather = host_all_gather,
    .barrier = host_barrier,
    .abort = host_abort,
    .close = host_close,
};
