/* SPDX-License-Identifier: Apache-2.0
 * A fake plugin for devices, for tests of the mesh alone: memory of the host, a thread for each
 * stream, communicators within one process. It knows nothing of CUDA or NCCL. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "tests/gpu/mesh/fake.h"
#include "worker/device/device_ops.h"
#include "worker/mesh/reduce_kernels.h"

#define FAKE_DEVICES 16u
#define OPS_MAX      4096u

__attribute__((visibility("default"))) struct fake_control fake_controls;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* --- streams --- */

struct work {
    struct work *next;
    void (*run)(struct work *work);
    void *to;
    const void *from;
    size_t bytes;
    uint64_t serial;
    struct device_piece *pieces;
    size_t count;
    struct device_comm *comm;
    struct device_vector *vectors;
    uint32_t root;
    int kind;
    enum device_reduction reduction;
};

struct stream {
    uint32_t device;
    uint64_t posted;
    uint64_t done;
    struct work *first;
    struct work **end;
    struct stream *next; /* of all, so that none is lost */
};

static struct stream *all_streams;

static void *run_stream(void *argument)
{
    struct stream *stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct work *work = stream->first;
        if (work == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        work->run(work);
        pthread_mutex_lock(&lock);
        stream->first = work->next;
        if (stream->first == NULL) {
            stream->end = &stream->first;
        }
        stream->done++;
        free(work->pieces);
        free(work->vectors);
        free(work);
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static cadre_status enqueue(void *handle, struct work work)
{
    struct stream *stream = handle;
    struct work *copy = malloc(sizeof *copy);
    CADRE_ASSERT(copy != NULL);
    *copy = work;
    copy->next = NULL;
    pthread_mutex_lock(&lock);
    *stream->end = copy;
    stream->end = &copy->next;
    stream->posted++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CADRE_OK;
}

static cadre_status stream_open(
    uint32_t device, bool urgent, void **ret_stream, struct cadre_error *error)
{
    (void)urgent;
    (void)error;
    struct stream *stream = calloc(1, sizeof *stream);
    CADRE_ASSERT(stream != NULL);
    stream->device = device;
    stream->end = &stream->first;
    pthread_mutex_lock(&lock);
    stream->next = all_streams;
    all_streams = stream;
    pthread_mutex_unlock(&lock);
    pthread_t thread;
    CADRE_ASSERT(pthread_create(&thread, NULL, run_stream, stream) == 0);
    pthread_detach(thread);
    *ret_stream = stream;
    return CADRE_OK;
}

static void stream_close(void *stream)
{
    (void)stream;
}

static cadre_status broken(uint32_t device, struct cadre_error *error)
{
    return atomic_load(&fake_controls.broken_stream) == device + 1
               ? cadre_error_set(error, CADRE_INTERNAL, "fake: device %u has no stream", device)
               : CADRE_OK;
}

static cadre_status stream_test(void *handle, struct cadre_error *error)
{
    struct stream *stream = handle;
    CADRE_TRY(broken(stream->device, error));
    pthread_mutex_lock(&lock);
    bool done = stream->done == stream->posted;
    pthread_mutex_unlock(&lock);
    return done ? CADRE_OK : CADRE_PENDING;
}

struct event {
    struct event *next; /* of those that are closed: a stream may still record them */
    uint32_t device;
    uint64_t recorded;
    uint64_t done;
};

static cadre_status event_open(uint32_t device, void **ret_event, struct cadre_error *error)
{
    (void)error;
    struct event *event = calloc(1, sizeof *event);
    CADRE_ASSERT(event != NULL);
    event->device = device;
    *ret_event = event;
    return CADRE_OK;
}

static struct event *closed_events;

static void event_close(void *handle)
{
    struct event *event = handle;
    pthread_mutex_lock(&lock);
    event->next = closed_events;
    closed_events = event;
    pthread_mutex_unlock(&lock);
}

static void run_record(struct work *work)
{
    struct event *event = work->to;
    pthread_mutex_lock(&lock);
    event->done = work->serial;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static cadre_status event_record(void *handle, void *stream, struct cadre_error *error)
{
    (void)error;
    struct event *event = handle;
    pthread_mutex_lock(&lock);
    uint64_t serial = ++event->recorded;
    pthread_mutex_unlock(&lock);
    return enqueue(stream, (struct work){.run = run_record, .to = event, .serial = serial});
}

static void run_wait(struct work *work)
{
    const struct event *event = work->from;
    pthread_mutex_lock(&lock);
    while (event->done < work->serial) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static cadre_status stream_wait(void *stream, void *handle, struct cadre_error *error)
{
    (void)error;
    struct event *event = handle;
    pthread_mutex_lock(&lock);
    uint64_t serial = event->recorded;
    pthread_mutex_unlock(&lock);
    return enqueue(stream, (struct work){.run = run_wait, .from = event, .serial = serial});
}

static cadre_status event_test(void *handle, struct cadre_error *error)
{
    struct event *event = handle;
    CADRE_TRY(broken(event->device, error));
    pthread_mutex_lock(&lock);
    bool done = event->done >= event->recorded;
    pthread_mutex_unlock(&lock);
    return done ? CADRE_OK : CADRE_PENDING;
}

/* --- devices and memory --- */

static uint32_t count_devices(char ret_reason[256])
{
    ret_reason[0] = '\0';
    return FAKE_DEVICES;
}

static cadre_status describe(
    uint32_t device, struct device_info *ret_info, struct cadre_error *error)
{
    (void)error;
    *ret_info = (struct device_info){.name = "fake"};
    snprintf(ret_info->uuid, sizeof ret_info->uuid, "GPU-fake-%u", device);
    snprintf(ret_info->bus, sizeof ret_info->bus, "0000:%02x:00.0", device);
    return CADRE_OK;
}

static void describe_driver(struct device_driver *ret_driver)
{
    *ret_driver = (struct device_driver){
        .driver = "fake", .runtime = "fake", .collectives = 22809, .collectives_from = "fake"};
}

static cadre_status bind_device(uint32_t device, struct cadre_error *error)
{
    (void)device;
    (void)error;
    return CADRE_OK;
}

static cadre_status memory_get(
    uint32_t device, size_t bytes, void *stream, void **ret_memory, struct cadre_error *error)
{
    (void)device;
    (void)stream;
    if (bytes == 0 || posix_memalign(ret_memory, 256, bytes) != 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "fake: no %zu bytes", bytes);
    }
    return CADRE_OK;
}

static void run_free(struct work *work)
{
    free(work->to);
}

static void memory_give(uint32_t device, void *memory, void *stream)
{
    (void)device;
    (void)enqueue(stream, (struct work){.run = run_free, .to = memory});
}

static void *pinned_get(size_t bytes)
{
    void *memory = NULL;
    return posix_memalign(&memory, 4096, bytes) == 0 ? memory : NULL;
}

static void pinned_give(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

static void run_copy(struct work *work)
{
    memcpy(work->to, work->from, work->bytes);
}

static cadre_status copy(
    void *to, const void *from, size_t bytes, void *stream, struct cadre_error *error)
{
    (void)error;
    return enqueue(stream, (struct work){.run = run_copy, .to = to, .from = from, .bytes = bytes});
}

static void run_fill(struct work *work)
{
    memset(work->to, (int)work->count, work->bytes);
}

static cadre_status fill(
    void *to, uint8_t byte, size_t bytes, void *stream, struct cadre_error *error)
{
    (void)error;
    return enqueue(stream, (struct work){.run = run_fill, .to = to, .count = byte, .bytes = bytes});
}

static void run_pack(struct work *work)
{
    for (size_t i = 0; i < work->count; i++) {
        uint8_t *packed = (uint8_t *)work->to + work->pieces[i].offset;
        if (work->kind == 0) {
            memcpy(packed, work->pieces[i].data, work->pieces[i].bytes);
        } else {
            memcpy(work->pieces[i].data, packed, work->pieces[i].bytes);
        }
    }
}

static cadre_status move(
    const struct device_piece pieces[], size_t count, const void *packed, void *stream, int kind)
{
    struct device_piece *own = malloc(count * sizeof *own + 1);
    CADRE_ASSERT(own != NULL);
    memcpy(own, pieces, count * sizeof *own);
    atomic_fetch_add(&fake_controls.packs, 1);
    return enqueue(stream, (struct work){.run = run_pack,
                               .to = (void *)(uintptr_t)packed,
                               .pieces = own,
                               .count = count,
                               .kind = kind});
}

static cadre_status pack(const struct device_piece pieces[], size_t count, void *packed,
    void *stream, struct cadre_error *error)
{
    (void)error;
    return move(pieces, count, packed, stream, 0);
}

static cadre_status unpack(const struct device_piece pieces[], size_t count, const void *packed,
    void *stream, struct cadre_error *error)
{
    (void)error;
    return move(pieces, count, packed, stream, 1);
}

/* --- communicators --- */

struct operation {
    uint32_t arrived;
    bool done;
    struct work **works; /* [world] */
};

struct group {
    struct group *next;
    uint8_t id[DEVICE_COMM_ID_BYTES];
    uint32_t world;
    uint32_t joined;
    struct operation operations[OPS_MAX];
};

struct device_comm {
    struct device_comm *next; /* of those that have ended: they are kept, as what is on a stream
                                 may look at them */
    struct group *group;
    uint32_t rank;
    uint32_t device;
    uint32_t calls;
    uint32_t polls;
    bool aborted;
};

static struct group *groups;
static struct device_comm *ended;

static cadre_status unique_id(uint8_t ret_id[DEVICE_COMM_ID_BYTES], struct cadre_error *error)
{
    static atomic_uint next;
    if (atomic_load(&fake_controls.no_id) != 0) {
        return cadre_error_set(error, CADRE_INTERNAL, "fake: no id");
    }
    memset(ret_id, 7, DEVICE_COMM_ID_BYTES);
    unsigned number = atomic_fetch_add(&next, 1);
    memcpy(ret_id, &number, sizeof number);
    return CADRE_OK;
}

static struct group *group_of(const uint8_t id[DEVICE_COMM_ID_BYTES], uint32_t world)
{
    struct group *group = groups;
    while (group != NULL && memcmp(group->id, id, sizeof group->id) != 0) {
        group = group->next;
    }
    if (group == NULL) {
        group = calloc(1, sizeof *group);
        CADRE_ASSERT(group != NULL);
        memcpy(group->id, id, sizeof group->id);
        group->world = world;
        group->next = groups;
        groups = group;
    }
    CADRE_ASSERT(group->world == world);
    return group;
}

static cadre_status post(const uint8_t id[DEVICE_COMM_ID_BYTES], uint32_t world, uint32_t count,
    const uint32_t ranks[], const uint32_t devices[], struct device_comm *ret_comms[],
    struct cadre_error *error)
{
    (void)error;
    pthread_mutex_lock(&lock);
    struct group *group = group_of(id, world);
    for (uint32_t i = 0; i < count; i++) {
        ret_comms[i] = calloc(1, sizeof *ret_comms[i]);
        CADRE_ASSERT(ret_comms[i] != NULL);
        *ret_comms[i] =
            (struct device_comm){.group = group, .rank = ranks[i], .device = devices[i]};
    }
    group->joined += count;
    pthread_mutex_unlock(&lock);
    return CADRE_OK;
}

static cadre_status test(struct device_comm *comm, struct cadre_error *error)
{
    if (atomic_load(&fake_controls.refuses) == comm->rank + 1) {
        return cadre_error_set(error, CADRE_INTERNAL, "fake: it is refused");
    }
    if (atomic_load(&fake_controls.broken) == comm->rank + 1) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "fake: a remote process is gone");
    }
    pthread_mutex_lock(&lock);
    bool formed = comm->group->joined == comm->group->world;
    bool busy = comm->polls > 0;
    comm->polls -= busy ? 1 : 0;
    pthread_mutex_unlock(&lock);
    return formed && !busy && atomic_load(&fake_controls.never_ready) == 0 ? CADRE_OK
                                                                           : CADRE_PENDING;
}

static enum mesh_dtype mesh_dtype_of(cadre_dtype dtype)
{
    static const enum mesh_dtype dtypes[] = {[CADRE_F64] = MESH_F64,
        [CADRE_F32] = MESH_F32,
        [CADRE_F16] = MESH_F16,
        [CADRE_BF16] = MESH_BF16,
        [CADRE_I64] = MESH_I64,
        [CADRE_I32] = MESH_I32,
        [CADRE_I16] = MESH_I16,
        [CADRE_I8] = MESH_I8,
        [CADRE_U8] = MESH_U8};
    return dtypes[dtype];
}

enum { REDUCE, SCATTER, GATHER, CAST };

/* In the order of ranks, one after the other: not the mesh's tree. */
static void reduce(const struct operation *operation, uint32_t world, size_t index)
{
    static const enum mesh_op ops[] = {MESH_SUM, MESH_PROD, MESH_MIN, MESH_MAX};
    const struct work *first = operation->works[0];
    const struct device_vector *vector = &first->vectors[index];
    enum mesh_dtype dtype = mesh_dtype_of(vector->dtype);
    size_t part = vector->count * mesh_dtype_bytes(dtype);
    size_t bytes = first->kind == SCATTER ? part * world : part;
    uint8_t *sum = malloc(bytes + 1);
    CADRE_ASSERT(sum != NULL);
    memcpy(sum, vector->from, bytes);
    for (uint32_t rank = 1; rank < world; rank++) {
        const struct device_vector *other = &operation->works[rank]->vectors[index];
        CADRE_ASSERT(other->count == vector->count && other->dtype == vector->dtype);
        mesh_reduce_pair(ops[first->reduction], dtype, sum, sum, other->from, bytes);
    }
    for (uint32_t rank = 0; rank < world; rank++) {
        memcpy(operation->works[rank]->vectors[index].to,
            sum + (first->kind == SCATTER ? rank * part : 0), part);
    }
    free(sum);
}

static void move_bytes(const struct operation *operation, uint32_t world, size_t index)
{
    const struct work *first = operation->works[0];
    for (uint32_t from = 0; from < world; from++) {
        const struct device_vector *source = &operation->works[from]->vectors[index];
        if (first->kind == CAST && from != first->root) {
            continue;
        }
        for (uint32_t to = 0; to < world; to++) {
            const struct device_vector *target = &operation->works[to]->vectors[index];
            CADRE_ASSERT(target->count == source->count);
            uint8_t *at = target->to;
            memmove(at + (first->kind == GATHER ? from * source->count : 0), source->from,
                source->count);
        }
    }
}

static void compute(const struct operation *operation, uint32_t world)
{
    const struct work *first = operation->works[0];
    for (uint32_t rank = 1; rank < world; rank++) {
        CADRE_ASSERT(operation->works[rank]->kind == first->kind);
        CADRE_ASSERT(operation->works[rank]->count == first->count);
    }
    for (size_t i = 0; i < first->count; i++) {
        if (first->kind == REDUCE || first->kind == SCATTER) {
            reduce(operation, world, i);
        } else {
            move_bytes(operation, world, i);
        }
    }
}

static void run_collective(struct work *work)
{
    struct device_comm *comm = work->comm;
    struct group *group = comm->group;
    CADRE_ASSERT(work->serial < OPS_MAX);
    struct operation *operation = &group->operations[work->serial];
    pthread_mutex_lock(&lock);
    if (operation->works == NULL) {
        operation->works = calloc(group->world, sizeof(struct work *));
        CADRE_ASSERT(operation->works != NULL);
    }
    operation->works[comm->rank] = work;
    operation->arrived++;
    if (operation->arrived == group->world && atomic_load(&fake_controls.hangs) == 0) {
        compute(operation, group->world);
        operation->done = true;
        free(operation->works);
        operation->works = NULL;
        pthread_cond_broadcast(&changed);
    }
    while (!operation->done && !comm->aborted) {
        pthread_cond_wait(&changed, &lock);
    }
    if (!operation->done) {
        operation->arrived = 0; /* never complete again */
    }
    pthread_mutex_unlock(&lock);
}

static cadre_status call(struct device_comm *comm, int kind, const struct device_vector *vectors,
    size_t count, uint32_t root, enum device_reduction reduction, void *stream)
{
    while (atomic_load(&fake_controls.stuck_call) != 0) {
        (void)poll(NULL, 0, 1);
    }
    struct device_vector *own = malloc(count * sizeof *own + 1);
    CADRE_ASSERT(own != NULL);
    memcpy(own, vectors, count * sizeof *own);
    atomic_fetch_add(&fake_controls.groups, 1);
    atomic_fetch_add(&fake_controls.vectors, (unsigned)count);
    CADRE_ASSERT(!comm->aborted);
    CADRE_ASSERT(comm->polls == 0);
    uint64_t serial = comm->calls++;
    comm->polls = atomic_load(&fake_controls.pending_polls);
    bool pending = comm->polls > 0;
    (void)enqueue(stream, (struct work){.run = run_collective,
                              .comm = comm,
                              .vectors = own,
                              .count = count,
                              .root = root,
                              .kind = kind,
                              .serial = serial,
                              .reduction = reduction});
    return pending ? CADRE_PENDING : CADRE_OK;
}

static bool takes(cadre_dtype dtype)
{
    return dtype != CADRE_I16 && dtype != CADRE_BOOL;
}

static cadre_status all_reduce(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!takes(vectors[i].dtype)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "fake: no such type");
        }
    }
    return call(comm, REDUCE, vectors, count, 0, reduction, stream);
}

