/* SPDX-License-Identifier: Apache-2.0
 * What closures do on the replicas of their worker: the cases of other areas inside of one, and
 * workers' own datasets. Workers are threads of this process. */
#include <string.h>

#include "areas.h"
#include "cadre/cluster_coordinator.h"
#include "replicas.h"
#include "worker/library/runtime/program/program.h"

/* What the closure at hand does, while the case waits for it. */
static struct {
    struct conformance_case *self;
    const char *area;
    cadre_dataset *data;
    const char *structure;
    bool plain;
    cadre_feed consumption;
    uint64_t most;
    struct steps *steps;
} play;

/* --- closures --- */

static cadre_status run_inside(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    case_run_area(play.self, play.area);
    return CADRE_OK;
}

static cadre_status make_data(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)context;
    (void)user;
    *ret_data = cadre_dataset_retain(play.data);
    return CADRE_OK;
}

/* An element as a step of one worker, whose value is all that it has. */
static cadre_status next_plain(cadre_closure *closure)
{
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    uint32_t count = 0;
    CADRE_TRY(cadre_closure_next(closure, 0, tensors, CADRE_ELEMENT_TENSORS_MAX, &count));
    json_array_append_new(
        play.steps->list, json_pack("[[o]]", value_of_components(tensors, play.structure)));
    for (uint32_t i = 0; i < count; i++) {
        cadre_tensor_release(tensors[i]);
    }
    return CADRE_OK;
}

static cadre_status pass_on(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const uint32_t *count = user;
    (void)replica;
    for (uint32_t i = 0; i < *count; i++) {
        outputs[i] = cadre_tensor_retain(inputs[i]);
    }
    return CADRE_OK;
}

/* A batch, through the step of all replicas. */
static cadre_status next_batch(cadre_closure *closure)
{
    cadre_per_replica *batch = NULL;
    cadre_per_replica *passed[CADRE_OUTPUTS_MAX] = {NULL};
    CADRE_TRY(cadre_closure_batch(closure, 0, play.consumption, &batch));
    uint32_t count = cadre_per_replica_components(batch);
    cadre_status status =
        cadre_run(cadre_strategy_current(), pass_on, &count, batch, count, passed);
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) { /* each had what is in the batch */
        cadre_tensor *const *in = cadre_local_results(batch, i);
        cadre_tensor *const *out = cadre_local_results(passed[i], 0);
        bool same = memcmp(in, out, cadre_per_replica_count(batch) * sizeof *in) == 0;
        status = same ? CADRE_OK : CADRE_INTERNAL;
    }
    if (status == CADRE_OK) {
        json_array_append_new(play.steps->list, public_step(batch, play.structure));
    }
    cadre_per_replica_release(batch);
    return status;
}

static cadre_status read_data(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_status status = CADRE_OK;
    (void)outputs;
    (void)user;
    for (uint64_t i = 0; i < play.most && status == CADRE_OK; i++) {
        status = play.plain ? next_plain(closure) : next_batch(closure);
    }
    return status;
}

static bool register_all(struct conformance_case *self)
{
    static bool registered;
    bool good = registered || (case_ok(self, cadre_function_register("inside", run_inside, NULL),
                                   "cadre_function_register") &&
                                  case_ok(self, cadre_function_register("read", read_data, NULL),
                                      "cadre_function_register") &&
                                  case_ok(self, cadre_dataset_register("data", make_data, NULL),
                                      "cadre_dataset_register"));
    registered = registered || good;
    return good;
}

/* --- the case --- */

/* The number that a job is started with, for a strategy that is made after it and its workers. */
static void start_with(json_int_t replicas)
{
    struct environment *environment = (struct environment *)(uintptr_t)program_environment();
    environment->replicas = (uint32_t)replicas;
}

static void start_as_before(void *unused)
{
    (void)unused;
    start_with(0);
}

static cadre_strategy *make_strategy(struct conformance_case *self, json_int_t replicas)
{
    static char any;
    if (!case_library(self) || !register_all(self)) {
        return NULL;
    }
    case_keep(self, &any, start_as_before); /* when the strategy has ended */
    start_with(replicas);
    return case_servers(self, 0);
}

static cadre_status call(cadre_strategy *strategy, const char *function,
    const cadre_closure_argument *arguments, uint32_t count)
{
    cadre_status status = cadre_schedule(strategy, function, arguments, count, NULL);
    return status == CADRE_OK ? cadre_join(strategy) : status;
}

void area_in_closure(struct conformance_case *self)
{
    static const char *const known[] = {"area", "replicas", "given", NULL};
    json_int_t replicas = 0;
    const char *area = json_string_value(json_object_get(self->given, "area"));
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "replicas", 1, REPLICAS_MAX, 1, &replicas)) {
        return;
    }
    cadre_strategy *strategy = make_strategy(self, replicas);
    if (strategy == NULL) {
        return;
    }
    if (cadre_strategy_num_replicas_in_sync(strategy) != (uint32_t)replicas) {
        case_fail(self, "the chief counts other replicas");
        return;
    }
    struct conformance_case inside = {
        .given = json_object_get(self->given, "given"), .expect = self->expect};
    play.self = &inside;
    play.area = area == NULL ? "" : area;
    if (case_ok(self, call(strategy, "inside", NULL, 0), "the closure")) {
        self->verdict = inside.verdict;
        memcpy(self->why, inside.why, sizeof self->why);
    }
    case_end(&inside);
}

static bool parse_feed(struct conformance_case *self)
{
    const char *consumption = json_string_value(json_object_get(self->given, "feed"));
    play.plain = consumption != NULL && strcmp(consumption, "plain") == 0;
    play.consumption = consumption != NULL && strcmp(consumption, "parts") == 0
                           ? CADRE_FEED_PARTS
                           : CADRE_FEED_ELEMENTS;
    return play.plain || play.consumption == CADRE_FEED_PARTS ||
           (consumption != NULL && strcmp(consumption, "elements") == 0) ||
           case_skip(self, "\"feed\" is not known");
}

void area_per_worker_dataset(struct conformance_case *self)
{
    static const char *const known[] = {"dataset", "replicas", "feed", NULL};
    struct case_dataset dataset;
    struct steps steps = {.list = json_array()};
    json_int_t replicas = 0;
    cadre_per_worker *data = NULL;
    case_keep(self, steps.list, case_release_json);
    if (!case_knows(self, self->given, known) || !parse_feed(self) ||
        !case_number(self, self->given, "replicas", 1, REPLICAS_MAX, 1, &replicas) ||
        !dataset_build(self, json_object_get(self->given, "dataset"), CADRE_F32, &dataset)) {
        return;
    }
    cadre_strategy *strategy = make_strategy(self, replicas);
    play.data = dataset.data;
    play.structure = dataset.structure;
    play.most = steps_wanted(self->expect);
    play.steps = &steps;
    if (strategy == NULL || !case_ok(self, cadre_create_per_worker_dataset(strategy, "data", &data),
                                "cadre_create_per_worker_dataset")) {
        return;
    }
    const cadre_closure_argument argument = {.per_worker = data};
    steps.status = call(strategy, "read", &argument, 1);
    steps.early = json_array_size(steps.list) == 0;
    steps_check(self, &steps);
}
