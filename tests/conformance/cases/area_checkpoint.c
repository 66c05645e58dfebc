/* SPDX-License-Identifier: Apache-2.0
 * What a checkpoint holds of a variable, and what another program gets of it. A program goes on
 * from a checkpoint when it begins, so both are processes of their own: this runner, started again
 * with the case in a file. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "areas.h"
#include "replicas.h"

#define PATH_BYTES 4096

extern char **environ;

/* --- in the process of its own --- */

static cadre_aggregation aggregation_of(const json_t *object)
{
    static const char *const names[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
    const char *name = json_string_value(json_object_get(object, "aggregation"));
    for (int i = 0; i < 4; i++) {
        if (name != NULL && strcmp(name, names[i]) == 0) {
            return (cadre_aggregation)i;
        }
    }
    return CADRE_AGGREGATION_NONE;
}

static bool on_read(const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "synchronization"));
    return name != NULL && strcmp(name, "ON_READ") == 0;
}

static cadre_status write_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct {
        cadre_variable *variable;
        cadre_tensor **components;
    } *own = user;
    const cadre_tensor *value = own->components[cadre_replica_id(replica)];
    void *to = cadre_variable_write(replica, own->variable);
    if (to == NULL) {
        return CADRE_INTERNAL;
    }
    memcpy(to, cadre_tensor_const_data(value), cadre_tensor_bytes(value));
    return CADRE_OK;
}

static cadre_status read_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const cadre_variable *variable = user;
    return cadre_tensor_from_data(cadre_variable_dtype(variable), cadre_variable_rank(variable),
        cadre_variable_dims(variable), cadre_variable_read(replica, variable), &outputs[0]);
}

static json_t *value_json(const cadre_variable *variable)
{
    cadre_tensor *tensor = NULL;
    if (cadre_variable_read(NULL, variable) == NULL) {
        return json_null(); /* each replica has its own */
    }
    CADRE_CHECK(
        cadre_tensor_from_data(cadre_variable_dtype(variable), cadre_variable_rank(variable),
            cadre_variable_dims(variable), cadre_variable_read(NULL, variable), &tensor));
    json_t *json = value_of_tensor(tensor);
    cadre_tensor_release(tensor);
    return json;
}

/* A variable of the shape of `like`. */
static cadre_variable *create(
    cadre_strategy *strategy, const json_t *object, const cadre_tensor *like)
{
    cadre_variable *variable = NULL;
    const cadre_variable_options options = {
        .synchronization = on_read(object) ? CADRE_SYNC_ON_READ : CADRE_SYNC_ON_WRITE,
        .aggregation = aggregation_of(object)};
    CADRE_CHECK(cadre_variable_create(strategy, "v", cadre_tensor_dtype(like),
        cadre_tensor_rank(like), cadre_tensor_dims(like), &options, &variable));
    return variable;
}

static cadre_strategy *begin(uint32_t replicas)
{
    cadre_strategy *strategy = NULL;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_mirrored(replicas, &strategy));
    cadre_show_progress(strategy, false);
    return strategy;
}

