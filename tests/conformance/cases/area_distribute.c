/* SPDX-License-Identifier: Apache-2.0
 * Distributed input as all workers of a cluster see it: each worker's input is opened in this
 * process. What one worker alone can see is read through the public functions too. */
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "steps.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/sharding/auto_shard.h"
#include "worker/library/input/batching/rebatch.h"
#include "worker/library/input/batching/rebatch_dataset.h"

static void release_json(void *value)
{
    json_decref(value);
}

/* What cases of distributed datasets say. */
struct setting {
    struct case_dataset dataset;
    json_int_t workers;
    json_int_t replicas; /* of each */
    cadre_shard_policy policy;
    cadre_rebatch rebatch;
    bool sizes;    /* the sizes rule, whatever the policy would make of it */
    bool as_it_is; /* no rebatching at all */
    bool optional; /* get_next_as_optional: also steps that not all replicas have a part in, and the
                      end is no error */
};

static bool take_rule(struct conformance_case *self, struct setting *setting)
{
    const char *rule = json_string_value(json_object_get(self->given, "rule"));
    const json_t *rebatch = json_object_get(self->given, "rebatch");
    if (rebatch != NULL && !json_is_boolean(rebatch)) {
        return case_skip(self, "\"rebatch\" is no truth value");
    }
    setting->as_it_is = json_is_false(rebatch);
    setting->rebatch = CADRE_REBATCH_TENSORFLOW;
    if (rule != NULL && strcmp(rule, "split") == 0) {
        setting->rebatch = CADRE_REBATCH_SPLIT;
    } else if (rule != NULL && strcmp(rule, "sizes") == 0) {
        setting->sizes = true;
    } else if (rule != NULL) {
        return case_skip(self, "the rule \"%s\" is not known", rule);
    }
    return true;
}

static bool is_optional(const struct conformance_case *self)
{
    const char *loop = json_string_value(json_object_get(self->given, "loop"));
    return loop != NULL && strcmp(loop, "optional") == 0;
}

static bool take_setting(
    struct conformance_case *self, const char *const known[], struct setting *ret_setting)
{
    const char *dtype = json_string_value(json_object_get(self->given, "dtype"));
    cadre_dtype reals = dtype != NULL && strcmp(dtype, "float64") == 0 ? CADRE_F64 : CADRE_F32;
    *ret_setting = (struct setting){.optional = is_optional(self)};
    const json_t *given = self->given;
    return case_knows(self, given, known) && take_rule(self, ret_setting) &&
           case_policy(self, "policy", &ret_setting->policy) &&
           case_number(self, given, "num_workers", 1, WORKERS_MAX, 1, &ret_setting->workers) &&
           case_number(
               self, given, "replicas_per_worker", 1, REPLICAS_MAX, 1, &ret_setting->replicas) &&
           dataset_build(self, json_object_get(given, "dataset"), reals, &ret_setting->dataset);
}

/* --- opening --- */

static struct distributed_layout layout_of(const struct setting *setting, uint32_t worker)
{
    return (struct distributed_layout){.workers = (uint32_t)setting->workers,
        .worker_index = worker,
        .replicas = (uint32_t)setting->replicas,
        .policy = setting->policy,
        .rebatch = setting->rebatch,
        .partial_steps = setting->optional,
        .name = "case"};
}

/* The pipeline of one worker, put together of its parts: where the library, asked for the whole,
 * would choose another rule. */
