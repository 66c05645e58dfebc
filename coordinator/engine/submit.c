/* SPDX-License-Identifier: Apache-2.0
 * A client's spec into what the core decides with, and the checkpoint that it names. */
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/text.h"
#include "coordinator/engine/engine_state.h"

static struct core_job_spec core_spec(const struct job_spec *spec)
{
    return (struct core_job_spec){.tasks = spec->workers,
        .tasks_min = spec->workers_min > 0 ? spec->workers_min : spec->workers,
        .priority = spec->priority,
        .max_restarts = spec->max_restarts,
        .wait_us = spec->wait_us,
        .stall_us = spec->stall_us,
        .crew = spec->crew,
        .gpus = spec->gpus,
        .time_limit_us = spec->limits.time_limit_us};
}

/* One that has published nothing yet stands where it began itself. */
static const struct core_checkpoint *newest_of(const struct directory_entry *entry)
{
    if (entry->checkpoint_count > 0) {
        return &entry->checkpoints[entry->checkpoint_count - 1];
    }
    return entry->restores ? &entry->origin : NULL;
}

static cadre_status check_folder(const struct job_spec *spec, const struct directory_entry *from,
    const struct core_checkpoint *checkpoint, struct cadre_error *error)
{
    if (!checkpoint->shared || strcmp(spec->checkpoint_folder, from->spec.checkpoint_folder) == 0) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the checkpoints of job %llu lie in the shared folder %s: submit with --checkpoint-folder "
        "%s to go on from them",
        (unsigned long long)from->id.n, from->spec.checkpoint_folder, from->spec.checkpoint_folder);
}

static const struct core_checkpoint *checkpoint_of(
    const struct directory_entry *entry, uint64_t position)
{
    for (size_t i = 0; i < entry->checkpoint_count; i++) {
        if (entry->checkpoints[i].position == position) {
            return &entry->checkpoints[i];
        }
    }
    bool origin = entry->restores && entry->origin.position == position;
    return origin ? &entry->origin : NULL;
}

/* "job 3 has no checkpoint of step 25: it has those of the steps 10, 20, 30". */
static cadre_status refuse_step(
    const struct directory_entry *from, uint64_t step, struct cadre_error *error)
{
    char steps[LIMIT_TEXT_BYTES];
    struct text text = text_begin(steps, sizeof steps);
    for (size_t i = 0; i < from->checkpoint_count; i++) {
        text_add(&text, i > 0 ? ", " : "");
        text_add_u64(&text, from->checkpoints[i].position);
    }
    if (from->checkpoint_count == 0) {
        text_add_u64(&text, from->origin.position);
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "job %llu has no checkpoint of step %llu: it keeps those of %s%s",
        (unsigned long long)from->id.n, (unsigned long long)step,
        from->checkpoint_count > 1 ? "the steps " : "step ", steps);
}

/* The checkpoint of the job that the spec names: of its step, else the newest. */
static cadre_status find_origin(const struct engine *engine, const struct job_spec *spec,
    struct core_checkpoint *ret_checkpoint, struct cadre_error *error)
{
    unsigned long long id = spec->restore_from.n;
    const struct directory_entry *from = directory_find(&engine->directory, spec->restore_from);
    if (from == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "job %llu, from whose checkpoint this one is to go on, does not exist: `cadre jobs` "
            "lists them",
            id);
    }
    const struct core_checkpoint *newest = newest_of(from);
    if (newest == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "job %llu has no checkpoint to go on from: it was submitted without "
            "--checkpoint-every, or none is published yet",
            id);
    }
    const struct core_checkpoint *named =
        spec->restore_step > 0 ? checkpoint_of(from, spec->restore_step) : newest;
    if (named == NULL) {
        return refuse_step(from, spec->restore_step, error);
    }
    CADRE_TRY(check_folder(spec, from, named, error));
    *ret_checkpoint = *named;
    return CADRE_OK;
}

static cadre_status prepare(struct engine *engine, const struct job_spec *spec,
    const struct core_checkpoint *origin, struct core_submit *submit, struct cadre_error *error)
{
    submit->spec = core_spec(spec);
    submit->restores = origin != NULL || spec->restore_from.n != 0;
    if (origin != NULL) {
        submit->checkpoint = *origin;
    } else if (submit->restores) {
        CADRE_TRY(find_origin(engine, spec, &submit->checkpoint, error));
    }
    CADRE_TRY(directory_entry_new(spec, &engine->submitting, error));
    engine->submitting->submitted_us = clock_wall_us();
    engine->submitting->restores = submit->restores;
    engine->submitting->origin = submit->checkpoint;
    return CADRE_OK;
}

static void submit(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct job_spec *spec, const struct core_checkpoint *origin)
{
    struct cadre_error error = {0};
    struct core_event event = {
        .type = CORE_EVENT_SUBMIT, .now_us = now_us, .submit = {.call = call}};
    engine->now_us = now_us;
    if (prepare(engine, spec, origin, &event.submit, &error) != CADRE_OK) {
        engine_answer(engine, call, error.code, error.text);
        return;
    }
    engine_step(engine, &event);
    directory_entry_free(engine->submitting); /* refused: the core did not take it */
    engine->submitting = NULL;
}

void engine_submit(
    struct engine *engine, uint64_t now_us, struct call_id call, const struct job_spec *spec)
{
    submit(engine, now_us, call, spec, NULL);
}

void engine_submit_restored(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct job_spec *spec, const struct core_checkpoint *checkpoint)
{
    submit(engine, now_us, call, spec, checkpoint);
}
