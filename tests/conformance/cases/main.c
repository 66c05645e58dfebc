/* SPDX-License-Identifier: Apache-2.0
 * conformance_cases FILE...: runs the cases of the files, one line for each that does not pass, and
 * "N passed, N failed, N skipped" at the end. Exit status 1 when one failed, 2 for a file that
 * cannot be read. With --logical-gpus first only cases of logical devices, which are GPUs then;
 * exit status 1 also when none passed. With --skips README first the cases that are skipped must be
 * those of the table there ("| `area/name` | why |"): exit status 1 for each that is in one of the
 * two alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "composites.h"

#define ERRORS "error", "raises"
#define STEPS  "steps", "steps_prefix", "then", ERRORS

/* `expects`: what may be expected, for nothing else is compared. Empty: the area looks itself. */
static const struct {
    const char *name;
    void (*run)(struct conformance_case *self);
    const char *expects[12];
} areas[] = {
    {"all_reduce", area_all_reduce, {"per_replica", "grad_per_replica", ERRORS}},
    {"auto_shard", area_auto_shard, {"elements", "elements_prefix", ERRORS}},
    {"batch_sizes", area_batch_sizes, {"per_worker"}},
    {"checkpoint", area_checkpoint, {"saved", "restored_components", ERRORS}},
    {"closure_queue", area_closure_queue, {"results"}},
    {"cluster_spec", area_cluster_spec, {"results", "each", "valid", ERRORS}},
    {"compute_batch_size", area_compute_batch_size, {"results"}},
    {"coordinator", area_coordinator, {"joins", "fetch", "reads", "done", ERRORS}},
    {"cross_device_ops", area_cross_device_ops, {"results", "pack_lengths", "called", ERRORS}},
    {"dataset_from_function", area_dataset_from_function, {STEPS}},
    {"device_name", area_device_name, {"results", ERRORS}},
    {"distribute_dataset", area_distribute_dataset, {STEPS}},
    {"element_spec", area_element_spec, {"per_replica_shapes", ERRORS}},
    {"fault_tolerance", area_coordinator, {"fetches", "reads", "read_at_least", ERRORS}},
    {"gather", area_gather, {"result", "results", "grad_per_replica", ERRORS}},
    {"in_closure", area_in_closure, {NULL}},
    {"input_context", area_input_context, {"per_replica_batch", ERRORS}},
    {"input_options", area_input_options, {STEPS}},
    {"iterators", area_iterators, {"elements"}},
    {"iteration_end", area_iteration_end, {NULL}},
    {"loss_scaling", area_loss_scaling, {"result", "per_replica", ERRORS}},
    {"late_variable", area_late_variable,
        {"got", "values", "components", "kinds", "absent", "position"}},
    {"learning_rate_schedule", area_learning_rate_schedule, {"rates", ERRORS}},
    {"local_results", area_local_results, {"tuple", "regrouped", ERRORS}},
    {"logical_devices", area_logical_devices,
        {"accepted", "runs_on_logical_device", "pieces", "pieces_per_dim", "copies", "result",
            "each", ERRORS}},
    {"lookup", area_lookup, {STEPS, "values", "size"}},
    {"print", area_print, {"text", ERRORS}},
    {"optimizer", area_optimizer,
        {"values", "history", "slots", "iterations", "learning_rate", ERRORS}},
    {"optimizer_moved", area_optimizer_moved, {"values", ERRORS}},
    {"per_worker_dataset", area_per_worker_dataset, {STEPS}},
    {"partitioner", area_partitioner, {"results", ERRORS}},
    {"preprocessing", area_preprocessing, {"values", "vocabulary", "dtype", "one_of", ERRORS}},
    {"ps_placement", area_ps_placement, {"ps_task", "shards", ERRORS}},
    {"rebatch_sizes", area_rebatch_sizes,
        {"elements", "elements_prefix", "static_batch_dim", ERRORS}},
    {"rebatch_split", area_rebatch_split,
        {"elements", "elements_prefix", "static_batch_dim", ERRORS}},
    {"reduce", area_reduce, {"result", "example_weights", ERRORS}},
    {"resolver", area_resolver,
        {"task_type", "task_id", "num_workers", "num_ps", "masters", "hosts", "cluster", ERRORS}},
    {"restore", area_restore, {"values", "missing", "unused", ERRORS}},
    {"run", area_run, {"per_replica", "result_map", ERRORS}},
    {"scope", area_scope, {"answers", ERRORS}},
    {"sharded_variable", area_sharded_variable,
        {"shards", "nonzero", "owner_shard", "results", ERRORS}},
    {"strategy_setup", area_strategy_setup,
        {"worker_devices", "parameter_devices", "non_slot_devices", "update_non_slot_runs_on",
            "result_devices", "reduced_device", "num_replicas_in_sync", "ids", ERRORS}},
    {"structures", area_structures, {"names", "steps", "results", ERRORS}},
    {"training_loop", area_training_loop,
        {"totals", "ends_with", "final", "steps", "product", "a", ERRORS}},
    {"values_from_function", area_values_from_function, {"per_replica", ERRORS}},
    {"variable", area_variable,
        {"components", "components_after", "reads", "cross_read", "kind", "single_value",
            "component_names", ERRORS}},
};

