/* SPDX-License-Identifier: Apache-2.0
 * Opening, taking and leaving the shared memory of a host: the control page and the arenas. Called
 * by host.c at forming and closing. */
#include "worker/library/mesh/collectives/form.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/library/arena/arena.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"
#include "worker/library/mesh/wire/wire.h"

#define SLOTS_SMALL       8 /* above, a post has fewer bytes, because every slot reads all posts */
#define CHUNK_BYTES       ((size_t)128 << 10)
#define CHUNK_BYTES_MIN   ((size_t)4096)
#define STAGING_BYTES_MAX ((size_t)4 << 20) /* of all slots' chunks of one parity, about */
#define SKEW_PAGES        ((size_t)37)
#define STRIDE_BYTES      64 /* of each replica in a chunk of a reduce_scatter, at least */
#define COPY_BYTES        ((size_t)256 << 10) /* of one other slot's data: half of a small L2 */
#define COPY_BYTES_MIN    ((size_t)16 << 10)
#define COPIES_BYTES_MAX  ((size_t)768 << 10) /* of all slots' data, about */

static const struct topology_host *own_host(const struct host_mesh *host)
{
    return &host->topology.hosts[host->topology.task_hosts[host->rank]];
}

/* The same numbers in all tasks of all hosts, chosen for the host with the most slots. */
static size_t choose_sizes(struct host_mesh *host)
{
    const struct topology *topology = &host->topology;
    uint32_t most = 0;
    for (uint32_t i = 0; i < topology->host_count; i++) {
        most = topology->hosts[i].slot_count > most ? topology->hosts[i].slot_count : most;
    }
    host->lone_slots = most == 1;
    host->small_bytes = GROUP_PAYLOAD_BYTES;
    for (uint32_t slots = SLOTS_SMALL; slots < most && host->small_bytes > 64; slots *= 2) {
        host->small_bytes /= 2;
    }
    /* Sums of 16-bit types take twice the bytes between hosts. */
    if (topology->host_count > 1 && mesh_wire_small_bytes(host) / 2 < host->small_bytes) {
        host->small_bytes = mesh_wire_small_bytes(host) / 2;
    }
    size_t chunk = CHUNK_BYTES;
    while (chunk * most > STAGING_BYTES_MAX && chunk > CHUNK_BYTES_MIN) {
        chunk /= 2;
    }
    while (chunk < (size_t)host->replica_count * STRIDE_BYTES) {
        chunk *= 2;
    }
    bool staging = own_host(host)->task_count > 1 || topology->host_count > 1;
    return staging ? chunk : 0;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a mesh");
}

static cadre_status make_replicas(struct host_mesh *host, struct cadre_error *error)
{
    uint32_t slots = host->group.slot_count;
    size_t scratch_bytes = (mesh_reduce_scratch_bytes(slots) + 127) / 64 * 64;
    size_t bytes = host->local_count * sizeof *host->replicas;
    host->replicas = aligned_alloc(GROUP_CACHE_LINE_BYTES, bytes);
    if (host->replicas == NULL) {
        return no_memory(error);
    }
    for (uint32_t i = 0; i < host->local_count; i++) {
        host->replicas[i] = (struct replica){
            .host = host,
            .local = i,
            .slot = host->topology.task_slots[host->rank] + i,
            .global = host->first_replica + i,
        };
    }
    for (uint32_t i = 0; i < host->local_count; i++) {
        struct replica *replica = &host->replicas[i];
        replica->ins = calloc(slots, sizeof *replica->ins);
        replica->outs = calloc(slots, sizeof *replica->outs);
        replica->offsets = calloc((size_t)host->replica_count + 1, sizeof *replica->offsets);
        replica->rows = calloc(host->replica_count, sizeof *replica->rows);
        replica->scratch = aligned_alloc(64, scratch_bytes);
        if (replica->ins == NULL || replica->outs == NULL || replica->offsets == NULL ||
            replica->rows == NULL || replica->scratch == NULL) {
            return no_memory(error);
        }
    }
    return CADRE_OK;
}

