/* SPDX-License-Identifier: Apache-2.0
 * What happened to a job, event by event. */
#include "common/json/json.h"
#include "common/json/json_value.h"

static void add_generation(json_t *json, const cadre_event *event)
{
    json_object_set_new(json, "tasks", json_number(event->tasks));
    json_object_set_new(json, "roster", json_text(event->roster));
    json_object_set_new(json, "undone", json_number(event->undone));
    json_object_set_new(json, "restarted", json_boolean(event->restarted));
}

static void add_exit(json_t *json, const cadre_event *event)
{
    bool by_signal = event->exit_signal != 0;
    json_object_set_new(
        json, "exit_code", by_signal ? json_null() : json_integer(event->exit_code));
    json_object_set_new(
        json, "exit_signal", by_signal ? json_integer(event->exit_signal) : json_null());
}

static void add_end(json_t *json, const cadre_event *event)
{
    json_object_set_new(json, "state", json_text(cadre_job_state_name(event->state)));
    json_object_set_new(json, "code", json_text(cadre_status_name(event->code)));
    json_object_set_new(json, "exit_code", json_integer(event->exit_code));
}

/* What only its kind has. */
static void add_details(json_t *json, const cadre_event *event)
{
    switch (event->kind) {
    case CADRE_EVENT_SUBMITTED:
    case CADRE_EVENT_STARTED:
        json_object_set_new(json, "tasks", json_number(event->tasks));
        break;
    case CADRE_EVENT_GENERATION:
        add_generation(json, event);
        break;
    case CADRE_EVENT_STALLED:
    case CADRE_EVENT_WENT_ON:
        json_object_set_new(json, "waited_us", json_number(event->waited_us));
        break;
    case CADRE_EVENT_TASK_ENDED:
        add_exit(json, event);
        break;
    case CADRE_EVENT_ENDING:
    case CADRE_EVENT_ENDED:
        add_end(json, event);
        break;
    default:
        break;
    }
}

json_t *json_of_event(const cadre_event *event)
{
    json_t *json = json_object();
    json_object_set_new(json, "number", json_number(event->number));
    json_object_set_new(json, "time_us", json_number(event->time_us));
    json_object_set_new(json, "kind", json_text(cadre_event_kind_name(event->kind)));
    json_object_set_new(json, "generation", json_number(event->generation));
    json_object_set_new(json, "position", json_number(event->position));
    json_object_set_new(json, "task", event->of_task ? json_number(event->task) : json_null());
    json_object_set_new(
        json, "incarnation", event->of_task ? json_number(event->incarnation) : json_null());
    json_object_set_new(json, "worker", json_text(event->worker));
    json_object_set_new(json, "text", json_text(event->text));
    add_details(json, event);
    return json;
}

json_t *json_of_history(const cadre_history *history)
{
    json_t *events = json_array();
    for (size_t i = 0; i < history->count; i++) {
        json_array_append_new(events, json_of_event(&history->events[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(history->job));
    json_object_set_new(json, "name", json_text(history->name));
    json_object_set_new(json, "state", json_text(cadre_job_state_name(history->state)));
    json_object_set_new(json, "events", events);
    json_object_set_new(json, "last", json_number(history->last));
    json_object_set_new(json, "dropped", json_number(history->dropped));
    json_object_set_new(json, "more", json_boolean(history->more));
    return json;
}
