/* SPDX-License-Identifier: Apache-2.0
 * Closures that a coordinator schedules, as a transcript: workers and servers are threads of this
 * process, and a worker is killed by breaking its connection. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "areas.h"
#include "cadre/cluster_coordinator.h"
#include "cadre/served.h"
#include "replicas.h"
#include "worker/library/runtime/closures/scheduler.h"

#define TIMES_MAX 100

static atomic_uint begun; /* long closures, ever */
static atomic_bool go;    /* they may end */

/* --- functions of closures --- */

static cadre_status nothing(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static cadre_status fail(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    return cadre_fail(CADRE_INVALID_ARGUMENT, "the case wants it to fail");
}

/* x = 1; returns (x+1, (x+2, x+3), [x+4], {v: x}): the leaves, for a structure is the program's */
static cadre_status nested(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    static const int64_t leaves[] = {2, 3, 4, 5, 1};
    (void)closure;
    (void)user;
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        CADRE_TRY(cadre_tensor_from_i64(leaves[i], &outputs[i]));
    }
    return CADRE_OK;
}

static cadre_status add(float value)
{
    cadre_variable *v = NULL;
    cadre_tensor *tensor = NULL;
    CADRE_TRY(cadre_variable_find(NULL, "v", &v));
    CADRE_TRY(cadre_tensor_from_f32(value, &tensor));
    cadre_status status = cadre_variable_assign(NULL, v, CADRE_ASSIGN_ADD, tensor);
    cadre_tensor_release(tensor);
    return status;
}

/* v += next(iterator) */
static cadre_status add_next(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_tensor *next = NULL;
    uint32_t count = 0;
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_closure_next(closure, 0, &next, 1, &count));
    float value = *(const float *)cadre_tensor_const_data(next);
    cadre_tensor_release(next);
    return add(value);
}

static cadre_status iterate(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    return add(1);
}

static cadre_status iterate_long(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&go)) {
        sched_yield();
    }
    return iterate(closure, outputs, user);
}

static cadre_status read_number(cadre_variable *v, float *ret_value)
{
    cadre_tensor *value = NULL;
    CADRE_TRY(cadre_variable_value(NULL, v, NULL, &value));
    *ret_value = *(const float *)cadre_tensor_const_data(value);
    cadre_tensor_release(value);
    return CADRE_OK;
}

/* (v + 1, v - 1) */
static cadre_status around(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_variable *v = NULL;
    float value = 0;
    (void)closure;
    (void)user;
    CADRE_TRY(cadre_variable_find(NULL, "v", &v));
    CADRE_TRY(read_number(v, &value));
    CADRE_TRY(cadre_tensor_from_f32(value + 1, &outputs[0]));
    return cadre_tensor_from_f32(value - 1, &outputs[1]);
}

static cadre_status make_twos(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    static const float twos[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    const int64_t dims[] = {10};
    cadre_tensor *tensor = NULL;
    (void)context;
    (void)user;
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, twos, &tensor));
    *ret_data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return CADRE_OK;
}

static bool register_all(struct conformance_case *self)
{
    static bool registered;
    static const struct {
        const char *name;
        cadre_closure_function function;
    } functions[] = {{"nothing", nothing}, {"fail", fail}, {"nested", nested},
        {"add_next", add_next}, {"iterate", iterate}, {"iterate_long", iterate_long},
        {"around", around}};
    bool good = true;
    for (size_t i = 0; !registered && good && i < sizeof functions / sizeof functions[0]; i++) {
        good =
            case_ok(self, cadre_function_register(functions[i].name, functions[i].function, NULL),
                functions[i].name);
    }
    good = good && (registered || case_ok(self, cadre_dataset_register("twos", make_twos, NULL),
                                      "cadre_dataset_register"));
    registered = true;
    return good;
}

/* --- what a case says --- */

struct play {
    struct conformance_case *self;
    cadre_strategy *strategy;
    const char *function; /* that "schedule" means */
    cadre_variable *v;
    cadre_per_worker *twos;
    cadre_remote_value *value; /* "r" */
    json_t *joins;
    json_t *reads;
    json_t *fetches;
    json_t *done;
};

static void release_value(void *value)
{
    cadre_remote_value_release(value);
}

