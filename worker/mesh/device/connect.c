/* SPDX-License-Identifier: Apache-2.0
 * How the replicas' devices become one communicator, in steps that all replicas of all tasks take
 * together, on the host mesh:
 *
 *    gather      who I am and on which device       all find the same in it
 *    broadcast   the id, from replica 0             or why there is none
 *    gather      local replica 0 has posted         or why not
 *    gather      mine is ready                      or why not, or not yet: then once more
 *
 * After each gather all know whether to go on, and the reason if not: the first one that failed.
 * The last one is repeated, since who has failed would be waited for by the others' library. */
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
#include "worker/mesh/device/device_mesh.h"

#define KEY_CONNECT UINT64_C(0x636f6e6e656374)
#define SPIN_US     UINT64_C(2000)

/* How long a replica polls before it says again that it is not ready: twice as long each time. */
#define ROUND_MIN_US UINT64_C(5000)
#define ROUND_MAX_US UINT64_C(200000)

/* What each replica says first. */
struct identity {
    uint64_t host; /* a device's name and place count only there */
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

/* One replica on its way through the steps. */
struct connecting {
    struct seat *seat;
    struct host_mesh *host;
    struct mesh_note note;
    uint64_t begun_us;
    uint64_t deadline_us;
};

uint64_t mesh_device_offer(struct device *const devices[], uint32_t count, const char **ret_reason)
{
    static char reason[sizeof((struct device_driver *)0)->collectives_from];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    *ret_reason = "";
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] == NULL) {
            *ret_reason = "a replica of this task is on the host";
            return 0;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (devices[k]->index == devices[i]->index) {
                *ret_reason = "two replicas of this task are on one device";
                return 0;
            }
        }
    }
    if (count == 0) {
        *ret_reason = "this task has no replica on a device";
        return 0;
    }
    struct device_driver driver = {.collectives = 0};
    const struct device_ops *ops = devices[0]->ops;
    ops->driver(&driver);
    if (ops->comm == NULL || driver.collectives == 0) {
        pthread_mutex_lock(&lock);
        if (reason[0] == '\0') { /* the first words stay: others may be reading them */
            snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1,
                driver.collectives_from[0] != '\0' ? driver.collectives_from
                                                   : "the plugin has no NCCL");
        }
        *ret_reason = reason;
        pthread_mutex_unlock(&lock);
        return 0;
    }
    return (uint64_t)DEVICE_ABI << 32 | driver.collectives;
}

/* --- what all say --- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = prng_mix(64);
    for (const char *at = text; *at != '\0'; at++) {
        hash = prng_mix(hash ^ (uint8_t)*at);
    }
    return hash;
}

/* As NCCL takes it: NCCL_HOSTID, else what tells one boot of one machine from others. With names of
 * their own, processes that share a GPU are connected as if they were on hosts of their own: by the
 * network, and slowly. For tests on a machine with one GPU. */
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

/* Decides, once: whichever replica comes first says it for all, since all know the same. */
static void decide(struct device_mesh *mesh, const char *reason)
{
    pthread_mutex_lock(&mesh->lock);
    if (!atomic_load(&mesh->decided)) {
        snprintf(mesh->reason, sizeof mesh->reason, "%s", reason);
        atomic_store(&mesh->decided, true);
    }
    pthread_mutex_unlock(&mesh->lock);
}

static cadre_status gather(struct connecting *with, const void *own, size_t bytes, void **ret_all,
    struct cadre_error *error)
{
    struct mesh *mesh = with->seat->mesh->host;
    *ret_all = calloc(with->host->replica_count, bytes);
    if (*ret_all == NULL) {
        mesh_host_ops.abort(mesh, "a replica has no memory to connect its device");
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to connect devices");
    }
    cadre_status status = mesh_host_ops.all_gather(
        mesh, with->seat->local, own, bytes, NULL, *ret_all, &with->note, error);
    if (status != CADRE_OK) {
        free(*ret_all);
        *ret_all = NULL;
    }
    return status;
}

/* Compared as devices of one host: by uuid, else by where they are. */
static int compare(const void *left, const void *right)
{
    const struct identity *a = *(const struct identity *const *)left;
    const struct identity *b = *(const struct identity *const *)right;
    int order = (a->host > b->host) - (a->host < b->host);
    order = order != 0 ? order : strncmp(a->uuid, b->uuid, sizeof a->uuid);
    return order != 0 || a->uuid[0] != '\0' ? order : strncmp(a->bus, b->bus, sizeof a->bus);
}