static cadre_status reduce_scatter(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector *part, void *stream, struct cadre_error *error)
{
    (void)error;
    return call(comm, SCATTER, part, 1, 0, reduction, stream);
}

static cadre_status all_gather(struct device_comm *comm, const void *from, size_t bytes, void *to,
    void *stream, struct cadre_error *error)
{
    (void)error;
    struct device_vector vector = {.from = from, .to = to, .count = bytes, .dtype = CADRE_U8};
    return call(comm, GATHER, &vector, 1, 0, DEVICE_REDUCE_SUM, stream);
}

static cadre_status broadcast(struct device_comm *comm, uint32_t root,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error)
{
    (void)error;
    return call(comm, CAST, vectors, count, root, DEVICE_REDUCE_SUM, stream);
}

static void *raw(const struct device_comm *comm)
{
    return (void *)(uintptr_t)comm;
}

static void end(struct device_comm *comm)
{
    pthread_mutex_lock(&lock);
    CADRE_ASSERT(!comm->aborted);
    comm->aborted = true;
    comm->next = ended;
    ended = comm;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void destroy_comm(struct device_comm *comm)
{
    while (atomic_load(&fake_controls.stuck_destroy) != 0) {
        (void)poll(NULL, 0, 1);
    }
    atomic_fetch_add(&fake_controls.destroys, 1);
    end(comm);
}

static void abort_comm(struct device_comm *comm)
{
    (void)poll(NULL, 0, (int)atomic_load(&fake_controls.slow_abort_ms));
    while (atomic_load(&fake_controls.stuck_abort) != 0) {
        (void)poll(NULL, 0, 1);
    }
    end(comm);
    atomic_fetch_add(&fake_controls.aborts, 1);
}

static const struct device_comm_ops comm_table = {
    .unique_id = unique_id,
    .post = post,
    .test = test,
    .all_reduce = all_reduce,
    .reduce_scatter = reduce_scatter,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .takes = takes,
    .raw = raw,
    .destroy = destroy_comm,
    .abort = abort_comm,
};

static const struct device_ops table = {
    .abi = DEVICE_ABI,
    .name = "fake",
    .type = "GPU",
    .count = count_devices,
    .describe = describe,
    .driver = describe_driver,
    .bind = bind_device,
    .memory_get = memory_get,
    .memory_give = memory_give,
    .pinned_get = pinned_get,
    .pinned_give = pinned_give,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_test = stream_test,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .event_test = event_test,
    .copy = copy,
    .fill = fill,
    .pack = pack,
    .unpack = unpack,
    .comm = &comm_table,
};

__attribute__((visibility("default"))) const struct device_ops *cadre_device_plugin(uint32_t abi);
const struct device_ops *cadre_device_plugin(uint32_t abi)
{
    return abi == DEVICE_ABI ? &table : NULL;
}