static bool schedule(struct play *play, const char *function, bool keeps)
{
    const cadre_closure_argument twos = {.per_worker = play->twos};
    bool iterates = strcmp(function, "add_next") == 0;
    cadre_remote_value **value = keeps ? &play->value : NULL;
    bool good = case_ok(play->self,
        cadre_schedule(play->strategy, function, iterates ? &twos : NULL, iterates ? 1 : 0, value),
        "cadre_schedule");
    if (good && keeps) {
        case_keep(play->self, play->value, release_value);
    }
    return good;
}

static bool schedule_times(struct play *play, const char *function, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        if (!schedule(play, function, false)) {
            return false;
        }
    }
    return true;
}

static bool join(struct play *play, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        atomic_store(&go, true);
        cadre_status status = cadre_join(play->strategy);
        json_array_append_new(play->joins,
            status == CADRE_OK ? json_string("ok")
                               : json_pack("{s:s}", "raises", cadre_status_name(status)));
    }
    return true;
}

static bool read_v(struct play *play)
{
    float value = 0;
    bool good = case_ok(play->self, read_number(play->v, &value), "cadre_variable_value");
    json_array_append_new(play->reads, json_real((double)value));
    return good;
}

static bool fetch(struct play *play)
{
    cadre_tensor *outputs[CADRE_OUTPUTS_MAX] = {NULL};
    uint32_t count = 0;
    json_t *list = json_array();
    json_array_append_new(play->fetches, list);
    if (play->value == NULL) {
        return case_skip(play->self, "a fetch of something that was not scheduled");
    }
    bool good = case_ok(
        play->self, cadre_fetch(play->value, outputs, CADRE_OUTPUTS_MAX, &count), "cadre_fetch");
    for (uint32_t i = 0; i < count; i++) {
        json_array_append(list, case_json(play->self, outputs[i]));
        cadre_tensor_release(outputs[i]);
    }
    return good;
}

static bool ask_done(struct play *play)
{
    bool done = false;
    bool good = case_ok(play->self, cadre_done(play->strategy, &done), "cadre_done");
    play->done = done ? json_true() : json_false();
    return good;
}

/* Its connection breaks; it dials again by itself. */
static bool kill_worker(bool while_running)
{
    while (while_running && atomic_load(&begun) < 4) {
        sched_yield();
    }
    while (!scheduler_drop(ps_job_current(), 0)) {
        sched_yield();
    }
    atomic_store(&go, true);
    return true;
}

/* "schedule ...": false: it is none of these. */
static bool act_schedule(struct play *play, const char *action, bool *ret_good)
{
    unsigned times = 0;
    char code[32];
    int end = 0;
    int length = (int)strlen(action);
    const char *function = NULL;
    if (sscanf(action, "schedule ok x%u%n", &times, &end) == 1 && end == length) {
        function = "nothing";
    } else if (sscanf(action, "schedule x%u (long)%n", &times, &end) == 1 && end == length) {
        function = "iterate_long";
    } else if (sscanf(action, "schedule x%u%n", &times, &end) == 1 && end == length) {
        function = play->function;
    } else if (sscanf(action, "schedule failing (%31[A-Z_])%n", code, &end) == 1 && end == length &&
               strcmp(code, "INVALID_ARGUMENT") == 0) {
        function = "fail";
        times = 1;
    }
    if (function == NULL || times > TIMES_MAX) {
        return false;
    }
    *ret_good = schedule_times(play, function, times);
    return true;
}

static bool act(struct play *play, const char *action)
{
    unsigned times = 1;
    int end = 0;
    bool good = false;
    if (act_schedule(play, action, &good)) {
        return good;
    }
    if (strcmp(action, "join") == 0 || (sscanf(action, "join x%u%n", &times, &end) == 1 &&
                                           action[end] == '\0' && times <= TIMES_MAX)) {
        return join(play, times);
    }
    if (strcmp(action, "r = schedule(f)") == 0) {
        return schedule(play, play->function, true);
    }
    if (strcmp(action, "r = schedule(returns (v+1, v-1), v = 0)") == 0) {
        return schedule(play, "around", true);
    }
    if (strcmp(action, "fetch(r)") == 0 || strcmp(action, "fetch r") == 0) {
        return fetch(play);
    }
    if (strcmp(action, "read v") == 0 || strcmp(action, "read iterations") == 0) {
        return read_v(play);
    }
    if (strcmp(action, "done") == 0) {
        return ask_done(play);
    }
    if (strcmp(action, "kill worker 0") == 0 || strcmp(action, "kill and restart worker 0") == 0) {
        return kill_worker(false);
    }
    return strcmp(action, "kill and restart worker 0 while running") == 0
               ? kill_worker(true)
               : case_skip(play->self, "the action \"%s\"", action);
}

