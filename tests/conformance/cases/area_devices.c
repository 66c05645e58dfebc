/* SPDX-License-Identifier: Apache-2.0
 * Which devices a strategy has, and the logical ones of a replica. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "replicas.h"
#include "worker/library/runtime/devices/devices.h"

/* --- strategies of hosts that are described --- */

/* The names as a case writes them, "GPU:0". */
static json_t *short_names(const struct device_list *list)
{
    json_t *names = json_array();
    for (uint32_t i = 0; i < list->count; i++) {
        const char *device = strstr(list->pointers[i], "device:");
        json_array_append_new(names, json_string(device == NULL ? "?" : device + 7));
    }
    return names;
}

/* The devices of one host, when the case names none. */
static bool devices_of_host(
    struct conformance_case *self, const json_t *host, struct device_list *ret_list)
{
    static const char *const known[] = {"GPU", "CPU", NULL};
    const struct device_host local = {.job = "localhost"};
    struct cadre_error error = {0};
    json_int_t gpus = 0;
    json_int_t cpus = 0;
    if (!case_knows(self, host, known) || !case_number(self, host, "GPU", 0, 256, 0, &gpus) ||
        !case_number(self, host, "CPU", 0, 1024, 1, &cpus)) {
        return false;
    }
    const struct device_inventory inventory = {.gpus = (uint32_t)gpus};
    if (devices_of_count(&inventory, &local, devices_default(&inventory), ret_list, &error) !=
        CADRE_OK) {
        return case_fail(self, "%s", error.text);
    }
    return true;
}

static void check_hosts(struct conformance_case *self, const json_t *hosts)
{
    json_t *devices = case_keep(self, json_array(), case_release_json);
    json_t *counts = case_keep(self, json_array(), case_release_json);
    size_t i;
    json_t *host;
    json_array_foreach(hosts, i, host)
    {
        struct device_list list = {0};
        if (!devices_of_host(self, host, &list)) {
            return;
        }
        json_array_append_new(devices, short_names(&list));
        json_array_append_new(counts, json_integer(list.count));
        device_list_clear(&list);
    }
    if (json_object_get(self->expect, "worker_devices") != NULL) {
        case_equal(self, "the devices", json_object_get(self->expect, "worker_devices"), devices);
    }
    if (json_object_get(self->expect, "num_replicas_in_sync") != NULL) {
        case_equal(self, "the numbers of replicas",
            json_object_get(self->expect, "num_replicas_in_sync"), counts);
    }
}

/* A name as a case writes it. */
static json_t *short_name(const char *name)
{
    const char *device = strstr(name, "device:");
    return json_string(device == NULL ? name : device + 7);
}

static cadre_status note_device(
    const char *device, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)inputs;
    (void)ret_output;
    json_array_append_new(user, short_name(device));
    return CADRE_OK;
}

/* The lists of devices that a case expects of the strategy. */
static void check_lists(struct conformance_case *self, cadre_strategy *strategy)
{
    static const struct {
        const char *key;
        cadre_device_list which;
    } lists[] = {{"worker_devices", CADRE_WORKER_DEVICES},
        {"parameter_devices", CADRE_PARAMETER_DEVICES},
        {"non_slot_devices", CADRE_PARAMETER_DEVICES}};
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        const json_t *wanted = json_object_get(self->expect, lists[k].key);
        const char *const *got = NULL;
        uint32_t count = 0;
        if (wanted == NULL ||
            !case_ok(self, cadre_strategy_devices(strategy, lists[k].which, &got, &count),
                lists[k].key)) {
            continue;
        }
        json_t *list = case_keep(self, json_array(), case_release_json);
        for (uint32_t i = 0; i < count; i++) {
            json_array_append_new(list, short_name(got[i]));
        }
        case_equal(self, lists[k].key, wanted, list);
    }
    const json_t *called = json_object_get(self->expect, "update_non_slot_runs_on");
    json_t *list = case_keep(self, json_array(), case_release_json);
    if (called != NULL &&
        case_ok(self, cadre_update_non_slot(strategy, note_device, list, NULL, NULL), "update")) {
        case_equal(self, "update_non_slot", called, list);
    }
}

