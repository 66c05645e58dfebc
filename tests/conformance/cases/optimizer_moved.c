/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "areas.h"
#include "replicas.h"
#include "servers.h"

enum { PHASES_MAX = 8, PATH_BYTES = 4096 };

/* --- in the process of its own --- */

static cadre_status do_nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static void release_strategy(void *strategy)
{
    cadre_strategy_release(strategy);
}

static cadre_strategy *begin(const json_t *phase)
{
    cadre_strategy *strategy = NULL;
    json_int_t shards = json_integer_value(json_object_get(phase, "servers"));
    if (shards > 0) {
        return process_servers((uint64_t)shards);
    }
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_mirrored(
        (uint32_t)json_integer_value(json_object_get(phase, "replicas")), &strategy));
    cadre_show_progress(strategy, false);
    return strategy;
}

/* {"values", "position"}. */
json_t *optimizer_phase(struct conformance_case *self, const char *what)
{
    const json_t *given = self->given;
    const json_t *phase =
        json_array_get(json_object_get(given, "phases"), (size_t)(what[sizeof "phase" - 1] - '0'));
    json_t *own = case_keep(self, json_copy((json_t *)(uintptr_t)given), case_release_json);
    json_object_update(own, (json_t *)(uintptr_t)phase);
    self->given = own;
    cadre_strategy *strategy = case_keep(self, begin(phase), release_strategy);
    json_t *values = optimizer_values(self, strategy);
    if (values == NULL) {
        return NULL;
    }
    /* Pushes are no steps, and a program goes on from behind one. */
    CADRE_CHECK(cadre_run(strategy, do_nothing, NULL, NULL, 0, NULL));
    CADRE_CHECK(cadre_save(strategy, true));
    json_t *result = json_pack(
        "{sO sI}", "values", values, "position", (json_int_t)cadre_strategy_position(strategy));
    return result;
}

/* --- in the runner --- */

static bool takes(struct conformance_case *self, const json_t *phases)
{
    static const char *const known[] = {"optimizer", "variables", "dtype", "phases", NULL};
    static const char *const of_phase[] = {"servers", "replicas", "steps", NULL};
    size_t i;
    const json_t *phase;
    if (!case_knows(self, self->given, known)) {
        return false;
    }
    json_array_foreach(phases, i, phase)
    {
        if (!case_knows(self, phase, of_phase)) {
            return false;
        }
    }
    return (json_array_size(phases) > 0 && json_array_size(phases) <= PHASES_MAX) ||
           case_skip(self, "\"phases\" are a list of 1 to %d", PHASES_MAX);
}

static json_t *run_phase(struct conformance_case *self, size_t phase, const char *folder)
{
    char what[16];
    char path[PATH_BYTES];
    snprintf(what, sizeof what, "phase%zu", phase);
    json_t *result = checkpoint_run(self, what, folder);
    if (result != NULL) {
        snprintf(path, sizeof path, "%s/checkpoint-%lld.json", folder,
            (long long)json_integer_value(json_object_get(result, "position")));
        setenv("CADRE_RESTORE", path, 1);
    }
    return result;
}

void area_optimizer_moved(struct conformance_case *self)
{
    const json_t *phases = json_object_get(self->given, "phases");
    json_t *all = case_keep(self, json_array(), case_release_json);
    const char *folder = takes(self, phases) ? case_folder(self) : NULL;
    json_t *result = all;
    if (folder == NULL) {
        return;
    }
    setenv("CADRE_OUTPUT_DIR", folder, 1);
    unsetenv("CADRE_RESTORE");
    for (size_t i = 0; i < json_array_size(phases) && result != NULL; i++) {
        result = run_phase(self, i, folder);
        json_array_append(all, json_object_get(result, "values"));
    }
    unsetenv("CADRE_RESTORE");
    unsetenv("CADRE_OUTPUT_DIR");
    if (result != NULL) {
        case_equal(
            self, "the variables behind each phase", json_object_get(self->expect, "values"), all);
    }
}