/* *ret_found: two replicas have the same one; the reason is in words. */
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
    qsort(sorted, count, sizeof(const struct identity *), compare);
    for (uint32_t i = 1; i < count && ret_reason[0] == '\0'; i++) {
        const struct identity *one = sorted[i - 1];
        const struct identity *other = sorted[i];
        bool known = one->uuid[0] != '\0' || one->bus[0] != '\0';
        if (known && compare(&one, &other) == 0) {
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

/* ret_reason: "" when all have a device of their own. */
static cadre_status look_around(
    struct connecting *with, char *ret_reason, size_t size, struct cadre_error *error)
{
    const struct device *device = with->seat->device;
    struct identity own = {.host = host_of_task(), .on_device = device != NULL};
    void *gathered = NULL;
    if (device != NULL) {
        snprintf(own.uuid, sizeof own.uuid, "%s", device->info.uuid);
        snprintf(own.bus, sizeof own.bus, "%s", device->info.bus);
    }
    ret_reason[0] = '\0';
    CADRE_TRY(gather(with, &own, sizeof own, &gathered, error));
    struct identity *all = gathered;
    for (uint32_t i = 0; i < with->host->replica_count && ret_reason[0] == '\0'; i++) {
        if (all[i].on_device == 0) {
            snprintf(ret_reason, size, "replica %" PRIu32 " is not on a GPU", i);
        }
        all[i].uuid[sizeof all[i].uuid - 1] = '\0';
        all[i].bus[sizeof all[i].bus - 1] = '\0';
    }
    cadre_status status = CADRE_OK;
    if (ret_reason[0] == '\0') {
        status = find_same(all, with->host->replica_count, ret_reason, size, error);
        if (status != CADRE_OK) { /* the others may go on */
            mesh_host_ops.abort(with->seat->mesh->host, error->text);
        }
    }
    free(all);
    return status;
}

/* All say how it went; ret_reason: of the first one that failed. *ret_pending: nobody has, but some
 * are not there yet. */
static cadre_status conclude(struct connecting *with, cadre_status status,
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
    CADRE_TRY(gather(with, &own, sizeof own, &gathered, error));
    const struct verdict *all = gathered;
    for (uint32_t i = 0; i < with->host->replica_count && ret_reason[0] == '\0'; i++) {
        *ret_pending = *ret_pending || all[i].how == HOW_PENDING;
        if (all[i].how == HOW_FAILED) {
            snprintf(ret_reason, size,
                "task of rank %" PRIu32 ": NCCL refused replica %" PRIu32 ": %.*s",
                mesh_host_rank_of(with->host, i), i, (int)sizeof all[i].reason - 1, all[i].reason);
        }
    }
    free(gathered);
    return CADRE_OK;
}

/* --- the id --- */

static cadre_status send_token(
    struct connecting *with, struct token *token, struct cadre_error *error)
{
    struct mesh_buffer buffer = {.data = token, .bytes = sizeof *token, .dtype = MESH_U8};
    return mesh_host_ops.broadcast(
        with->seat->mesh->host, with->seat->local, 0, &buffer, 1, &with->note, error);
}

/* What a small broadcast was is kept in the posts of the mesh until two others have gone through
 * them. */
static cadre_status overwrite(struct connecting *with, struct cadre_error *error)
{
    struct token nothing;
    for (unsigned i = 0; i < 2; i++) {
        memset(&nothing, 0, sizeof nothing);
        CADRE_TRY(send_token(with, &nothing, error));
    }
    return CADRE_OK;
}

static cadre_status share_id(struct connecting *with, uint8_t ret_id[DEVICE_COMM_ID_BYTES],
    char *ret_reason, size_t size, struct cadre_error *error)
{
    struct token token;
    struct cadre_error why = {.text = ""};
    memset(&token, 0, sizeof token);
    if (with->seat->global == 0) {
        const struct device_comm_ops *ops = with->seat->device->ops->comm;
        token.made = ops != NULL && ops->unique_id(token.id, &why) == CADRE_OK;
        snprintf(token.reason, sizeof token.reason, "%.*s", (int)sizeof token.reason - 1,
            ops != NULL ? why.text : "there is no NCCL");
    }
    cadre_status status = send_token(with, &token, error);
    ret_reason[0] = '\0';
    if (status == CADRE_OK && token.made == 0) {
        snprintf(ret_reason, size, "task of rank 0: NCCL made no id: %.*s",
            (int)sizeof token.reason - 1, token.reason);
    }
    if (status == CADRE_OK) {
        memcpy(ret_id, token.id, DEVICE_COMM_ID_BYTES);
        status = overwrite(with, error);
    }
    explicit_bzero(&token, sizeof token);
    return status;
}

/* --- the communicators --- */

/* Local replica 0, for all of its task. */
static cadre_status post_all(
    struct connecting *with, const uint8_t id[DEVICE_COMM_ID_BYTES], struct cadre_error *error)
{
    struct device_mesh *mesh = with->seat->mesh;
    const struct device_comm_ops *ops = with->seat->device->ops->comm;
    uint32_t count = mesh->local_count;
    if (ops == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION, "there is no NCCL");
    }
    CADRE_TRY(comms_open(ops, count, with->host->fault.event_fd, &mesh->comms, error));
    uint32_t *numbers = calloc(2 * (size_t)count, sizeof *numbers);
    if (numbers == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for communicators");
    }
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = mesh->seats[i].global;
        numbers[count + i] = mesh->seats[i].device->index;
    }
    cadre_status status =
        comms_post(mesh->comms, id, mesh->replica_count, numbers, numbers + count, error);
    free(numbers);
    return status;
}

