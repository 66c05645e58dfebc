/* SPDX-License-Identifier: Apache-2.0
 * The constructors of strategies: the devices of each kind, and how the number that the job was
 * started with counts. The program calls them; strategy_lifecycle/ makes the strategy. */
#include "cadre/strategy.h"

#include <string.h>

#include "cadre/parameter_server.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/lifecycle/constructors.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h"

/* The arguments of a constructor. */
struct request {
    const char *function;
    enum strategy_kind kind;
    uint32_t replicas;          /* without a list: 0 for one on each device */
    const char *const *devices; /* NULL: no list */
    size_t device_count;
    const char *parameter; /* NULL: the host's processor */
};

static cadre_status check_tasks(
    const struct request *request, const struct environment *environment, struct cadre_error *error)
{
    CADRE_ASSERT(request->kind != STRATEGY_PARAMETER_SERVER);
    static const char *const kinds[] = {[STRATEGY_ONE_DEVICE] = "a strategy of one device",
        [STRATEGY_MIRRORED] = "a mirrored strategy",
        [STRATEGY_CENTRAL_STORAGE] = "a strategy with central storage"};
    if (environment->role != ROLE_NONE) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in a task (%s %u) of a job with parameter servers, whose chief has "
            "cadre_strategy_parameter_server and whose other tasks have none",
            request->function, role_name(environment->role), environment->index);
    }
    if (request->kind != STRATEGY_MULTI_WORKER_MIRRORED && environment->tasks > 1) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s is for one task and this job has %u; use cadre_strategy_multi_worker_mirrored or "
            "cadre_strategy_default",
            kinds[request->kind], environment->tasks);
    }
    return CADRE_OK;
}

/* The driver is opened only when a name requires its devices. */
static struct device_inventory inventory_for(const char *const names[], size_t count)
{
    return devices_name_gpus(names, count) ? devices_inventory()
                                           : (struct device_inventory){.gpus = 0};
}

static cadre_status choose_devices(const struct request *request,
    const struct environment *environment, struct device_list *ret_list, struct cadre_error *error)
{
    CADRE_ASSERT(request->devices != NULL || request->device_count == 0);
    const struct device_host host = program_host();
    if (request->devices == NULL) {
        const struct device_inventory inventory = devices_inventory_default();
        gpus_hint_idle(environment);
        uint32_t count = environment->replicas != 0 ? environment->replicas
                         : request->replicas != 0   ? request->replicas
                                                    : devices_default(&inventory);
        return devices_of_count(&inventory, &host, count, ret_list, error);
    }
    const struct device_inventory inventory =
        inventory_for(request->devices, request->device_count);
    CADRE_TRY(devices_of_names(&inventory, &host, request->function, request->devices,
        request->device_count, ret_list, error));
    if (environment->replicas != 0 && environment->replicas != ret_list->count) {
        uint32_t count = ret_list->count;
        device_list_clear(ret_list);
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was given %u device%s, and the job was started with %u replicas in each task; "
            "start it with as many (`--replicas`, CADRE_REPLICAS)",
            request->function, count, count == 1 ? "" : "s", environment->replicas);
    }
    return CADRE_OK;
}

/* Central storage alone has a parameter device. */
static cadre_status choose_parameter(const struct request *request,
    const struct device_list *compute, struct device_list *ret_list, struct cadre_error *error)
{
    CADRE_ASSERT(compute->count > 0);
    if (request->kind != STRATEGY_CENTRAL_STORAGE) {
        return CADRE_OK;
    }
    const struct device_host host = program_host();
    const struct device_inventory all = devices_inventory_default();
    const char *only = all.gpus == 1 && compute->count == 1 ? compute->names[0] : "CPU:0";
    const char *const names[] = {request->parameter != NULL ? request->parameter : only};
    const struct device_inventory inventory = inventory_for(names, 1);
    return devices_of_names(&inventory, &host, request->function, names, 1, ret_list, error);
}

/* To the terminal of a program started by hand. */
static void print_devices(const cadre_strategy *strategy)
{
    static const char *const kinds[] = {[STRATEGY_ONE_DEVICE] = "a strategy of one device",
        [STRATEGY_MIRRORED] = "a mirrored strategy",
        [STRATEGY_MULTI_WORKER_MIRRORED] = "a strategy of several tasks",
        [STRATEGY_CENTRAL_STORAGE] = "a strategy with central storage"};
    char replicas[DEVICES_TEXT_BYTES];
    char variables[DEVICES_TEXT_BYTES];
    CADRE_ASSERT(strategy->kind != STRATEGY_PARAMETER_SERVER);
    if (!strategy->environment->by_hand || !show_redraws()) {
        return;
    }
    const struct device_list *stored = strategy_parameter_devices(strategy);
    bool apart = stored != &strategy->devices;
    show_note("%s: its replicas here are on %s%s%s", kinds[strategy->kind],
        devices_text(&strategy->devices, replicas), apart ? ", its variables on " : "",
        apart ? devices_text(stored, variables) : "");
}

