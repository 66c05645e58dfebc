/* SPDX-License-Identifier: Apache-2.0
 * The steps of comm_init.h, each a collective of the host mesh. connect.c and groups.c call
 * device_comm_init. */
#include "worker/library/mesh/device/comm_init.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"

#define SPIN_US UINT64_C(2000)

/* How long a replica polls before it sends again that it is not ready: twice as long each time. */
#define ROUND_MIN_US UINT64_C(5000)
#define ROUND_MAX_US UINT64_C(200000)

/* What each replica sends first. */
struct identity {
    uint64_t host; /* a device's name and bus count only there */
    uint64_t on_device;
    char uuid[48];
    char bus[24];
};

/* The id, or why there is none. */
struct token {
    uint8_t id[DEVICE_COMM_ID_BYTES];
    uint64_t made;
    char reason[184];
};

struct verdict {
    uint64_t how; /* enum how */
    char reason[184];
};

enum how { HOW_WELL, HOW_PENDING, HOW_FAILED };

/* --- what all replicas send --- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = prng_mix(64);
    for (const char *at = text; *at != '\0'; at++) {
        hash = prng_mix(hash ^ (uint8_t)*at);
    }
    return hash;
}

/* The host's identity as NCCL takes it: NCCL_HOSTID, else what differs for each boot of each
 * machine. With names of their own, processes that share a GPU are connected as if they were on
 * hosts of their own: by the network, and slowly. For tests on a machine with one GPU. */
static uint64_t host_of_task(void)
{
    char text[64] = "";
    const char *named = getenv("NCCL_HOSTID");
    if (named != NULL && named[0] != '\0') {
        return hash_of(named);
    }
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (length <= 0 && gethostname(text, sizeof text - 1) != 0) {
        return 0;
    }
    return hash_of(text);
}

static cadre_status comm_init_gather(struct comm_init *comm_init, const void *own, size_t bytes,
    void **ret_all, struct cadre_error *error)
{
    struct mesh *mesh = comm_init->device_replica->mesh->host;
    *ret_all = calloc(comm_init->host->replica_count, bytes);
    if (*ret_all == NULL) {
        mesh_host_ops.abort(mesh, "a replica has no memory to connect its device");
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to connect devices");
    }
    cadre_status status = mesh_host_ops.all_gather(mesh, comm_init->device_replica->local, own,
        bytes, NULL, *ret_all, &comm_init->note, error);
    if (status != CADRE_OK) {
        free(*ret_all);
        *ret_all = NULL;
    }
    return status;
}

/* Compares as devices of one host: by uuid, else by bus. */
static int comm_init_compare(const void *left, const void *right)
{
    const struct identity *a = *(const struct identity *const *)left;
    const struct identity *b = *(const struct identity *const *)right;
    int order = (a->host > b->host) - (a->host < b->host);
    order = order != 0 ? order : strncmp(a->uuid, b->uuid, sizeof a->uuid);
    return order != 0 || a->uuid[0] != '\0' ? order : strncmp(a->bus, b->bus, sizeof a->bus);
}

/* Finds two replicas with the same device; ret_reason names them. */
static cadre_status find_same(const struct identity *all, uint32_t count, char *ret_reason,
    size_t size, struct cadre_error *error)
{
    const struct identity **sorted = calloc(count, sizeof(const struct identity *));
    if (sorted == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to compare devices");
    }
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = &all[i];
    }
    qsort(sorted, count, sizeof(const struct identity *), comm_init_compare);
    for (uint32_t i = 1; i < count && ret_reason[0] == '\0'; i++) {
        const struct identity *one = sorted[i - 1];
        const struct identity *other = sorted[i];
        bool known = one->uuid[0] != '\0' || one->bus[0] != '\0';
        if (known && comm_init_compare(&one, &other) == 0) {
            uint32_t low = (uint32_t)((one < other ? one : other) - all);
            uint32_t high = (uint32_t)((one < other ? other : one) - all);
            snprintf(ret_reason, size,
                "replicas %" PRIu32 " and %" PRIu32 " use the same GPU (%.47s)", low, high,
                one->uuid[0] != '\0' ? one->uuid : one->bus);
        }
    }
    free(sorted);
    return CADRE_OK;
}

/* Exchanges the identities. ret_reason: "" when all have a device of their own. */
static cadre_status exchange_identities(
    struct comm_init *comm_init, char *ret_reason, size_t size, struct cadre_error *error)
{
    const struct device *device = comm_init->device;
    struct identity own = {.host = host_of_task(), .on_device = device != NULL};
    void *gathered = NULL;
    if (device != NULL) {
        snprintf(own.uuid, sizeof own.uuid, "%s", device->info.uuid);
        snprintf(own.bus, sizeof own.bus, "%s", device->info.bus);
    }
    ret_reason[0] = '\0';
    CADRE_TRY(comm_init_gather(comm_init, &own, sizeof own, &gathered, error));
    struct identity *all = gathered;
    for (uint32_t i = 0; i < comm_init->host->replica_count && ret_reason[0] == '\0'; i++) {
        if (all[i].on_device == 0) {
            snprintf(ret_reason, size, "replica %" PRIu32 " is not on a GPU", i);
        }
        all[i].uuid[sizeof all[i].uuid - 1] = '\0';
        all[i].bus[sizeof all[i].bus - 1] = '\0';
    }
    cadre_status status = CADRE_OK;
    if (ret_reason[0] == '\0') {
        status = find_same(all, comm_init->host->replica_count, ret_reason, size, error);
        if (status != CADRE_OK) { /* the others may continue */
            mesh_host_ops.abort(comm_init->device_replica->mesh->host, error->text);
        }
    }
    free(all);
    return status;
}