static cadre_status open_parts(const struct setting *setting, uint32_t worker,
    struct distributed_input **ret_input, struct cadre_error *error)
{
    cadre_dataset *data = cadre_dataset_retain(setting->dataset.data);
    uint64_t n = (uint64_t)(setting->workers * setting->replicas);
    struct auto_shard shard = {.policy = setting->policy,
        .workers = (uint32_t)setting->workers,
        .worker = worker,
        .replicas = n};
    if (setting->policy == CADRE_SHARD_AUTO) {
        struct policy_choice choice;
        cadre_status status = dataset_choose_policy(data, shard.workers, &choice, error);
        if (status != CADRE_OK) {
            cadre_dataset_release(data);
            return status;
        }
        shard.policy = choice.policy;
    }
    bool after = shard.policy == CADRE_SHARD_DATA; /* pieces are shared out, else files */
    cadre_status status = CADRE_OK;
    if (!after) {
        cadre_dataset *own = NULL;
        status = dataset_auto_shard(data, &shard, &own, NULL, error);
        data = status == CADRE_OK ? own : NULL;
    }
    if (status == CADRE_OK && setting->sizes && n > 1) {
        cadre_element_spec spec;
        status = dataset_spec(data, &spec, error);
        int64_t rows = status == CADRE_OK ? dataset_batch_size(data, &spec) : -1;
        int64_t *sizes = calloc((size_t)n, sizeof *sizes);
        struct size_list list = size_list_make(
            rows < 0 ? 1 : rows, (uint64_t)setting->workers, (uint64_t)setting->replicas, worker);
        for (uint64_t i = 0; sizes != NULL && i < n; i++) {
            sizes[i] = size_list_piece(&list, i, INT64_MAX).count;
        }
        data = dataset_rebatch_sizes(data, sizes, (size_t)n, false);
        free(sizes);
    }
    if (status == CADRE_OK && after && setting->workers > 1) {
        data = cadre_dataset_shard(data, setting->workers, worker);
    }
    struct distributed_layout layout = layout_of(setting, worker);
    status = status == CADRE_OK
                 ? distributed_input_open_pipelines(&data, 1, &layout, ret_input, error)
                 : status;
    cadre_dataset_release(data);
    return status;
}

/* Whether the library has to be asked for the parts. */
static bool in_parts(const struct setting *setting)
{
    struct policy_choice choice = {.policy = setting->policy};
    if (setting->policy == CADRE_SHARD_AUTO) {
        dataset_choose_policy(setting->dataset.data, (uint32_t)setting->workers, &choice, NULL);
    }
    bool data = choice.policy == CADRE_SHARD_DATA;
    return setting->as_it_is || (setting->sizes && data);
}

/* Opens all workers. False: one failed; the case has its verdict. */
static bool open_cluster(
    struct conformance_case *self, const struct setting *setting, struct cluster *ret_cluster)
{
    struct cadre_error error = {0};
    bool parts = in_parts(setting);
    cluster_make(self, (uint32_t)setting->workers, (uint32_t)setting->replicas,
        setting->dataset.structure, ret_cluster);
    for (uint32_t w = 0; w < ret_cluster->workers; w++) {
        const struct distributed_layout layout = layout_of(setting, w);
        cadre_status status = parts ? open_parts(setting, w, &ret_cluster->inputs[w], &error)
                                    : distributed_input_open(setting->dataset.data, &layout,
                                          &ret_cluster->inputs[w], &error);
        if (status != CADRE_OK) {
            const json_t *wanted = case_wanted_error(self->expect);
            error.code = status;
            cadre_error_publish(&error);
            return wanted != NULL && !json_is_null(wanted)
                       ? (case_check_error(self, wanted, status, true), false)
                       : case_ok(self, status, "distributing");
        }
    }
    return true;
}

/* The same with a strategy of this process; NULL: it failed, and the case has its verdict. */
static cadre_distributed_dataset *distribute_here(
    struct conformance_case *self, const struct setting *setting)
{
    cadre_distributed_dataset *distributed = NULL;
    cadre_strategy *strategy = case_strategy(self, (uint32_t)setting->replicas);
    if (strategy == NULL) {
        return NULL;
    }
    const cadre_input_options options = {.auto_shard = setting->policy,
        .rebatch = setting->rebatch,
        .partial_steps = setting->optional};
    cadre_status status = cadre_distribute_dataset(
        strategy, cadre_dataset_retain(setting->dataset.data), &options, &distributed);
    const json_t *wanted = case_wanted_error(self->expect);
    if (status != CADRE_OK && wanted != NULL && !json_is_null(wanted)) {
        case_check_error(self, wanted, status, true);
    } else {
        case_ok(self, status, "cadre_distribute_dataset");
    }
    return distributed;
}