static cadre_status strategies_create(
    const struct request *request, cadre_strategy **ret_strategy, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    CADRE_ASSERT(request->kind != STRATEGY_PARAMETER_SERVER);
    const struct environment *environment = program_environment();
    struct strategy_config shape = {.kind = request->kind,
        .environment = environment,
        .hook_tables = strategy_hook_tables,
        .hook_table_count = strategy_hook_table_count};
    CADRE_TRY(strategy_check_program(request->function, error));
    if (request->kind == STRATEGY_MULTI_WORKER_MIRRORED) {
        CADRE_TRY(program_choose_part(CLUSTER_PEERS, error));
    }
    CADRE_TRY(check_tasks(request, environment, error));
    CADRE_TRY(choose_devices(request, environment, &shape.devices, error));
    cadre_status status = choose_parameter(request, &shape.devices, &shape.parameter, error);
    if (status != CADRE_OK) {
        device_list_clear(&shape.devices);
        return status;
    }
    CADRE_TRY(strategy_create(&shape, request->function, &call, ret_strategy, error));
    print_devices(*ret_strategy);
    return CADRE_OK;
}

static cadre_status create_public(const struct request *request, cadre_strategy **ret_strategy)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_strategy, request->function, "ret_strategy", &error);
    if (status == CADRE_OK) {
        *ret_strategy = NULL;
        status = context_require_cross(request->function, &error);
    }
    if (status == CADRE_OK) {
        status = strategies_create(request, ret_strategy, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_strategy_default(cadre_strategy **ret_strategy)
{
    const struct environment *environment = program_environment();
    if (environment != NULL && (environment->role != ROLE_NONE || program_has_ps_cluster() ||
                                   strcmp(environment->strategy, "parameter_server") == 0)) {
        return cadre_strategy_parameter_server(NULL, ret_strategy);
    }
    bool mirrored =
        environment != NULL && (strcmp(environment->strategy, "mirrored") == 0 ||
                                   (environment->strategy[0] == '\0' && environment->tasks == 1));
    const struct request request = {.function = __func__,
        .kind = mirrored ? STRATEGY_MIRRORED : STRATEGY_MULTI_WORKER_MIRRORED};
    return create_public(&request, ret_strategy);
}

cadre_status cadre_strategy_mirrored(uint32_t replicas, cadre_strategy **ret_strategy)
{
    const struct request request = {
        .function = __func__, .kind = STRATEGY_MIRRORED, .replicas = replicas};
    return create_public(&request, ret_strategy);
}

cadre_status cadre_strategy_multi_worker_mirrored(uint32_t replicas, cadre_strategy **ret_strategy)
{
    const struct request request = {
        .function = __func__, .kind = STRATEGY_MULTI_WORKER_MIRRORED, .replicas = replicas};
    return create_public(&request, ret_strategy);
}

/* A list that was given, even if it is empty. */
static const char *const *list_of(const char *const devices[])
{
    static const char *const none[1];
    return devices != NULL ? devices : none;
}

cadre_status cadre_strategy_mirrored_devices(
    const char *const devices[], size_t count, cadre_strategy **ret_strategy)
{
    const struct request request = {.function = __func__,
        .kind = STRATEGY_MIRRORED,
        .devices = list_of(devices),
        .device_count = devices == NULL ? 0 : count};
    return create_public(&request, ret_strategy);
}

cadre_status cadre_strategy_one_device(const char *device, cadre_strategy **ret_strategy)
{
    const struct request request = {
        .function = __func__, .kind = STRATEGY_ONE_DEVICE, .devices = &device, .device_count = 1};
    struct cadre_error error = {0};
    cadre_status status = argument_require(device, __func__, "device", &error);
    if (status != CADRE_OK) {
        if (ret_strategy != NULL) {
            *ret_strategy = NULL;
        }
        return api_return(status, &error);
    }
    return create_public(&request, ret_strategy);
}

cadre_status cadre_strategy_central_storage(const char *const compute_devices[], size_t count,
    const char *parameter_device, cadre_strategy **ret_strategy)
{
    bool listed = compute_devices != NULL || count > 0;
    const struct request request = {.function = __func__,
        .kind = STRATEGY_CENTRAL_STORAGE,
        .devices = listed ? list_of(compute_devices) : NULL,
        .device_count = compute_devices == NULL ? 0 : count,
        .parameter = parameter_device};
    return create_public(&request, ret_strategy);
}

/* One of a strategy's lists of devices. */
static cadre_status list_of_strategy(const cadre_strategy *strategy, cadre_device_list which,
    const struct device_list **ret_list, struct cadre_error *error)
{
    if (!strategy_is_registered(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_strategy_devices was called %s; make a strategy first",
            strategy == NULL ? "without a strategy" : "after the strategy had ended");
    }
    if (which != CADRE_WORKER_DEVICES && which != CADRE_PARAMETER_DEVICES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_strategy_devices was called for list %d; there is no such list, use "
            "CADRE_WORKER_DEVICES or CADRE_PARAMETER_DEVICES",
            (int)which);
    }
    *ret_list =
        which == CADRE_WORKER_DEVICES ? &strategy->devices : strategy_parameter_devices(strategy);
    return CADRE_OK;
}

cadre_status cadre_strategy_devices(const cadre_strategy *strategy, cadre_device_list which,
    const char *const **ret_devices, uint32_t *ret_count)
{
    struct cadre_error error = {0};
    const struct device_list *list = NULL;
    cadre_status status = argument_require(ret_devices, __func__, "ret_devices", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_count, __func__, "ret_count", &error);
    }
    if (status == CADRE_OK) {
        status = list_of_strategy(strategy, which, &list, &error);
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    *ret_devices = list->pointers;
    *ret_count = list->count;
    return CADRE_OK;
}