/* For one round, until the own communicator is ready: PENDING, or how it failed. */
static cadre_status await_ready(
    struct connecting *with, uint64_t round_us, struct cadre_error *error)
{
    struct seat *seat = with->seat;
    uint64_t begun_us = clock_monotonic_us();
    cadre_status status;
    while ((status = comms_test(seat->mesh->comms, seat->local, error)) == CADRE_PENDING) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= with->deadline_us) {
            return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                "it was not ready after %" PRIu64 " ms",
                (now_us - with->begun_us) / CADRE_US_PER_MS);
        }
        if (now_us - begun_us >= round_us || mesh_fault_raised(with->host)) {
            return CADRE_PENDING; /* the gather has the fault's words */
        }
        if (now_us - with->begun_us < SPIN_US) {
            (void)sched_yield();
        } else { /* a millisecond, or less when the mesh ends */
            struct pollfd fault = {.fd = with->host->fault.event_fd, .events = POLLIN};
            (void)poll(&fault, 1, 1);
        }
    }
    return status;
}

static cadre_status come_in(struct connecting *with, const uint8_t id[DEVICE_COMM_ID_BYTES],
    char *ret_reason, size_t size, struct cadre_error *error)
{
    struct cadre_error why = {.text = ""};
    bool pending;
    uint64_t round_us = ROUND_MIN_US;
    cadre_status status = with->seat->local == 0 ? post_all(with, id, &why) : CADRE_OK;
    CADRE_TRY(conclude(with, status, &why, &pending, ret_reason, size, error));
    if (ret_reason[0] != '\0') {
        return CADRE_OK;
    }
    do {
        status = await_ready(with, round_us, &why);
        CADRE_TRY(conclude(with, status, &why, &pending, ret_reason, size, error));
        round_us = 2 * round_us < ROUND_MAX_US ? 2 * round_us : ROUND_MAX_US;
    } while (pending && ret_reason[0] == '\0');
    return CADRE_OK;
}

static cadre_status connect_all(
    struct connecting *with, char *ret_reason, size_t size, struct cadre_error *error)
{
    uint8_t id[DEVICE_COMM_ID_BYTES];
    CADRE_TRY(look_around(with, ret_reason, size, error));
    if (ret_reason[0] != '\0') {
        return CADRE_OK;
    }
    cadre_status status = share_id(with, id, ret_reason, size, error);
    if (status == CADRE_OK && ret_reason[0] == '\0') {
        status = come_in(with, id, ret_reason, size, error);
    }
    explicit_bzero(id, sizeof id);
    return status;
}

cadre_status mesh_device_connect(
    struct mesh *mesh, uint32_t local_replica, uint64_t timeout_us, struct cadre_error *error)
{
    struct device_mesh *own = device_mesh_of(mesh);
    if (mesh->ops != &mesh_device_ops || local_replica >= own->local_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "local replica %" PRIu32 " cannot be connected: this is no mesh for devices, or has no "
            "such replica",
            local_replica);
    }
    struct seat *seat = &own->seats[local_replica];
    char reason[CADRE_ERROR_TEXT_BYTES / 2] = "";
    snprintf(
        seat->text, sizeof seat->text, "replica %" PRIu32 " connects its device", seat->global);
    struct connecting with = {
        .seat = seat,
        .host = device_mesh_host(own),
        .note = {.key = KEY_CONNECT, .text = seat->text, .timeout_us = timeout_us},
        .begun_us = clock_monotonic_us(),
        .deadline_us = CADRE_TIME_NEVER,
    };
    if (timeout_us > 0) {
        with.deadline_us = with.begun_us + timeout_us;
        /* Who waits for a replica's word waits for longer than it polls. */
        with.note.timeout_us = timeout_us + 2 * ROUND_MAX_US;
    }
    CADRE_TRY(connect_all(&with, reason, sizeof reason, error));
    if (reason[0] != '\0' && seat->local == 0) {
        comms_end(own->comms, false);
    }
    seat->connected = reason[0] == '\0';
    decide(own, reason);
    return CADRE_OK;
}

const char *mesh_device_reason(const struct mesh *mesh)
{
    return mesh->ops == &mesh_device_ops ? ((const struct device_mesh *)mesh)->reason : "";
}