static unsigned long counts[3]; /* by verdict */
static json_t *skipped;         /* the ids of those that were, each true; NULL: not collected */
static bool logical_gpus;

void case_run_area(struct conformance_case *self, const char *area)
{
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) {
        if (strcmp(areas[i].name, area) == 0) {
            if (areas[i].expects[0] == NULL || case_knows(self, self->expect, areas[i].expects)) {
                areas[i].run(self);
            }
            return;
        }
    }
    case_skip(self, "%s: a part of the library that this runner does not ask", area);
}

static void run_case(const json_t *object, size_t number)
{
    static const char *const words[] = {"", "FAILED ", "skipped"};
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *area = json_string_value(json_object_get(object, "area"));
    struct conformance_case self = {.given = json_object_get(object, "given"),
        .expect = json_object_get(object, "expect"),
        .wants_gpus = logical_gpus};
    if (logical_gpus && (area == NULL || strcmp(area, "logical_devices") != 0)) {
        return;
    }
    if (area == NULL || !json_is_object(self.given) || !json_is_object(self.expect)) {
        case_skip(&self, "it is no object with \"area\", \"given\" and \"expect\"");
    } else {
        case_run_area(&self, area);
    }
    case_end(&self);
    counts[self.verdict]++;
    if (self.verdict == VERDICT_SKIPPED && skipped != NULL && id != NULL) {
        json_object_set_new(skipped, id, json_true());
    }
    if (self.verdict != VERDICT_PASSED) {
        char unnamed[32];
        snprintf(unnamed, sizeof unnamed, "case %zu", number + 1);
        printf("%s %s: %s\n", words[self.verdict], id != NULL ? id : unnamed, self.why);
        fflush(stdout);
    }
}

static bool run_file(const char *path)
{
    json_error_t error;
    json_t *cases = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_array(cases)) {
        fprintf(stderr, "%s: %s\n", path,
            cases == NULL ? error.text : "the file holds no list of cases");
        if (cases == NULL && error.line > 0) {
            fprintf(stderr, "%s: line %d, column %d\n", path, error.line, error.column);
        }
        json_decref(cases);
        return false;
    }
    for (size_t i = 0; i < json_array_size(cases); i++) {
        run_case(json_array_get(cases, i), i);
    }
    json_decref(cases);
    return true;
}

/* The rows of the table whose first cell is a case's id. Each takes its case out of `skipped`; true
 * when nothing is left on either side. */
static bool compare_skips(const char *path)
{
    char line[1024];
    char id[256];
    bool same = true;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        int end = 0;
        bool row = sscanf(line, "| `%255[a-z0-9_/]` | %n", id, &end) == 1 && end > 0 &&
                   strchr(id, '/') != NULL;
        if (row && (strlen(line + end) < 10 || json_object_del(skipped, id) != 0)) {
            printf("FAILED  %s: it is listed in %s, and is not skipped, or no reason is given\n",
                id, path);
            same = false;
        }
    }
    fclose(file);
    const char *left;
    json_t *ignored;
    json_object_foreach(skipped, left, ignored)
    {
        printf("FAILED  %s: it is skipped, and %s does not say why\n", left, path);
        same = false;
    }
    return same;
}

int main(int argc, char **argv)
{
    bool readable = true;
    if (argc == 4 && strcmp(argv[1], "--checkpoint") == 0) {
        return checkpoint_process(argv[2], argv[3]);
    }
    const char *readme = argc > 3 && strcmp(argv[1], "--skips") == 0 ? argv[2] : NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: conformance_cases [--logical-gpus | --skips README] FILE...\n");
        return 2;
    }
    /* TensorFlow's components of a variable without aggregation may differ; not checked. */
    setenv("CADRE_VERIFY_STATE", "off", 1);
    logical_gpus = strcmp(argv[1], "--logical-gpus") == 0;
    skipped = readme != NULL ? json_object() : NULL;
    for (int i = readme != NULL ? 3 : logical_gpus ? 2 : 1; i < argc; i++) {
        readable = run_file(argv[i]) && readable;
    }
    bool listed = readme == NULL || compare_skips(readme);
    json_decref(skipped);
    printf("%lu passed, %lu failed, %lu skipped\n", counts[VERDICT_PASSED], counts[VERDICT_FAILED],
        counts[VERDICT_SKIPPED]);
    bool none = logical_gpus && counts[VERDICT_PASSED] == 0;
    return !readable ? 2 : counts[VERDICT_FAILED] > 0 || none || !listed;
}
