/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "worker/library/runtime/closures/closure.h"

static void release_json(void *value)
{
    json_decref(value);
}

static void close_inputs(void *pointer)
{
    struct distributed_input **inputs = pointer;
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        distributed_input_close(inputs[i]);
    }
    free(inputs);
}

void cluster_make(struct conformance_case *self, uint32_t workers, uint32_t replicas,
    const char *structure, struct cluster *ret_cluster)
{
    *ret_cluster = (struct cluster){
        .self = self, .workers = workers, .replicas = replicas, .structure = structure};
    ret_cluster->inputs = calloc(WORKERS_MAX, sizeof(struct distributed_input *));
    if (ret_cluster->inputs == NULL) {
        abort();
    }
    case_keep(self, ret_cluster->inputs, close_inputs);
}

static void begin(struct conformance_case *self, struct steps *steps)
{
    *steps = (struct steps){.list = json_array()};
    case_keep(self, steps->list, release_json);
}

static cadre_status published(const struct cadre_error *error, cadre_status status)
{
    struct cadre_error copy = *error;
    copy.code = status;
    return cadre_error_publish(&copy);
}

/* One step of all workers. *ret_step is NULL where it does not exist. */
static cadre_status read_step(struct cluster *cluster, uint64_t number, json_t **ret_step)
{
    struct cadre_error error = {0};
    json_t *step = json_array();
    uint64_t present = 0;
    uint64_t slots = 0;
    bool partial = true;
    bool agrees = false;
    cadre_status status = CADRE_OK;
    for (uint32_t w = 0; w < cluster->workers && status == CADRE_OK; w++) {
        struct distributed_batch batch = {0};
        struct distributed_input *input = cluster->inputs[w];
        status = distributed_input_read(input, 0, number, &batch, &error);
        partial = partial && distributed_input_gives_partial(input);
        agrees = agrees || distributed_input_agrees(input);
        json_t *worker = json_array();
        for (uint32_t r = 0; status == CADRE_OK && r < batch.replicas; r++) {
            json_array_append_new(
                worker, value_of_components(batch.elements[r].tensors, cluster->structure));
        }
        json_array_append_new(step, worker);
        present += batch.present;
        slots += batch.replicas;
        distributed_batch_clear(&batch);
    }
    bool lost = present < slots && !partial;
    if (status == CADRE_OK && (lost || (agrees && present == 0))) {
        status = cadre_error_set(&error, CADRE_OUT_OF_RANGE, "the end");
    }
    if (status != CADRE_OK) {
        json_decref(step);
        return published(&error, status);
    }
    *ret_step = step;
    return CADRE_OK;
}

void cluster_read(struct cluster *cluster, uint64_t most, struct steps *ret_steps)
{
    begin(cluster->self, ret_steps);
    for (uint64_t i = 0; i < most && ret_steps->status == CADRE_OK; i++) {
        json_t *step = NULL;
        ret_steps->status = read_step(cluster, i, &step);
        json_array_append_new(ret_steps->list, step); /* NULL appends nothing */
    }
}

/* --- through the public functions --- */

static bool library_begun;

static void release_strategy(void *strategy)
{
    cadre_strategy_release(strategy);
}

bool case_library(struct conformance_case *self)
{
    static const char *const unset[] = {"CADRE_SOCKET", "CADRE_TASKS", "CADRE_TASKS_MIN",
        "CADRE_REPLICAS", "CADRE_RESTORE", "CADRE_CHECKPOINT_EVERY", "CADRE_CHECKPOINT_DIR"};
    for (size_t i = 0; !library_begun && i < sizeof unset / sizeof unset[0]; i++) {
        unsetenv(unset[i]);
    }
    setenv("CADRE_WORKERS", CASE_WORKERS, 1); /* of strategies with parameter servers */
    setenv("CADRE_SERVERS", CASE_SERVERS, 1);
    library_begun = library_begun || case_ok(self, cadre_init(NULL, NULL), "cadre_init");
    return library_begun;
}

cadre_strategy *case_servers(struct conformance_case *self, uint64_t shards)
{
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = shards > 0 ? CADRE_PARTITIONER_FIXED : CADRE_PARTITIONER_NONE,
            .shards = shards}};
    cadre_strategy *strategy = NULL;
    if (!case_library(self) || !case_ok(self, cadre_strategy_parameter_server(&options, &strategy),
                                   "cadre_strategy_parameter_server")) {
        return NULL;
    }
    cadre_show_progress(strategy, false);
    case_keep(self, strategy, release_strategy);
    return strategy;
}

static cadre_strategy *keep_strategy(struct conformance_case *self, cadre_strategy *strategy)
{
    cadre_show_progress(strategy, false);
    case_keep(self, strategy, release_strategy);
    return strategy;
}

cadre_strategy *case_strategy(struct conformance_case *self, uint32_t replicas)
{
    cadre_strategy *strategy = NULL;
    if (closure_current() != NULL) { /* that of its worker, which is to have so many */
        strategy = cadre_strategy_current();
        if (cadre_strategy_local_replicas(strategy) != replicas) {
            case_fail(self, "the worker has %u replicas, and the case %u",
                cadre_strategy_local_replicas(strategy), replicas);
            strategy = NULL;
        }
        return strategy;
    }
    if (!case_library(self) ||
        !case_ok(self, cadre_strategy_mirrored(replicas, &strategy), "cadre_strategy_mirrored")) {
        return NULL;
    }
    return keep_strategy(self, strategy);
}