/* With several hosts, all data pass through chunks anyway. */
static cadre_status open_attach(struct host_mesh *host, struct cadre_error *error)
{
    uint32_t slots = host->group.slot_count;
    host->attaches = calloc(slots, sizeof *host->attaches);
    host->copy_bytes = COPY_BYTES;
    while (host->copy_bytes * slots > COPIES_BYTES_MAX && host->copy_bytes > COPY_BYTES_MIN) {
        host->copy_bytes /= 2;
    }
    bool made = host->attaches != NULL;
    for (uint32_t i = 0; i < host->local_count && made; i++) {
        struct replica *replica = &host->replicas[i];
        replica->spans = calloc((size_t)slots * GROUP_SPANS_MAX, sizeof *replica->spans);
        replica->copies = aligned_alloc(ARENA_PAGE, slots * host->copy_bytes);
        replica->by_address = calloc(slots, sizeof *replica->by_address);
        made = replica->spans != NULL && replica->copies != NULL && replica->by_address != NULL;
    }
    if (!made) {
        return no_memory(error);
    }
    mesh_attach_open(&host->sentinel);
    host->links.handover.attach = (struct attach_peer){
        .pid = getpid(), .sentinel = (uintptr_t)host->sentinel.page, .value = host->sentinel.value};
    return CADRE_OK;
}

static void take_attach(struct host_mesh *host, uint32_t rank, const struct attach_peer *peer)
{
    uint32_t first = host->topology.task_slots[rank];
    for (uint32_t i = 0; i < host_replicas_of(host, rank); i++) {
        host->attaches[first + i] = *peer;
    }
    host->attachable = host->attachable && mesh_attach_probe(peer);
}

/* The arena is one more way for large data: without it they are attached to, or staged. */
static void offer_arena(struct host_mesh *host)
{
    if (arena_open(NULL) == CADRE_OK) {
        host->links.handover.arena = (struct link_memory){.fd = arena_fd(), .bytes = arena_bytes()};
    }
}

static void numa_bind_memory(struct host_mesh *host, uint32_t rank, uintptr_t base, uint64_t bytes)
{
    uint32_t first = host->topology.task_slots[rank];
    for (uint32_t i = 0; i < host_replicas_of(host, rank); i++) {
        host->memories[first + i] = (struct slab_allocator){.base = base, .bytes = bytes};
    }
}

cadre_status mesh_share_open(struct host_mesh *host, struct cadre_error *error)
{
    const struct topology_host *own = own_host(host);
    bool shared = own->task_count > 1;
    host->globals = mesh_topology_replicas(&host->topology, host->topology.task_hosts[host->rank]);
    host->memories = calloc(own->slot_count, sizeof *host->memories);
    host->views = calloc(own->task_count, sizeof *host->views);
    host->chunk_bytes = choose_sizes(host);
    if (host->memories == NULL || host->views == NULL) {
        return no_memory(error);
    }
    if (!shared || own->lead == host->rank) {
        CADRE_TRY(group_open(&host->group, own->slot_count, host->chunk_bytes, shared, error));
    }
    if (!shared) {
        numa_bind_memory(host, host->rank, 0, UINT64_MAX);
        return make_replicas(host, error);
    }
    if (own->lead == host->rank) {
        host->links.handover.page =
            (struct link_memory){.fd = host->group.fd, .bytes = host->group.bytes};
    }
    offer_arena(host);
    numa_bind_memory(host, host->rank, (uintptr_t)arena_base(), arena_bytes());
    host->group.slot_count = own->slot_count;
    CADRE_TRY(make_replicas(host, error));
    return host->topology.host_count == 1 ? open_attach(host, error) : CADRE_OK;
}

/* Arenas are mapped at the distance of one size, and buffers that are reduced together often have
 * one offset in all of them. Some processors choose the set of a cache line in their first cache by
 * a hash of its address in which such addresses are equal: each access would then evict the cache
 * line of the arena before, ten times slower. So each arena begins some pages further on. */
