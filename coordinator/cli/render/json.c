/* SPDX-License-Identifier: Apache-2.0
 * Answers of single verbs as JSON, and how JSON is printed; what the coordinator answers too is in
 * common/json. */
#include "coordinator/cli/render/json.h"

#include <stdio.h>
#include <unistd.h>

#include "common/json/json_value.h"

static json_t *of_compared(const cadre_verification *job)
{
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(job->job));
    json_object_set_new(json, "name", json_text(job->job_name));
    json_object_set_new(json, "program", json_text(job->program));
    json_object_set_new(json, "state", json_text(cadre_job_state_name(job->state)));
    json_object_set_new(json, "committed", json_number(job->committed));
    json_object_set_new(json, "more", json_boolean(job->more));
    return json;
}

static json_t *of_point(const struct comparison_point *point)
{
    if (point->difference == DIFFERENCE_NONE) {
        return json_null();
    }
    json_t *json = json_object();
    json_object_set_new(json, "what", json_text(difference_name(point->difference)));
    json_object_set_new(json, "position", json_number(point->position));
    json_object_set_new(json, "stream", json_number(point->stream));
    json_object_set_new(json, "name", json_text(point->name));
    json_object_set_new(json, "epoch", json_number(point->epoch));
    json_object_set_new(json, "step", json_number(point->step));
    json_object_set_new(json, "steps", json_number(point->steps));
    json_object_set_new(json, "text", json_text(point->text));
    return json;
}

json_t *json_of_comparison(const struct comparison *comparison)
{
    json_t *jobs = json_array();
    json_array_append_new(jobs, of_compared(comparison->jobs[0]));
    json_array_append_new(jobs, of_compared(comparison->jobs[1]));
    json_t *json = json_object();
    json_object_set_new(json, "jobs", jobs);
    json_object_set_new(json, "outcome", json_text(comparison_outcome_name(comparison->outcome)));
    json_object_set_new(json, "epochs", json_number(comparison->epochs));
    json_object_set_new(json, "steps", json_number(comparison->steps));
    json_object_set_new(json, "begin", json_number(comparison->begin));
    json_object_set_new(json, "end", json_number(comparison->end));
    json_object_set_new(json, "difference", of_point(&comparison->point));
    json_object_set_new(json, "states", json_number(comparison->states));
    json_object_set_new(
        json, "state", comparison->states > 0 ? json_number(comparison->state) : json_null());
    return json;
}

json_t *json_of_cancelled(
    const char *word, cadre_status status, const char *message, const cadre_job *job)
{
    json_t *json = json_object();
    json_object_set_new(json, "argument", json_text(word));
    json_object_set_new(json, "code", json_text(cadre_status_name(status)));
    json_object_set_new(json, "message", json_text(message));
    json_object_set_new(json, "job", job != NULL ? json_of_job(job) : json_null());
    return json;
}

json_t *json_of_cancellations(json_t *answers)
{
    json_t *json = json_object();
    json_object_set_new(json, "cancelled", answers);
    return json;
}

json_t *json_of_outputs(const cadre_output_list *list)
{
    json_t *outputs = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *json = json_object();
        json_object_set_new(json, "path", json_text(list->outputs[i].path));
        json_object_set_new(json, "size_bytes", json_number(list->outputs[i].size_bytes));
        json_array_append_new(outputs, json);
    }
    json_t *json = json_object();
    json_object_set_new(json, "outputs", outputs);
    json_object_set_new(json, "more", json_boolean(list->more));
    json_object_set_new(json, "folder", json_text(list->folder));
    return json;
}

json_t *json_of_drained(const char *worker, const uint32_t *tasks)
{
    json_t *json = json_object();
    json_object_set_new(json, "worker", json_text(worker));
    json_object_set_new(json, "tasks", tasks != NULL ? json_number(*tasks) : json_null());
    return json;
}

json_t *json_of_submitted(const cadre_submitted *submitted)
{
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(submitted->job));
    json_object_set_new(json, "queued_before", json_number(submitted->queued_before));
    json_object_set_new(json, "note", json_text(submitted->note));
    return json;
}

json_t *json_of_version(const cadre_coordinator_version *version)
{
    json_t *json = json_object();
    json_object_set_new(json, "client", json_string(CADRE_VERSION));
    json_object_set_new(
        json, "coordinator", version != NULL ? json_of_coordinator(version) : json_null());
    return json;
}

static bool print_as(json_t *json, size_t form, FILE *out)
{
    if (json == NULL) {
        return false;
    }
    /* JSON escapes the control characters of ASCII only; others act on a terminal too. */
    size_t form_here = isatty(fileno(out)) != 0 ? form | JSON_ENSURE_ASCII : form;
    int rc = json_dumpf(json, out, form_here | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(json);
    return rc == 0;
}

bool json_print(json_t *json, FILE *out)
{
    return print_as(json, JSON_INDENT(2), out);
}

bool json_print_compact(json_t *json, FILE *out)
{
    return print_as(json, JSON_COMPACT, out);
}