static cadre_status give_id(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    return cadre_tensor_from_f32((float)cadre_replica_id(replica), &outputs[0]);
}

/* Where the outputs of a step are, and their sum. */
static void check_results(struct conformance_case *self, cadre_strategy *strategy)
{
    const json_t *wanted = json_object_get(self->expect, "result_devices");
    cadre_per_replica *ids = NULL;
    cadre_tensor *total = NULL;
    if (wanted == NULL || self->verdict != VERDICT_PASSED ||
        !case_ok(self, cadre_run(strategy, give_id, NULL, NULL, 1, &ids), "cadre_run")) {
        return;
    }
    json_t *list = case_keep(self, json_array(), case_release_json);
    for (uint32_t i = 0; i < cadre_per_replica_count(ids); i++) {
        json_array_append_new(
            list, json_string(cadre_tensor_device(cadre_local_results(ids, 0)[i])));
    }
    if (!case_equal(self, "the results", wanted, list) ||
        !case_ok(self, cadre_reduce(strategy, CADRE_SUM, ids, CADRE_AXIS_NONE, &total), "reduce")) {
        return;
    }
    case_keep(self, total, case_release_tensor);
    json_t *device = case_keep(self, json_string(cadre_tensor_device(total)), case_release_json);
    case_equal(self, "the sum", json_object_get(self->expect, "reduced_device"), device);
}

/* Devices that the program names, on this host. */
static void check_named(
    struct conformance_case *self, const json_t *names, bool central, const char *variable)
{
    const char *devices[REPLICAS_MAX];
    size_t count = 0;
    cadre_strategy *strategy = NULL;
    for (; count < json_array_size(names) && count < REPLICAS_MAX; count++) {
        devices[count] = json_string_value(json_array_get(names, count));
    }
    if (case_strategy(self, 1) == NULL) { /* the library is begun */
        return;
    }
    cadre_status status = central
                              ? cadre_strategy_central_storage(devices, count, variable, &strategy)
                              : cadre_strategy_mirrored_devices(devices, count, &strategy);
    if (!case_verdict(self, status, "the constructor")) {
        cadre_strategy_release(strategy);
        return;
    }
    check_lists(self, strategy);
    check_results(self, strategy);
    json_t *n = case_keep(
        self, json_integer(cadre_strategy_num_replicas_in_sync(strategy)), case_release_json);
    cadre_strategy_release(strategy);
    if (json_object_get(self->expect, "num_replicas_in_sync") != NULL) {
        case_equal(self, "the replicas", json_object_get(self->expect, "num_replicas_in_sync"), n);
    }
}

/* Replicas of several workers: as many on each as it has devices, ids in order of the workers. */
static void check_workers(struct conformance_case *self)
{
    json_int_t workers = 0;
    json_int_t gpus = 0;
    if (!case_number(self, self->given, "num_workers", 1, 1024, 1, &workers) ||
        !case_number(self, self->given, "gpus_per_worker", 0, 256, 0, &gpus)) {
        return;
    }
    const struct device_inventory inventory = {.gpus = (uint32_t)gpus};
    json_int_t each = devices_default(&inventory);
    json_t *n = case_keep(self, json_integer(workers * each), case_release_json);
    json_t *ids = case_keep(self, json_array(), case_release_json);
    for (json_int_t w = 0; w < workers; w++) {
        json_t *own = json_array();
        for (json_int_t r = 0; r < each; r++) {
            json_array_append_new(own, json_integer(w * each + r));
        }
        json_array_append_new(ids, own);
    }
    if (json_object_get(self->expect, "num_replicas_in_sync") != NULL) {
        case_equal(self, "the replicas", json_object_get(self->expect, "num_replicas_in_sync"), n);
    }
    if (json_object_get(self->expect, "ids") != NULL) {
        case_equal(self, "the ids", json_object_get(self->expect, "ids"), ids);
    }
}