/* --- steps --- */

void area_distribute_dataset(struct conformance_case *self)
{
    static const char *const known[] = {
        "dataset", "num_workers", "replicas_per_worker", "policy", "rule", "rebatch", "loop", NULL};
    struct setting setting;
    struct cluster cluster;
    struct steps steps;
    uint64_t most = steps_wanted(self->expect);
    if (!take_setting(self, known, &setting) || !open_cluster(self, &setting, &cluster)) {
        return;
    }
    cluster_read(&cluster, most, &steps);
    if (!steps_check(self, &steps) || setting.workers > 1 || in_parts(&setting)) {
        return;
    }
    cadre_distributed_dataset *distributed = distribute_here(self, &setting);
    if (distributed != NULL) {
        public_read(self, distributed, setting.dataset.structure, most, &steps);
        steps_check(self, &steps);
    }
}

/* --- pipelines of functions --- */

static cadre_status first_pipeline(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)context;
    *ret_data = cadre_dataset_retain(user);
    return CADRE_OK;
}

static void read_function_here(struct conformance_case *self, const struct setting *setting)
{
    struct steps steps;
    cadre_distributed_dataset *distributed = NULL;
    const cadre_input_options options = {.partial_steps = setting->optional};
    cadre_strategy *strategy = case_strategy(self, (uint32_t)setting->replicas);
    if (strategy == NULL || !case_ok(self,
                                cadre_distribute_datasets_from_function(strategy, first_pipeline,
                                    setting->dataset.data, &options, &distributed),
                                "cadre_distribute_datasets_from_function")) {
        return;
    }
    public_read(self, distributed, setting->dataset.structure, steps_wanted(self->expect), &steps);
    steps_check(self, &steps);
}

void area_dataset_from_function(struct conformance_case *self)
{
    static const char *const known[] = {"per_worker_datasets", "replicas_per_worker", "loop", NULL};
    const json_t *datasets = json_object_get(self->given, "per_worker_datasets");
    struct setting setting = {
        .workers = (json_int_t)json_array_size(datasets), .optional = is_optional(self)};
    struct cluster cluster;
    struct steps steps;
    struct cadre_error error = {0};
    if (!case_knows(self, self->given, known) ||
        !case_number(
            self, self->given, "replicas_per_worker", 1, REPLICAS_MAX, 1, &setting.replicas)) {
        return;
    }
    if (setting.workers < 1 || setting.workers > WORKERS_MAX) {
        case_skip(self, "pipelines of %lld workers", (long long)setting.workers);
        return;
    }
    char *structure = case_alloc(self, STRUCTURE_BYTES, 1);
    cluster_make(self, (uint32_t)setting.workers, (uint32_t)setting.replicas, structure, &cluster);
    for (uint32_t w = 0; w < cluster.workers; w++) {
        const struct distributed_layout layout = layout_of(&setting, w);
        if (!dataset_build(self, json_array_get(datasets, w), CADRE_F32, &setting.dataset)) {
            return;
        }
        memcpy(structure, setting.dataset.structure, STRUCTURE_BYTES);
        cadre_status status = distributed_input_open_pipelines(
            &setting.dataset.data, 1, &layout, &cluster.inputs[w], &error);
        if (status != CADRE_OK) {
            const json_t *wanted = case_wanted_error(self->expect);
            cadre_error_publish(&error);
            if (wanted != NULL) {
                case_check_error(self, wanted, status, true);
            } else {
                case_ok(self, status, "distributing pipelines");
            }
            return;
        }
    }
    cluster_read(&cluster, steps_wanted(self->expect), &steps);
    if (steps_check(self, &steps) && setting.workers == 1) {
        read_function_here(self, &setting);
    }
}

/* --- the end --- */