static void *map_apart(uint32_t rank, const struct link_memory *arena, struct arena_view *view)
{
    size_t skew = ((size_t)rank + 1) * SKEW_PAGES * ARENA_PAGE;
    if (arena->bytes > SIZE_MAX - skew) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    size_t bytes = (size_t)arena->bytes;
    uint8_t *room =
        mmap(NULL, skew + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }
    *view = (struct arena_view){.memory = room, .bytes = skew + bytes};
    return mmap(room + skew, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
        arena->fd, 0);
}

/* Maps the arena of one other task, if it gave one. */
static cadre_status take_arena(
    struct host_mesh *host, struct link *link, struct arena_view *view, struct cadre_error *error)
{
    struct link_memory arena = mesh_link_take(&link->handover.arena);
    if (arena.fd < 0) {
        return CADRE_OK;
    }
    void *memory = map_apart(link->rank, &arena, view);
    int errnum = errno;
    close(arena.fd);
    if (memory == MAP_FAILED) {
        return cadre_error_errno(error, errnum, "map the memory of the task of rank %" PRIu32,
            host_number(host, link->rank));
    }
    /* A dump would fill all holes, and a child process is not part of the mesh. */
    (void)madvise(memory, (size_t)arena.bytes, MADV_DONTDUMP);
    (void)madvise(memory, (size_t)arena.bytes, MADV_DONTFORK);
    numa_bind_memory(host, link->rank, (uintptr_t)memory, arena.bytes);
    return CADRE_OK;
}

/* From now on the end of the mesh breaks the group too; a mesh that has ended breaks it here. */
static cadre_status share_join(struct host_mesh *host, const struct group *group)
{
    pthread_mutex_lock(&host->fault.lock);
    host->group = *group;
    bool raised = mesh_fault_raised(host);
    if (raised) {
        group_break(&host->group, host->rank, host->fault.code, host->fault.text);
    }
    pthread_mutex_unlock(&host->fault.lock);
    return raised ? CADRE_ABORTED : CADRE_OK;
}

cadre_status mesh_share_take(struct host_mesh *host)
{
    struct cadre_error error;
    const struct topology_host *own = own_host(host);
    cadre_status status = CADRE_OK;
    if (host->attaches != NULL) {
        host->attachable = true;
        take_attach(host, host->rank, &host->links.handover.attach);
        for (uint32_t i = 0; i < host->links.count; i++) {
            take_attach(host, host->links.items[i].rank, &host->links.items[i].handover.attach);
        }
    }
    for (uint32_t i = 0; i < host->links.count && status == CADRE_OK; i++) {
        status = take_arena(host, &host->links.items[i], &host->views[i], &error);
    }
    if (status == CADRE_OK && own->task_count > 1 && own->lead != host->rank) {
        struct link *lead = mesh_links_find(&host->links, own->lead);
        struct link_memory page = mesh_link_take(&lead->handover.page);
        struct group group;
        status = group_map(&group, own->slot_count, host->chunk_bytes, page.fd, &error);
        if (status == CADRE_OK) {
            return share_join(host, &group);
        }
        group_close(&group);
    }
    return status == CADRE_OK ? CADRE_OK : mesh_fault_raise(host, status, "%s", error.text);
}

void mesh_share_close(struct host_mesh *host)
{
    for (uint32_t i = 0; host->replicas != NULL && i < host->local_count; i++) {
        mesh_layout_finish(&host->replicas[i].layout);
        free(host->replicas[i].ins);
        free(host->replicas[i].outs);
        free(host->replicas[i].offsets);
        free(host->replicas[i].rows);
        mesh_layout_finish(&host->replicas[i].wide);
        free(host->replicas[i].scratch);
        free(host->replicas[i].by_address);
        free(host->replicas[i].spans);
        free(host->replicas[i].copies);
    }
    for (uint32_t i = 0; host->views != NULL && i < host->links.count; i++) {
        if (host->views[i].memory != NULL) {
            munmap(host->views[i].memory, host->views[i].bytes);
        }
    }
    mesh_attach_close(&host->sentinel);
    group_close(&host->group);
    free(host->attaches);
    free(host->replicas);
    free(host->views);
    free(host->memories);
}
