/* SPDX-License-Identifier: Apache-2.0
 * The lifetime of a wire, and its schedule of recursive doubling. host.c opens it for a lead task,
 * and closes it. */
#include "worker/library/mesh/wire/wire.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/library/mesh/connect/address.h"
#include "worker/library/mesh/wire/wire_state.h"

#define SPIN_US     UINT64_C(50)
#define LEVELS_MAX  20 /* of the tree over the most hosts there can be */
#define SMALL_BYTES ((size_t)32 << 10)
/* Between two hosts one exchange of all data moves no more than two rounds of halves; between few,
 * not much more, and in fewer messages. */
#define FEW_HOSTS          4
#define SMALL_BYTES_OF_FEW ((size_t)128 << 10)

size_t mesh_wire_small_bytes(const struct host_mesh *host)
{
    return host->topology.host_count <= FEW_HOSTS ? SMALL_BYTES_OF_FEW : SMALL_BYTES;
}

/* The relays of a sibling block of `size` hosts, fewer than the `width` of the own one: the host at
 * offset o < size has it first; then each host under size * 2^t sends it to the host that is so
 * much further. */
static void plan_relays(struct wire *wire, struct wire_step *step, uint32_t size, uint32_t offset)
{
    uint32_t width = step->own_end - step->own_first;
    uint32_t reach = size;
    while (reach <= offset) {
        reach *= 2;
    }
    if (offset >= size) {
        step->to = WIRE_NO_HOST;
        step->from = step->own_first + offset - reach / 2;
    }
    for (; reach + offset < width; reach *= 2) {
        wire->children[step->first_child + step->child_count++] = step->own_first + offset + reach;
    }
}

static uint32_t wire_smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void plan_steps(struct wire *wire)
{
    uint32_t next_child = 0;
    for (uint32_t width = 1; width < wire->host_count; width *= 2) {
        uint32_t own_first = wire->own & ~(width - 1);
        uint32_t sibling_first = own_first ^ width;
        if (sibling_first >= wire->host_count) {
            continue; /* without a right side the left one is the result */
        }
        uint32_t offset = wire->own - own_first;
        struct wire_step *step = &wire->steps[wire->step_count++];
        *step = (struct wire_step){
            .own_is_left = own_first < sibling_first,
            .to = sibling_first + offset,
            .from = sibling_first + offset,
            .first_child = next_child,
            .own_first = own_first,
            .own_end = wire_smaller(own_first + width, wire->host_count),
            .sibling_first = sibling_first,
            .sibling_end = wire_smaller(sibling_first + width, wire->host_count),
        };
        uint32_t size = step->sibling_end - step->sibling_first;
        if (step->own_is_left && size < width) {
            plan_relays(wire, step, size, offset);
        }
        next_child += step->child_count;
    }
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for the connections between hosts");
}

/* Spinning pays only while every thread of this machine can have a CPU of its own. Hosts at
 * loopback addresses are all on this machine. */
static uint64_t choose_spin(const struct host_mesh *host)
{
    const struct topology *topology = &host->topology;
    const struct topology_host *own = &topology->hosts[topology->task_hosts[host->rank]];
    struct mesh_sockaddr address;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 0;
    }
    bool loopback =
        mesh_address_parse(host->members[own->lead].address, &address, NULL) == CADRE_OK &&
        mesh_address_is_loopback(&address);
    uint32_t threads = loopback ? topology->replica_count : own->slot_count;
    return threads <= (uint32_t)CPU_COUNT(&set) ? SPIN_US : 0;
}

cadre_status mesh_wire_open(struct host_mesh *host, struct cadre_error *error)
{
    uint32_t hosts = host->topology.host_count;
    struct wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL) {
        return no_memory(error);
    }
    host->wire = wire;
    wire->own = host->topology.task_hosts[host->rank];
    wire->spin_us = choose_spin(host);
    wire->small_bytes = mesh_wire_small_bytes(host);
    wire->peers = calloc(hosts, sizeof *wire->peers);
    if (wire->peers == NULL) {
        return no_memory(error);
    }
    wire->host_count = hosts;
    for (uint32_t i = 0; i < hosts; i++) {
        wire->peers[i] =
            (struct wire_peer){.fd = -1, .rank = host->topology.hosts[i].lead, .between = true};
    }
    wire->ends = calloc(hosts, sizeof *wire->ends);
    wire->polls = calloc(hosts + 1, sizeof *wire->polls);
    wire->polled = calloc(hosts + 1, sizeof *wire->polled);
    wire->steps = calloc(LEVELS_MAX, sizeof *wire->steps);
    wire->children = calloc((size_t)LEVELS_MAX * LEVELS_MAX, sizeof *wire->children);
    wire->inbox = malloc(WIRE_FRAME_BYTES + WIRE_RECORD_BYTES + wire->small_bytes);
    wire->outbox = malloc(wire->small_bytes);
    if (wire->ends == NULL || wire->polls == NULL || wire->polled == NULL || wire->steps == NULL ||
        wire->children == NULL || wire->inbox == NULL || wire->outbox == NULL) {
        return no_memory(error);
    }
    plan_steps(wire);
    return CADRE_OK;
}

void mesh_wire_close(struct wire *wire)
{
    if (wire == NULL) {
        return;
    }
    for (uint32_t i = 0; i < wire->host_count; i++) {
        if (wire->peers[i].fd >= 0) {
            close(wire->peers[i].fd);
        }
        free(wire->peers[i].carry);
    }
    free(wire->peers);
    free(wire->ends);
    free(wire->polls);
    free(wire->polled);
    free(wire->steps);
    free(wire->children);
    free(wire->inbox);
    free(wire->outbox);
    free(wire->arriving);
    free(wire->scratch);
    free(wire->ins);
    free(wire->lanes);
    free(wire);
}