static json_t *save(struct conformance_case *self)
{
    const json_t *object = json_object_get(self->given, "save");
    const json_t *components = json_object_get(object, "components");
    cadre_tensor *tensors[REPLICAS_MAX];
    size_t count = json_array_size(components);
    for (size_t i = 0; i < count; i++) {
        if (!case_tensor(self, json_array_get(components, i), CADRE_F32, &tensors[i])) {
            return NULL;
        }
    }
    cadre_strategy *strategy = begin((uint32_t)count);
    struct {
        cadre_variable *variable;
        cadre_tensor **components;
    } own = {.variable = create(strategy, object, tensors[0]), .components = tensors};
    CADRE_CHECK(cadre_run(strategy, write_own, &own, NULL, 0, NULL));
    json_t *total = value_json(own.variable);
    CADRE_CHECK(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
    return total;
}

static json_t *restore(struct conformance_case *self)
{
    const json_t *object = json_object_get(self->given, "restore");
    const json_t *components = json_object_get(json_object_get(self->given, "save"), "components");
    cadre_tensor *like = NULL;
    cadre_per_replica *outputs = NULL;
    json_int_t replicas = 0;
    if (!case_tensor(self, json_array_get(components, 0), CADRE_F32, &like) ||
        !case_number(self, object, "num_replicas", 1, REPLICAS_MAX, 1, &replicas)) {
        return NULL;
    }
    cadre_strategy *strategy = begin((uint32_t)replicas);
    cadre_variable *variable = create(strategy, object, like);
    CADRE_CHECK(cadre_run(strategy, read_own, variable, NULL, 1, &outputs));
    json_t *list = json_incref(case_results(self, outputs, 0));
    cadre_strategy_release(strategy);
    return list;
}

static bool is_sharded(const struct conformance_case *self)
{
    const json_t *kind = json_object_get(json_object_get(self->given, "save"), "kind");
    return kind != NULL && strcmp(json_string_value(kind), "sharded") == 0;
}

int checkpoint_process(const char *what, const char *path)
{
    json_t *object = json_load_file(path, 0, NULL);
    struct conformance_case self = {.given = json_object_get(object, "given")};
    bool saves = strcmp(what, "save") == 0;
    json_t *result = strncmp(what, "phase", 5) == 0 ? optimizer_phase(&self, what)
                     : is_sharded(&self) ? (saves ? sharded_save(&self) : sharded_restore(&self))
                     : saves             ? save(&self)
                                         : restore(&self);
    if (result != NULL) {
        json_dumpf(result, stdout, JSON_ENCODE_ANY);
    } else {
        fprintf(stderr, "%s\n", self.why);
    }
    json_decref(result);
    case_end(&self);
    json_decref(object);
    return result == NULL;
}

/* --- in the runner --- */

static bool write_case(struct conformance_case *self, const char *path)
{
    json_t *object = case_keep(self, json_pack("{sO}", "given", self->given), case_release_json);
    if (json_dump_file(object, path, 0) != 0) {
        case_fail(self, "the case cannot be written to %s", path);
        return false;
    }
    return true;
}

json_t *checkpoint_run(struct conformance_case *self, const char *what, const char *folder)
{
    char file[PATH_BYTES];
    char out[PATH_BYTES];
    char name[] = "conformance_cases";
    char flag[] = "--checkpoint";
    char mode[16];
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int status = -1;
    snprintf(file, sizeof file, "%s/case.json", folder);
    snprintf(out, sizeof out, "%s/%s.json", folder, what);
    snprintf(mode, sizeof mode, "%s", what);
    char *const arguments[] = {name, flag, mode, file, NULL};
    if (!write_case(self, file)) {
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(
        &actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int failed = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        case_fail(self, "the process that was to %s ended with %d", what, status);
        return NULL;
    }
    json_t *result = json_load_file(out, JSON_DECODE_ANY, NULL);
    if (result == NULL) {
        case_fail(self, "the process that was to %s said nothing", what);
    }
    return case_keep(self, result, case_release_json);
}

static bool takes(struct conformance_case *self)
{
    static const char *const known[] = {"save", "restore", NULL};
    static const char *const saved[] = {"synchronization", "aggregation", "components", NULL};
    static const char *const restored[] = {"synchronization", "aggregation", "num_replicas", NULL};
    const json_t *object = json_object_get(self->given, "save");
    const json_t *components = json_object_get(object, "components");
    size_t count = json_array_size(components);
    if (is_sharded(self)) {
        static const char *const sharded[] = {"kind", "components", NULL};
        static const char *const cut[] = {"kind", "shard_sizes", NULL};
        return case_knows(self, self->given, known) && case_knows(self, object, sharded) &&
               case_knows(self, json_object_get(self->given, "restore"), cut);
    }
    if (!case_knows(self, self->given, known) || !case_knows(self, object, saved) ||
        !case_knows(self, json_object_get(self->given, "restore"), restored)) {
        return false;
    }
    return (count >= 1 && count <= REPLICAS_MAX) || case_skip(self, "no components");
}

void area_checkpoint(struct conformance_case *self)
{
    char path[PATH_BYTES];
    if (!takes(self)) {
        return;
    }
    const char *folder = case_folder(self);
    if (folder == NULL) {
        return;
    }
    setenv("CADRE_OUTPUT_DIR", folder, 1);
    unsetenv("CADRE_RESTORE");
    json_t *saved = checkpoint_run(self, "save", folder);
    snprintf(path, sizeof path, "%s/checkpoint-1.json", folder);
    setenv("CADRE_RESTORE", path, 1);
    json_t *restored = saved == NULL ? NULL : checkpoint_run(self, "restore", folder);
    unsetenv("CADRE_RESTORE");
    unsetenv("CADRE_OUTPUT_DIR");
    if (restored == NULL) {
        return;
    }
    if (json_object_get(self->expect, "saved") != NULL) {
        case_equal(self, "the saved value", json_object_get(self->expect, "saved"), saved);
    }
    if (json_object_get(self->expect, "restored_components") != NULL) {
        case_equal(
            self, "the components", json_object_get(self->expect, "restored_components"), restored);
    }
}
