/* SPDX-License-Identifier: Apache-2.0
 * Check and Watch. Their two messages (proto/grpc/health/v1/health.proto) are a string and an enum:
 * they are read and written by hand here, so that this folder needs no protobuf. */
#include "common/rpc/standard_services.h"

#include "common/pure/assert.h"
#include "common/rpc/fields.h"

#include <string.h>

#include <grpc/support/alloc.h>

#define REQUEST_BYTES_MAX 1024

enum serving { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

struct service {
    char name[RPC_HEALTH_NAME_MAX + 1];
    enum serving state;
};

/* A Watch call; exists from its request to its close. */
struct watch {
    struct watch *next, *previous;
    struct rpc_call *call;
    char name[RPC_HEALTH_NAME_MAX + 1];
};

struct rpc_health {
    struct service services[RPC_HEALTH_SERVICES_MAX];
    size_t service_count;
    struct watch *watches;
};

/* ---- the messages ---- */

/* The name in HealthCheckRequest: field 1, a string. Other fields are skipped; the last of several
 * names counts. False for bytes that are no such message, or a name that no service here can have.
 */
static bool read_request(const void *data, size_t length, char name[RPC_HEALTH_NAME_MAX + 1])
{
    struct field_reader reader = field_reader(data, length);
    struct field field;
    name[0] = '\0';
    while (field_next(&reader, &field)) {
        if (field.id != 1 || field.kind != FIELD_BYTES) {
            continue;
        }
        if (field.size > RPC_HEALTH_NAME_MAX || memchr(field.bytes, '\0', field.size) != NULL) {
            return false;
        }
        memcpy(name, field.bytes, field.size);
        name[field.size] = '\0';
    }
    return !reader.broken;
}

/* HealthCheckResponse: field 1, an enum. */
static cadre_status send_state(struct rpc_call *call, enum serving state)
{
    const uint8_t bytes[] = {1 << 3, (uint8_t)state};
    return rpc_call_send(call, bytes, sizeof bytes, NULL);
}

/* ---- the calls ---- */

static struct service *rpc_health_find(struct rpc_health *health, const char *name)
{
    for (size_t i = 0; i < health->service_count; i++) {
        if (strcmp(health->services[i].name, name) == 0) {
            return &health->services[i];
        }
    }
    return NULL;
}

static void refuse_request(struct rpc_call *call)
{
    rpc_call_finish(call, CADRE_INVALID_ARGUMENT,
        "HealthCheckRequest: not such a message, or a service name of more than 127 bytes");
}

static void check_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    char name[RPC_HEALTH_NAME_MAX + 1];
    if (!read_request(data, length, name)) {
        refuse_request(call);
        return;
    }
    const struct service *service = rpc_health_find(user, name);
    if (service == NULL) {
        rpc_call_finish(call, CADRE_NOT_FOUND, "HealthCheckRequest.service: no such service here");
    } else if (send_state(call, service->state) == CADRE_OK) {
        rpc_call_finish(call, CADRE_OK, NULL);
    }
}

static void watch_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct rpc_health *health = user;
    char name[RPC_HEALTH_NAME_MAX + 1];
    if (!read_request(data, length, name)) {
        refuse_request(call);
        return;
    }
    struct watch *watch = gpr_zalloc(sizeof *watch);
    watch->call = call;
    memcpy(watch->name, name, sizeof name);
    watch->next = health->watches;
    if (watch->next != NULL) {
        watch->next->previous = watch;
    }
    health->watches = watch;
    rpc_call_set_user(call, watch);
    const struct service *service = rpc_health_find(health, name);
    send_state(call, service != NULL ? service->state : SERVICE_UNKNOWN);
}

static void watch_shutdown(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call, CADRE_UNAVAILABLE, "the server is shutting down");
}

static void watch_closed(struct rpc_call *call, bool cancelled, void *user)
{
    struct rpc_health *health = user;
    struct watch *watch = rpc_call_user(call);
    (void)cancelled;
    if (watch == NULL) {
        return;
    }
    if (watch->next != NULL) {
        watch->next->previous = watch->previous;
    }
    if (watch->previous != NULL) {
        watch->previous->next = watch->next;
    } else {
        health->watches = watch->next;
    }
    gpr_free(watch);
}

/* ---- for the program ---- */

struct rpc_health *rpc_health_open(void)
{
    struct rpc_health *health = gpr_zalloc(sizeof *health);
    health->services[0].state = NOT_SERVING;
    health->service_count = 1;
    return health;
}

void rpc_health_close(struct rpc_health *health)
{
    CADRE_ASSERT(health == NULL || health->watches == NULL);
    gpr_free(health);
}

void rpc_health_methods(struct rpc_health *health, struct rpc_method *ret_methods)
{
    static const struct rpc_server_ops check = {.on_message = check_message};
    static const struct rpc_server_ops watch = {
        .on_message = watch_message,
        .on_shutdown = watch_shutdown,
        .on_closed = watch_closed,
    };
    ret_methods[0] = (struct rpc_method){
        .path = "/grpc.health.v1.Health/Check",
        .request_bytes_max = REQUEST_BYTES_MAX,
        .ops = &check,
        .user = health,
    };
    ret_methods[1] = (struct rpc_method){
        .path = "/grpc.health.v1.Health/Watch",
        .server_streams = true,
        .request_bytes_max = REQUEST_BYTES_MAX,
        .ops = &watch,
        .user = health,
    };
}

cadre_status rpc_health_set(
    struct rpc_health *health, const char *name, bool serving, struct cadre_error *error)
{
    enum serving state = serving ? SERVING : NOT_SERVING;
    struct service *service = rpc_health_find(health, name);
    if (service == NULL) {
        if (strlen(name) > RPC_HEALTH_NAME_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "health: service name \"%.40s...\" is longer than %d bytes", name,
                RPC_HEALTH_NAME_MAX);
        }
        if (health->service_count == RPC_HEALTH_SERVICES_MAX) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "health: no room for service \"%s\" beyond %d", name, RPC_HEALTH_SERVICES_MAX);
        }
        service = &health->services[health->service_count++];
        memcpy(service->name, name, strlen(name) + 1);
    } else if (service->state == state) {
        return CADRE_OK;
    }
    service->state = state;
    for (struct watch *watch = health->watches; watch != NULL; watch = watch->next) {
        if (strcmp(watch->name, name) == 0 && send_state(watch->call, state) != CADRE_OK) {
            rpc_call_abort(watch->call, CADRE_RESOURCE_EXHAUSTED, "the watcher reads too slowly");
        }
    }
    return CADRE_OK;
}