/* What "f" means. */
static bool choose_function(struct play *play)
{
    static const struct {
        const char *text;
        const char *function;
    } known[] = {{"v += next(per_worker_iterator of [2]*10)", "add_next"},
        {"x = 1; returns (x+1, (x+2, x+3), [x+4], {v: x})", "nested"}};
    const char *text = json_string_value(json_object_get(play->self->given, "f"));
    play->function = "iterate";
    for (size_t i = 0; text != NULL && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(text, known[i].text) == 0) {
            play->function = known[i].function;
            return true;
        }
    }
    return text == NULL || case_skip(play->self, "the function \"%s\"", text);
}

/* --- what is expected --- */

/* Numbers of a structure, in the order in which the case lists them. */
static void flatten(const json_t *value, json_t *leaves)
{
    const char *key;
    size_t i;
    const json_t *part;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, part)
        {
            flatten(part, leaves);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, part)
        {
            flatten(part, leaves);
        }
    } else {
        json_array_append(leaves, (json_t *)(uintptr_t)value);
    }
}

static void check(struct play *play)
{
    struct conformance_case *self = play->self;
    const json_t *expect = self->expect;
    const json_t *wanted = NULL;
    if ((wanted = json_object_get(expect, "joins")) != NULL) {
        case_equal(self, "joins", wanted, play->joins);
    } else {
        size_t i;
        const json_t *answer;
        json_array_foreach(play->joins, i, answer)
        {
            if (!json_is_string(answer)) {
                case_fail(self, "join %zu failed: %s", i, cadre_error_message());
            }
        }
    }
    if ((wanted = json_object_get(expect, "reads")) != NULL) {
        case_equal(self, "reads", wanted, play->reads);
    }
    if ((wanted = json_object_get(expect, "read_at_least")) != NULL &&
        json_number_value(json_array_get(play->reads, 0)) < json_number_value(wanted)) {
        case_fail(self, "it is %g, less than %g", json_number_value(json_array_get(play->reads, 0)),
            json_number_value(wanted));
    }
    if ((wanted = json_object_get(expect, "fetches")) != NULL) {
        case_equal(self, "fetches", wanted, play->fetches);
    }
    if ((wanted = json_object_get(expect, "done")) != NULL) {
        case_equal(self, "done", wanted, play->done);
    }
    if ((wanted = json_object_get(expect, "fetch")) != NULL) {
        json_t *leaves = case_keep(self, json_array(), case_release_json);
        flatten(wanted, leaves);
        case_equal(self, "fetch", leaves, json_array_get(play->fetches, 0));
    }
}

static bool prepare(struct play *play)
{
    struct conformance_case *self = play->self;
    play->strategy = choose_function(play) && register_all(self) ? case_servers(self, 0) : NULL;
    play->joins = case_keep(self, json_array(), case_release_json);
    play->reads = case_keep(self, json_array(), case_release_json);
    play->fetches = case_keep(self, json_array(), case_release_json);
    atomic_store(&begun, 0);
    atomic_store(&go, false);
    return play->strategy != NULL &&
           case_ok(self,
               cadre_variable_create(play->strategy, "v", CADRE_F32, 0, NULL, NULL, &play->v),
               "cadre_variable_create") &&
           case_ok(self, cadre_create_per_worker_dataset(play->strategy, "twos", &play->twos),
               "cadre_create_per_worker_dataset");
}

void area_coordinator(struct conformance_case *self)
{
    static const char *const known[] = {"workers", "f", "actions", "script", NULL};
    struct play play = {.self = self};
    const json_t *actions = json_object_get(self->given, "actions");
    json_int_t workers = 0;
    size_t i;
    const json_t *action;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "workers", 1, 5, 5, &workers) || !prepare(&play)) {
        return;
    }
    actions = actions != NULL ? actions : json_object_get(self->given, "script");
    bool good = true;
    json_array_foreach(actions, i, action)
    {
        const char *text = json_string_value(action);
        good = good && (text != NULL ? act(&play, text) : case_skip(self, "an unknown action"));
    }
    atomic_store(&go, true);
    if (good) {
        check(&play);
    }
}