static double total_of(const json_t *value)
{
    double total = json_number_value(value);
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        total += total_of(json_array_get(value, i));
    }
    return total;
}

/* Reads with a fresh input of the kind that this case can be read with. */
static bool read_once(struct conformance_case *self, const struct setting *setting, uint64_t most,
    struct steps *ret_steps)
{
    struct cluster cluster;
    if (!open_cluster(self, setting, &cluster)) {
        return false;
    }
    cluster_read(&cluster, most, ret_steps);
    return true;
}

static void check_end(struct conformance_case *self, const struct steps *steps, bool optional)
{
    const json_t *run = json_object_get(self->expect, "steps_run");
    const json_t *error = json_object_get(self->expect, "error");
    json_t *got = json_integer((json_int_t)json_array_size(steps->list));
    case_keep(self, got, release_json);
    if (run != NULL && !case_equal(self, "steps that are run", run, got)) {
        return;
    }
    bool fails = steps->status != CADRE_OK && !(optional && steps->status == CADRE_OUT_OF_RANGE);
    if (error != NULL && !json_is_null(error)) {
        if (fails) {
            case_check_error(self, error, steps->status, steps->early);
        } else {
            case_fail(self, "an error is expected, and the loop ended without one");
        }
    } else if (fails) {
        case_fail(self, "no error is expected, got %s: %s", cadre_status_name(steps->status),
            cadre_error_message());
    }
}

/* Sums over all that is delivered by each kind of loop: keys that name the loop. */
static void check_totals(struct conformance_case *self, const struct setting *setting,
    const json_t *totals, uint64_t most)
{
    for (void *at = json_object_iter((json_t *)totals); at != NULL;
         at = json_object_iter_next((json_t *)totals, at)) {
        const char *key = json_object_iter_key(at);
        struct setting own = *setting;
        own.optional = strstr(key, "optional") != NULL;
        if (strcmp(key, "note") == 0) {
            continue;
        }
        if ((!own.optional && strstr(key, "next") == NULL) ||
            !json_is_number(json_object_iter_value(at))) {
            case_skip(self, "the expected \"%s\" is not known", key);
            return;
        }
        struct steps steps;
        if (!read_once(self, &own, most, &steps)) {
            return;
        }
        json_t *got = strstr(key, "steps") != NULL
                          ? json_integer((json_int_t)json_array_size(steps.list))
                          : json_real(total_of(steps.list));
        case_keep(self, got, release_json);
        if (!case_equal(self, key, json_object_iter_value(at), got)) {
            return;
        }
    }
}

void area_iteration_end(struct conformance_case *self)
{
    static const char *const known[] = {"dataset", "num_workers", "replicas_per_worker", "policy",
        "rule", "rebatch", "loop", "max_steps", "api", NULL};
    struct setting setting;
    struct steps steps;
    json_int_t most = 0;
    if (!take_setting(self, known, &setting) ||
        !case_number(self, self->given, "max_steps", 0, STEPS_MAX, STEPS_MAX, &most)) {
        return;
    }
    const char *api = json_string_value(json_object_get(self->given, "api"));
    if (api != NULL && strstr(api, "function") != NULL) { /* one pipeline, as it is */
        setting.as_it_is = true;
        setting.policy = CADRE_SHARD_OFF;
    }
    if (json_object_get(self->expect, "steps_run") == NULL &&
        case_wanted_error(self->expect) == NULL) {
        const json_t *totals = json_object_get(self->expect, "totals");
        check_totals(self, &setting, totals != NULL ? totals : self->expect, (uint64_t)most);
        return;
    }
    if (!read_once(self, &setting, (uint64_t)most, &steps)) {
        return;
    }
    check_end(self, &steps, setting.optional);
    if (self->verdict != VERDICT_PASSED || setting.workers > 1 || in_parts(&setting)) {
        return;
    }
    cadre_distributed_dataset *distributed = distribute_here(self, &setting);
    if (distributed != NULL) {
        public_read(self, distributed, setting.dataset.structure, (uint64_t)most, &steps);
        check_end(self, &steps, setting.optional);
    }
}