void area_strategy_setup(struct conformance_case *self)
{
    static const char *const known[] = {
        "strategy", "devices", "hosts", "num_workers", "gpus_per_worker", "parameter_device", NULL};
    const char *kind = json_string_value(json_object_get(self->given, "strategy"));
    const char *variable = json_string_value(json_object_get(self->given, "parameter_device"));
    const json_t *devices = json_object_get(self->given, "devices");
    const json_t *hosts = json_object_get(self->given, "hosts");
    if (!case_knows(self, self->given, known)) {
        return;
    }
    if (kind != NULL && strcmp(kind, "multi_worker_mirrored") == 0) {
        check_workers(self);
    } else if (kind != NULL && strcmp(kind, "mirrored") == 0 && json_is_array(devices)) {
        check_named(self, devices, false, NULL);
    } else if (kind != NULL && strcmp(kind, "central_storage") == 0 && json_is_array(devices)) {
        check_named(self, devices, true, variable);
    } else if (kind != NULL && strcmp(kind, "mirrored") == 0 && json_is_array(hosts)) {
        check_hosts(self, hosts);
    } else {
        case_skip(self, "a strategy that this runner does not set up");
    }
}

/* --- logical devices --- */

struct placing {
    struct conformance_case *self;
    const json_t *call;
    cadre_status status;
    cadre_placement placement;
    char message[512];
    uint32_t ran_on; /* where a function of an assigned tensor ran */
};

/* In the replica's memory. */
static cadre_tensor *zeros(
    cadre_replica *replica, const json_t *shape, size_t rank, const json_t *dimensions)
{
    cadre_tensor *tensor = NULL;
    int64_t dims[CADRE_RANK_MAX] = {0};
    size_t count = shape != NULL ? json_array_size(shape) : rank;
    for (size_t i = 0; i < count && i < CADRE_RANK_MAX; i++) {
        json_int_t pieces = json_integer_value(json_array_get(dimensions, i));
        dims[i] = shape != NULL ? json_integer_value(json_array_get(shape, i))
                                : (pieces > 0 ? 2 * pieces : 2);
    }
    cadre_tensor_create_on(replica, CADRE_F32, (uint32_t)count, dims, &tensor);
    return tensor;
}

/* What each logical device has of it is in the memory of that device. */
static cadre_status look_at_pieces(
    cadre_replica *replica, cadre_tensor *tensor, const cadre_placement *placement)
{
    bool all = placement->kind != CADRE_PLACEMENT_ASSIGNED;
    for (uint32_t i = 0; i < placement->pieces; i++) {
        uint32_t device = all ? i : placement->logical_device;
        cadre_tensor *piece;
        CADRE_TRY(cadre_placement_piece(tensor, placement, device, &piece));
        const char *is = cadre_tensor_device(piece);
        cadre_tensor_release(piece);
        char wanted[CADRE_DEVICE_NAME_BYTES];
        CADRE_TRY(cadre_logical_device_name(
            replica, cadre_replica_gpu(replica) < 0 ? 0 : device, wanted));
        if (strcmp(is, wanted) != 0) {
            return cadre_fail(CADRE_INTERNAL, "the piece of logical device %u is on %s, not on %s",
                device, is, wanted);
        }
    }
    return CADRE_OK;
}

static cadre_status note_where(cadre_replica *replica, uint32_t logical_device, void *user)
{
    (void)replica;
    ((struct placing *)user)->ran_on = logical_device;
    return CADRE_OK;
}