cadre_strategy *case_strategy_of(
    struct conformance_case *self, const char *strategy, uint32_t replicas)
{
    static const char *const devices[] = {"CPU:0", "CPU:1", "CPU:2", "CPU:3"};
    cadre_strategy *made = NULL;
    if (strategy == NULL || strcmp(strategy, "mirrored") == 0) {
        return case_strategy(self, replicas);
    }
    if (!case_library(self)) {
        return NULL;
    }
    if (strcmp(strategy, "default") == 0) {
        return cadre_strategy_current();
    }
    if (strcmp(strategy, "central_storage") == 0 && replicas <= 4) {
        return case_ok(self, cadre_strategy_central_storage(devices, replicas, "CPU:0", &made),
                   "cadre_strategy_central_storage")
                   ? keep_strategy(self, made)
                   : NULL;
    }
    if (strcmp(strategy, "one_device") != 0) {
        case_skip(self, "a strategy \"%s\" is not made by this runner", strategy);
        return NULL;
    }
    return case_ok(self, cadre_strategy_one_device("CPU:0", &made), "cadre_strategy_one_device")
               ? keep_strategy(self, made)
               : NULL;
}

cadre_strategy *case_strategy_gpus(
    struct conformance_case *self, uint32_t replicas, uint32_t stride)
{
    enum { GPUS_MAX = 64 };
    char names[GPUS_MAX][16];
    const char *devices[GPUS_MAX];
    cadre_strategy *strategy = NULL;
    for (uint32_t i = 0; i < replicas && i < GPUS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "GPU:%u", i * stride);
        devices[i] = names[i];
    }
    if (replicas > GPUS_MAX || !case_library(self) ||
        !case_ok(self, cadre_strategy_mirrored_devices(devices, replicas, &strategy),
            "cadre_strategy_mirrored_devices")) {
        return NULL;
    }
    return keep_strategy(self, strategy);
}

json_t *public_step(const cadre_per_replica *batch, const char *structure)
{
    json_t *worker = json_array();
    uint32_t components = cadre_per_replica_components(batch);
    for (uint32_t r = 0; r < cadre_per_replica_count(batch); r++) {
        cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
        for (uint32_t i = 0; i < components && i < CADRE_ELEMENT_TENSORS_MAX; i++) {
            tensors[i] = cadre_local_results(batch, i)[r];
        }
        json_array_append_new(worker, value_of_components(tensors, structure));
    }
    return json_pack("[o]", worker);
}

void public_read(struct conformance_case *self, cadre_distributed_dataset *distributed,
    const char *structure, uint64_t most, struct steps *ret_steps)
{
    begin(self, ret_steps);
    if (!cadre_next_epoch(distributed, 1, NULL)) {
        cadre_status status = cadre_distributed_status(distributed);
        ret_steps->status = status == CADRE_OK ? CADRE_INTERNAL : status;
        return;
    }
    for (uint64_t i = 0; i < most && ret_steps->status == CADRE_OK; i++) {
        cadre_per_replica *batch = NULL;
        ret_steps->status = cadre_next(distributed, &batch);
        if (ret_steps->status == CADRE_OK) {
            json_array_append_new(ret_steps->list, public_step(batch, structure));
        }
    }
}

/* --- comparing --- */

uint64_t steps_wanted(const json_t *expect)
{
    const json_t *prefix = json_object_get(expect, "steps_prefix");
    return prefix != NULL ? json_array_size(prefix) : STEPS_MAX;
}

bool steps_check(struct conformance_case *self, const struct steps *steps)
{
    const json_t *error = case_wanted_error(self->expect);
    const json_t *all = json_object_get(self->expect, "steps");
    const json_t *prefix = json_object_get(self->expect, "steps_prefix");
    const char *then = json_string_value(json_object_get(self->expect, "then"));
    bool failed = steps->status != CADRE_OK && steps->status != CADRE_OUT_OF_RANGE;
    if (error != NULL && all == NULL && prefix == NULL) {
        return steps->status == CADRE_OK
                   ? case_fail(self, "an error is expected, and there are steps")
                   : case_check_error(self, error, steps->status, steps->early);
    }
    if (failed && (then == NULL || strcmp(then, cadre_status_name(steps->status)) != 0)) {
        return case_fail(self, "after %zu steps: %s: %s", json_array_size(steps->list),
            cadre_status_name(steps->status), cadre_error_message());
    }
    if (all == NULL && prefix == NULL) {
        return case_skip(self, "neither \"steps\" nor \"steps_prefix\" nor \"error\" is expected");
    }
    if (!case_equal(self, "steps", all != NULL ? all : prefix, steps->list)) {
        return false;
    }
    return all == NULL || then == NULL || strcmp(then, cadre_status_name(steps->status)) == 0 ||
           case_fail(self, "then: expected %s, got %s", then, cadre_status_name(steps->status));
}