/* --- types --- */

static json_t *shape_of(const cadre_tensor_spec *spec)
{
    json_t *shape = json_array();
    for (uint32_t axis = 0; axis < spec->rank; axis++) {
        json_array_append_new(
            shape, spec->dims[axis] < 0 ? json_null() : json_integer(spec->dims[axis]));
    }
    return shape;
}

static bool check_dtype(struct conformance_case *self, const cadre_element_spec *spec)
{
    static const struct {
        const char *name;
        cadre_dtype dtype;
    } dtypes[] = {{"int64", CADRE_I64}, {"float32", CADRE_F32}, {"float64", CADRE_F64},
        {"string", CADRE_STRING}, {"bool", CADRE_BOOL}};
    const char *name = json_string_value(json_object_get(self->given, "dtype"));
    for (size_t i = 0; name != NULL && i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            return spec->tensors[0].dtype == dtypes[i].dtype ||
                   case_fail(self, "dtype: expected %s, got %s", name,
                       cadre_dtype_name(spec->tensors[0].dtype));
        }
    }
    return true; /* one that JSON has no numbers of: the data were made of another, and shapes count
                  */
}

static void check_shapes(
    struct conformance_case *self, const struct setting *setting, const cadre_element_spec *spec)
{
    const json_t *wanted = json_object_get(self->expect, "per_replica_shapes");
    json_t *got = json_array();
    case_keep(self, got, release_json);
    for (size_t r = 0; r < json_array_size(wanted); r++) {
        json_t *shapes = spec->count == 1 ? shape_of(&spec->tensors[0]) : json_array();
        for (uint32_t i = 0; spec->count > 1 && i < spec->count; i++) {
            json_array_append_new(shapes, shape_of(&spec->tensors[i]));
        }
        json_array_append_new(got, shapes);
    }
    size_t count = json_array_size(wanted);
    if (count != (size_t)setting->replicas &&
        count != (size_t)(setting->replicas * setting->workers)) {
        case_skip(self, "%zu shapes for %lld replicas of %lld workers", count,
            (long long)setting->replicas, (long long)setting->workers);
    } else if (check_dtype(self, spec)) {
        case_equal(self, "shapes of the replicas", wanted, got);
    }
}

void area_element_spec(struct conformance_case *self)
{
    static const char *const known[] = {"dataset", "num_workers", "replicas_per_worker", "policy",
        "rule", "rebatch", "dtype", "via", "api", NULL};
    struct setting setting;
    struct cluster cluster;
    const char *via = json_string_value(json_object_get(self->given, "via"));
    const char *api = json_string_value(json_object_get(self->given, "api"));
    const char *how = via != NULL ? via : api != NULL ? api : "";
    if (!take_setting(self, known, &setting)) {
        return;
    }
    bool function = strstr(how, "function") != NULL;
    setting.optional = strstr(how, "optional") != NULL;
    bool plain = how[0] == '\0' || strstr(how, "dataset") != NULL ||
                 strstr(how, "iterator") != NULL || strstr(how, "next") != NULL;
    if (!function && !setting.optional && !plain) {
        case_skip(self, "the way \"%s\" is not known", how);
        return;
    }
    setting.as_it_is = setting.as_it_is || function;
    if (function) {
        setting.policy = CADRE_SHARD_OFF;
    }
    if (!open_cluster(self, &setting, &cluster)) {
        return;
    }
    cadre_element_spec spec = *distributed_input_spec(cluster.inputs[0]);
    check_shapes(self, &setting, &spec);
    if (self->verdict != VERDICT_PASSED || setting.workers > 1 || in_parts(&setting)) {
        return;
    }
    cadre_distributed_dataset *distributed = distribute_here(self, &setting);
    if (distributed != NULL &&
        case_ok(self, cadre_distributed_spec(distributed, &spec), "cadre_distributed_spec")) {
        check_shapes(self, &setting, &spec);
    }
}