static cadre_status place(cadre_replica *replica, struct placing *placing)
{
    const json_t *call = placing->call;
    const char *name = json_string_value(json_object_get(call, "call"));
    const json_t *dimensions = json_object_get(call, "partition_dimensions");
    const json_t *rank = json_object_get(call, "tensor_rank");
    json_int_t id = json_integer_value(json_object_get(call, "logical_device_id"));
    cadre_tensor *tensor = zeros(replica, json_object_get(call, "shape"),
        rank != NULL ? (size_t)json_integer_value(rank) : 1, dimensions);
    cadre_status status = CADRE_UNIMPLEMENTED;
    if (name != NULL && strcmp(name, "assign") == 0) {
        status = cadre_assign_to_logical_device(replica, tensor, (int32_t)id, &placing->placement);
        if (status == CADRE_OK) {
            status =
                cadre_logical_run(replica, placing->placement.logical_device, note_where, placing);
        }
    } else if (name != NULL && strcmp(name, "split") == 0) {
        int32_t pieces[16] = {0};
        size_t count = json_array_size(dimensions);
        for (size_t i = 0; i < count && i < 16; i++) {
            pieces[i] = (int32_t)json_integer_value(json_array_get(dimensions, i));
        }
        status = cadre_split_to_logical_devices(
            replica, tensor, pieces, (uint32_t)count, &placing->placement);
    } else if (name != NULL && strcmp(name, "replicate") == 0) {
        status = cadre_replicate_to_logical_devices(replica, tensor, &placing->placement);
    }
    if (status == CADRE_OK) {
        status = look_at_pieces(replica, tensor, &placing->placement);
    }
    cadre_tensor_release(tensor);
    return status;
}

static cadre_status place_in_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    if (cadre_replica_id(replica) == 0) {
        struct placing *placing = user;
        placing->status = place(replica, placing);
        snprintf(placing->message, sizeof placing->message, "%s", cadre_error_message());
    }
    return CADRE_OK;
}

static cadre_strategy *strategy_with(struct conformance_case *self)
{
    json_int_t devices = 0;
    json_int_t replicas = 0;
    cadre_device_assignment *assignment = NULL;
    if (!case_number(self, self->given, "logical_devices_per_replica", 1, CADRE_LOGICAL_DEVICES_MAX,
            1, &devices) ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 1, &replicas)) {
        return NULL;
    }
    const cadre_topology mesh = {.rank = 2, .shape = {(int32_t)replicas, (int32_t)devices}};
    const cadre_assignment_options options = {
        .rank = 2, .computation_shape = {1, (int32_t)devices}, .num_replicas = (uint32_t)replicas};
    cadre_strategy *strategy = self->wants_gpus
                                   ? case_strategy_gpus(self, (uint32_t)replicas, (uint32_t)devices)
                                   : case_strategy(self, (uint32_t)replicas);
    if (strategy == NULL ||
        !case_ok(self, cadre_device_assignment_build(&mesh, &options, &assignment), "build")) {
        return NULL;
    }
    cadre_status status = cadre_strategy_set_device_assignment(strategy, assignment);
    cadre_device_assignment_release(assignment);
    return case_ok(self, status, "cadre_strategy_set_device_assignment") ? strategy : NULL;
}

/* y = v * x on one device, z = w * y on another. */
struct product {
    float v;
    float w;
    float x;
    uint32_t on[2];
    float y[REPLICAS_MAX];
    float z[REPLICAS_MAX];
};

static cadre_status multiply_on(cadre_replica *replica, uint32_t logical_device, void *user)
{
    struct product *product = user;
    uint32_t id = cadre_replica_id(replica);
    if (logical_device == product->on[0]) {
        product->y[id] = product->v * product->x;
    } else {
        product->z[id] = product->w * product->y[id];
    }
    return CADRE_OK;
}

static cadre_status multiply(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    struct product *product = user;
    CADRE_TRY(cadre_logical_run(replica, product->on[0], multiply_on, product));
    CADRE_TRY(cadre_logical_run(replica, product->on[1], multiply_on, product));
    return cadre_tensor_from_f32(product->z[cadre_replica_id(replica)], &outputs[0]);
}

