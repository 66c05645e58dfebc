/* SPDX-License-Identifier: Apache-2.0
 * The proof of what a job consumed, with its conclusion. */
#include "common/json/json.h"
#include "common/json/json_value.h"
#include "common/view/conclusion.h"

static json_t *of_epoch(const cadre_verified_epoch *epoch)
{
    json_t *json = json_object();
    json_object_set_new(json, "stream", json_number(epoch->stream));
    json_object_set_new(json, "name", json_text(epoch->name));
    json_object_set_new(json, "epoch", json_number(epoch->epoch));
    json_object_set_new(json, "steps", json_number(epoch->steps));
    json_object_set_new(json, "steps_whole", json_number(epoch->steps_whole));
    json_object_set_new(json, "samples", json_number(epoch->samples));
    json_object_set_new(json, "source_samples", json_number(epoch->source_samples));
    json_object_set_new(json, "verdict", json_text(cadre_verdict_name(epoch->verdict)));
    json_object_set_new(json, "text", json_text(epoch->text));
    return json;
}

static json_t *of_generation(const cadre_verified_generation *generation)
{
    json_t *json = json_object();
    json_object_set_new(json, "number", json_number(generation->number));
    json_object_set_new(json, "first", json_number(generation->first));
    json_object_set_new(json, "end", json_number(generation->end));
    json_object_set_new(json, "tasks", json_number(generation->tasks));
    json_object_set_new(json, "restarted", json_boolean(generation->restarted));
    json_object_set_new(json, "planned_us", json_number(generation->planned_us));
    return json;
}

json_t *json_of_verification(const cadre_verification *verification)
{
    json_t *epochs = json_array();
    json_t *generations = json_array();
    json_t *verified = json_array();
    for (size_t i = 0; i < verification->state_count; i++) {
        const cadre_verified_state *state = &verification->states[i];
        json_array_append_new(verified, json_verified(state->position, state->digest));
    }
    for (size_t i = 0; i < verification->epoch_count; i++) {
        json_array_append_new(epochs, of_epoch(&verification->epochs[i]));
    }
    for (size_t i = 0; i < verification->generation_count; i++) {
        json_array_append_new(generations, of_generation(&verification->generations[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(verification->job));
    json_object_set_new(json, "name", json_text(verification->job_name));
    json_object_set_new(json, "state", json_text(cadre_job_state_name(verification->state)));
    json_object_set_new(
        json, "conclusion", json_text(conclusion_name(conclusion_of(verification))));
    json_object_set_new(json, "committed", json_number(verification->committed));
    json_object_set_new(json, "steps_proved", json_number(verification->steps_proved));
    json_object_set_new(json, "tiled", json_boolean(verification->tiled));
    json_object_set_new(json, "tiling", json_text(verification->tiling));
    json_object_set_new(json, "exact", json_number(verification->exact));
    json_object_set_new(json, "as_defined", json_number(verification->as_defined));
    json_object_set_new(json, "differing", json_number(verification->differing));
    json_object_set_new(json, "not_provable", json_number(verification->not_provable));
    json_object_set_new(json, "epochs", epochs);
    json_object_set_new(json, "generations", generations);
    json_object_set_new(json, "more", json_boolean(verification->more));
    json_object_set_new(json, "verified", verified);
    return json;
}