/* All replicas send their status; ret_reason: of the first one that failed. *ret_pending: none has
 * failed, but some are not ready yet. */
static cadre_status comm_init_conclude(struct comm_init *comm_init, cadre_status status,
    const struct cadre_error *why, bool *ret_pending, char *ret_reason, size_t size,
    struct cadre_error *error)
{
    struct verdict own = {.how = status == CADRE_OK        ? HOW_WELL
                                 : status == CADRE_PENDING ? HOW_PENDING
                                                           : HOW_FAILED};
    void *gathered = NULL;
    if (own.how == HOW_FAILED) {
        snprintf(own.reason, sizeof own.reason, "%.*s", (int)sizeof own.reason - 1, why->text);
    }
    *ret_pending = false;
    ret_reason[0] = '\0';
    CADRE_TRY(comm_init_gather(comm_init, &own, sizeof own, &gathered, error));
    const struct verdict *all = gathered;
    for (uint32_t i = 0; i < comm_init->host->replica_count && ret_reason[0] == '\0'; i++) {
        *ret_pending = *ret_pending || all[i].how == HOW_PENDING;
        if (all[i].how == HOW_FAILED) {
            snprintf(ret_reason, size,
                "task of rank %" PRIu32 ": NCCL refused replica %" PRIu32 ": %.*s",
                mesh_host_rank_of(comm_init->host, i), i, (int)sizeof all[i].reason - 1,
                all[i].reason);
        }
    }
    free(gathered);
    return CADRE_OK;
}

/* --- the id --- */

static cadre_status send_token(
    struct comm_init *comm_init, struct token *token, struct cadre_error *error)
{
    struct mesh_buffer buffer = {.data = token, .bytes = sizeof *token, .dtype = MESH_U8};
    return mesh_host_ops.broadcast(comm_init->device_replica->mesh->host,
        comm_init->device_replica->local, 0, &buffer, 1, &comm_init->note, error);
}

/* The content of a small broadcast stays in the posts of the mesh until two others have overwritten
 * it. */
static cadre_status comm_init_overwrite(struct comm_init *comm_init, struct cadre_error *error)
{
    struct token nothing;
    for (unsigned i = 0; i < 2; i++) {
        memset(&nothing, 0, sizeof nothing);
        CADRE_TRY(send_token(comm_init, &nothing, error));
    }
    return CADRE_OK;
}

static cadre_status make_id(const struct comm_init *comm_init, uint8_t ret_id[DEVICE_COMM_ID_BYTES],
    struct cadre_error *error)
{
    const struct device_comm_ops *ops = comm_init->device->ops->comm;
    return ops != NULL ? ops->unique_id(ret_id, error)
                       : cadre_error_set(error, CADRE_FAILED_PRECONDITION, "there is no NCCL");
}

static cadre_status share_id(struct comm_init *comm_init, uint8_t ret_id[DEVICE_COMM_ID_BYTES],
    char *ret_reason, size_t size, struct cadre_error *error)
{
    struct token token;
    struct cadre_error why = {.text = ""};
    memset(&token, 0, sizeof token);
    if (comm_init->device_replica->global == 0) {
        token.made = make_id(comm_init, token.id, &why) == CADRE_OK;
        snprintf(token.reason, sizeof token.reason, "%.*s", (int)sizeof token.reason - 1, why.text);
    }
    cadre_status status = send_token(comm_init, &token, error);
    ret_reason[0] = '\0';
    if (status == CADRE_OK && token.made == 0) {
        snprintf(ret_reason, size, "task of rank 0: NCCL made no id: %.*s",
            (int)sizeof token.reason - 1, token.reason);
    }
    if (status == CADRE_OK) {
        memcpy(ret_id, token.id, DEVICE_COMM_ID_BYTES);
        status = comm_init_overwrite(comm_init, error);
    }
    explicit_bzero(&token, sizeof token);
    return status;
}

/* --- the communicators --- */