static void two_stages(struct conformance_case *self, cadre_strategy *strategy)
{
    const json_t *v = json_object_get(self->given, "v");
    const json_t *w = json_object_get(self->given, "w");
    const char *text = json_string_value(json_object_get(self->given, "fn"));
    const char *then = json_string_value(json_object_get(self->given, "then"));
    struct product product = {
        .v = (float)json_number_value(json_object_get(v, "value")),
        .w = (float)json_number_value(json_object_get(w, "value")),
        .x = (float)json_number_value(json_object_get(self->given, "x")),
        .on = {(uint32_t)json_integer_value(json_object_get(v, "logical_device")),
            (uint32_t)json_integer_value(json_object_get(w, "logical_device"))},
    };
    cadre_per_replica *output;
    cadre_tensor *sum = NULL;
    if (text == NULL || strstr(text, "y = v*x on device 0; z = w*y on device 1") == NULL ||
        then == NULL || strcmp(then, "reduce SUM") != 0 || product.on[0] == product.on[1]) {
        case_skip(self, "a function that is not known");
        return;
    }
    if (!case_ok(self, cadre_run(strategy, multiply, &product, NULL, 1, &output), "cadre_run") ||
        !case_ok(self, cadre_reduce(strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum), "sum")) {
        return;
    }
    case_keep(self, sum, case_release_tensor);
    case_equal(self, "the sum", json_object_get(self->expect, "result"), case_json(self, sum));
}

static void check_placing(struct conformance_case *self, const struct placing *placing)
{
    const json_t *expect = self->expect;
    const cadre_placement *placement = &placing->placement;
    json_t *pieces = case_keep(self, json_integer(placement->pieces), case_release_json);
    json_t *each = case_keep(self, json_array(), case_release_json);
    json_t *on = case_keep(self, json_integer(placing->ran_on), case_release_json);
    for (uint32_t i = 0; i < placement->rank; i++) {
        json_array_append_new(each, json_integer(placement->partition_dimensions[i]));
    }
    if (json_object_get(expect, "pieces") != NULL) {
        case_equal(self, "the pieces", json_object_get(expect, "pieces"), pieces);
    }
    if (json_object_get(expect, "copies") != NULL) {
        case_equal(self, "the copies", json_object_get(expect, "copies"), pieces);
    }
    if (json_object_get(expect, "pieces_per_dim") != NULL) {
        case_equal(self, "the pieces", json_object_get(expect, "pieces_per_dim"), each);
    }
    if (json_object_get(expect, "runs_on_logical_device") != NULL) {
        case_equal(self, "the device", json_object_get(expect, "runs_on_logical_device"), on);
    }
}

void area_logical_devices(struct conformance_case *self)
{
    static const char *const known[] = {"logical_devices_per_replica", "num_replicas", "call",
        "logical_device_id", "partition_dimensions", "tensor_rank", "shape", "fn", "calls", "v",
        "w", "x", "then", NULL};
    const json_t *calls = json_object_get(self->given, "calls");
    const json_t *each = case_wanted_error(json_object_get(self->expect, "each"));
    const json_t *error = each != NULL ? each : case_wanted_error(self->expect);
    if (!case_knows(self, self->given, known)) {
        return;
    }
    cadre_strategy *strategy = strategy_with(self);
    if (strategy == NULL) {
        return;
    }
    if (json_object_get(self->given, "v") != NULL) {
        two_stages(self, strategy);
        return;
    }
    size_t count = calls != NULL ? json_array_size(calls) : 1;
    for (size_t i = 0; i < count && self->verdict == VERDICT_PASSED; i++) {
        struct placing placing = {
            .self = self, .call = calls != NULL ? json_array_get(calls, i) : self->given};
        if (!case_ok(self, cadre_run(strategy, place_in_step, &placing, NULL, 0, NULL), "step")) {
            return;
        }
        if (error != NULL && placing.status != CADRE_OK) {
            case_check_error(self, error, placing.status, true);
        } else if (error != NULL || placing.status != CADRE_OK) {
            case_fail(self, "call %zu gave %s (%s)", i, cadre_status_name(placing.status),
                placing.message);
        } else {
            check_placing(self, &placing);
        }
    }
}
