/* SPDX-License-Identifier: Apache-2.0
 * Values that a program saved, in the variables of another: both are strategies of this process,
 * and between them is a file. */
#include <stdio.h>
#include <string.h>

#include "areas.h"
#include "cadre/assign.h"
#include "cadre/export.h"
#include "cadre/restore.h"
#include "cadre/variable.h"
#include "replicas.h"

#define PATH_BYTES    4096
#define VARIABLES_MAX 16

/* A variable of each member, with that value. `how` of a status: that of the first that cannot be
 * created. */
static bool create(struct conformance_case *self, cadre_strategy *strategy, const json_t *values,
    cadre_status *ret_status)
{
    const char *name;
    json_t *value;
    *ret_status = CADRE_OK;
    json_object_foreach((json_t *)(uintptr_t)values, name, value)
    {
        cadre_tensor *tensor = NULL;
        cadre_variable *variable = NULL;
        if (!case_tensor(self, value, case_dtype_of(value), &tensor)) {
            return false;
        }
        const cadre_variable_options options = {
            .initializer = {.kind = CADRE_INITIALIZER_CONSTANT,
                .value =
                    json_number_value(json_is_array(value) ? json_array_get(value, 0) : value)}};
        *ret_status = cadre_variable_create(strategy, name, cadre_tensor_dtype(tensor),
            cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), &options, &variable);
        if (*ret_status != CADRE_OK) {
            return true;
        }
    }
    return true;
}

static bool assign(struct conformance_case *self, cadre_strategy *strategy, const json_t *values)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)values, name, value)
    {
        cadre_tensor *tensor = NULL;
        cadre_variable *variable = NULL;
        if (!case_tensor(self, value, case_dtype_of(value), &tensor) ||
            !case_ok(self, cadre_variable_find(strategy, name, &variable), "cadre_variable_find") ||
            !case_ok(self, cadre_variable_assign(NULL, variable, CADRE_ASSIGN, tensor),
                "cadre_variable_assign")) {
            return false;
        }
    }
    return true;
}

/* The program that saves. */
static bool save(struct conformance_case *self, const char *path)
{
    const json_t *saved = json_object_get(self->given, "saved");
    const json_t *named = json_object_get(self->given, "signatures");
    cadre_signature signatures[VARIABLES_MAX];
    uint32_t count = 0;
    const char *name;
    json_t *variable;
    cadre_status status;
    cadre_strategy *strategy = case_strategy(self, 2);
    if (strategy == NULL || !create(self, strategy, saved, &status) ||
        !case_ok(self, status, "cadre_variable_create") || !assign(self, strategy, saved)) {
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)named, name, variable)
    {
        if (count == VARIABLES_MAX || !json_is_string(variable)) {
            return case_skip(self, "signatures that are no names");
        }
        signatures[count++] = (cadre_signature){name, json_string_value(variable)};
    }
    return case_ok(self, cadre_export(strategy, path, signatures, count), "cadre_export");
}

static json_t *list_json(struct conformance_case *self, const char *const *names, uint32_t count)
{
    json_t *list = case_keep(self, json_array(), case_release_json);
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(list, json_string(names[i]));
    }
    return list;
}

static void compare_values(struct conformance_case *self, cadre_strategy *strategy)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(self->expect, "values"), name, value)
    {
        cadre_tensor *tensor = NULL;
        cadre_variable *variable = NULL;
        if (!case_ok(self, cadre_variable_find(strategy, name, &variable), name)) {
            return;
        }
        if (!case_ok(self,
                cadre_tensor_from_data(cadre_variable_dtype(variable),
                    cadre_variable_rank(variable), cadre_variable_dims(variable),
                    cadre_variable_read(NULL, variable), &tensor),
                "reading a variable")) {
            return;
        }
        case_keep(self, tensor, case_release_tensor);
        case_equal(self, name, value, case_json(self, tensor));
    }
}

static void compare(
    struct conformance_case *self, cadre_strategy *strategy, const cadre_restore_result *found)
{
    const json_t *missing = json_object_get(self->expect, "missing");
    const json_t *unused = json_object_get(self->expect, "unused");
    compare_values(self, strategy);
    if (missing != NULL) {
        case_equal(self, "what has no value", missing,
            list_json(self, found->missing, found->missing_count));
    }
    if (unused != NULL) {
        case_equal(self, "what was not taken", unused,
            list_json(self, found->unused, found->unused_count));
    }
}

static bool find_match(struct conformance_case *self, cadre_restore_match *ret_match)
{
    static const char *const names[] = {"expect_partial", "assert_nontrivial_match",
        "assert_existing_objects_matched", "assert_consumed"};
    const char *name = json_string_value(json_object_get(self->given, "status"));
    for (int i = 0; i < 4; i++) {
        if (name == NULL || strcmp(name, names[i]) == 0) {
            *ret_match = (cadre_restore_match)i;
            return true;
        }
    }
    return case_skip(self, "a status that is not known");
}

/* The program that restores: some variables before, some after it. */
static void restore(struct conformance_case *self, cadre_strategy *strategy, const char *path)
{
    cadre_restore_match match = CADRE_RESTORED_PARTIAL;
    cadre_restore_result found = {0};
    cadre_status status;
    if (!find_match(self, &match) ||
        !create(self, strategy, json_object_get(self->given, "existing"), &status) ||
        !case_ok(self, status, "cadre_variable_create")) {
        return;
    }
    status = cadre_restore(strategy, path, &found);
    if (status == CADRE_OK &&
        !create(self, strategy, json_object_get(self->given, "later"), &status)) {
        return;
    }
    if (status == CADRE_OK) {
        status = cadre_restored(strategy, match, &found);
    }
    if (case_verdict(self, status, "cadre_restore")) {
        compare(self, strategy, &found);
    }
}

void area_restore(struct conformance_case *self)
{
    static const char *const known[] = {
        "saved", "signatures", "existing", "later", "status", "load", "num_replicas", NULL};
    char path[PATH_BYTES];
    json_int_t replicas = 0;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 2, &replicas)) {
        return;
    }
    const char *folder = case_folder(self);
    if (folder == NULL) {
        return;
    }
    snprintf(path, sizeof path, "%s/saved.safetensors", folder);
    cadre_strategy *strategy = save(self, path) ? case_strategy(self, (uint32_t)replicas) : NULL;
    if (strategy == NULL) {
        return;
    }
    if (!json_is_true(json_object_get(self->given, "load"))) {
        restore(self, strategy, path);
        return;
    }
    cadre_status status;
    if (create(self, strategy, json_object_get(self->given, "existing"), &status) &&
        case_ok(self, status, "cadre_variable_create") &&
        case_verdict(self, cadre_import(strategy, path), "cadre_import")) {
        compare_values(self, strategy);
    }
}