static cadre_status comm_init_post(const struct comm_init *comm_init,
    const uint8_t id[DEVICE_COMM_ID_BYTES], struct cadre_error *error)
{
    struct device_mesh *mesh = comm_init->device_replica->mesh;
    const struct device_comm_ops *ops = comm_init->device->ops->comm;
    if (comm_init->post_count == 0) {
        return CADRE_OK;
    }
    if (ops == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION, "there is no NCCL");
    }
    if (mesh->comms == NULL) {
        CADRE_TRY(comms_open(
            ops, device_mesh_slots(mesh), comm_init->host->fault.event_fd, &mesh->comms, error));
    }
    return comms_post(
        mesh->comms, id, comm_init->world, comm_init->posts, comm_init->post_count, error);
}

/* The status of the replica's ranks: PENDING while one is not ready, and none has failed. */
static cadre_status test_ranks(const struct comm_init *comm_init, struct cadre_error *error)
{
    bool pending = false;
    for (uint32_t i = 0; i < comm_init->rank_count; i++) {
        cadre_status status =
            comms_test(comm_init->device_replica->mesh->comms, comm_init->ranks[i].slot, error);
        if (status != CADRE_OK && status != CADRE_PENDING) {
            return status;
        }
        pending = pending || status == CADRE_PENDING;
    }
    return pending ? CADRE_PENDING : CADRE_OK;
}

/* Waits for one round, until they are ready: PENDING, or how one failed. */
static cadre_status await_ready(
    struct comm_init *comm_init, uint64_t round_us, struct cadre_error *error)
{
    uint64_t begun_us = clock_monotonic_us();
    cadre_status status;
    while ((status = test_ranks(comm_init, error)) == CADRE_PENDING) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= comm_init->deadline_us) {
            return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                "it was not ready after %" PRIu64 " ms",
                (now_us - comm_init->begun_us) / CADRE_US_PER_MS);
        }
        if (now_us - begun_us >= round_us || mesh_fault_raised(comm_init->host)) {
            return CADRE_PENDING; /* the next gather returns the fault */
        }
        if (now_us - comm_init->begun_us < SPIN_US) {
            (void)sched_yield();
        } else { /* a millisecond, or less when the mesh ends */
            struct pollfd fault = {.fd = comm_init->host->fault.event_fd, .events = POLLIN};
            (void)poll(&fault, 1, 1);
        }
    }
    return status;
}

/* Repeats rounds until all are ready, or one has failed. */
static cadre_status comm_init_meet(struct comm_init *comm_init,
    const uint8_t id[DEVICE_COMM_ID_BYTES], cadre_status status, struct cadre_error *why,
    char *ret_reason, size_t size, struct cadre_error *error)
{
    bool pending;
    uint64_t round_us = ROUND_MIN_US;
    if (status == CADRE_OK) {
        status = comm_init_post(comm_init, id, why);
    }
    CADRE_TRY(comm_init_conclude(comm_init, status, why, &pending, ret_reason, size, error));
    if (ret_reason[0] != '\0') {
        return CADRE_OK;
    }
    do {
        status = await_ready(comm_init, round_us, why);
        CADRE_TRY(comm_init_conclude(comm_init, status, why, &pending, ret_reason, size, error));
        round_us = 2 * round_us < ROUND_MAX_US ? 2 * round_us : ROUND_MAX_US;
    } while (pending && ret_reason[0] == '\0');
    return CADRE_OK;
}

static cadre_status run_steps(struct comm_init *comm_init, uint8_t id[DEVICE_COMM_ID_BYTES],
    char *ret_reason, size_t size, struct cadre_error *error)
{
    struct cadre_error why = {.text = ""};
    if (comm_init->by_itself) {
        CADRE_TRY(mesh_host_ops.barrier(comm_init->device_replica->mesh->host,
            comm_init->device_replica->local, &comm_init->note, error));
        cadre_status status = make_id(comm_init, id, &why);
        return comm_init_meet(comm_init, id, status, &why, ret_reason, size, error);
    }
    CADRE_TRY(exchange_identities(comm_init, ret_reason, size, error));
    if (ret_reason[0] == '\0') {
        CADRE_TRY(share_id(comm_init, id, ret_reason, size, error));
    }
    return ret_reason[0] != '\0'
               ? CADRE_OK
               : comm_init_meet(comm_init, id, CADRE_OK, &why, ret_reason, size, error);
}

cadre_status device_comm_init(
    struct comm_init *comm_init, char *ret_reason, size_t size, struct cadre_error *error)
{
    uint8_t id[DEVICE_COMM_ID_BYTES];
    comm_init->host = device_mesh_host(comm_init->device_replica->mesh);
    comm_init->begun_us = clock_monotonic_us();
    comm_init->deadline_us = CADRE_TIME_NEVER;
    comm_init->note.timeout_us = comm_init->timeout_us;
    if (comm_init->timeout_us > 0) {
        comm_init->deadline_us = comm_init->begun_us + comm_init->timeout_us;
        /* The wait for a replica's message is longer than its poll. */
        comm_init->note.timeout_us = comm_init->timeout_us + 2 * ROUND_MAX_US;
    }
    cadre_status status = run_steps(comm_init, id, ret_reason, size, error);
    explicit_bzero(id, sizeof id);
    return status;
}
