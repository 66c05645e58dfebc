/* SPDX-License-Identifier: Apache-2.0
 * A client's spec into the core's event, and the checkpoint that it names. coordinator/daemon and
 * deploy/local call it. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/object_path.h"
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
        .ps_job = spec->ps_job,
        .gpus = spec->gpus,
        .time_limit_us = spec->limits.time_limit_us};
}

static cadre_status check_folder(const struct job_spec *spec, const struct directory_entry *from,
    const struct core_checkpoint *checkpoint, struct cadre_error *error)
{
    if (!checkpoint->shared || object_path_is(checkpoint->path) ||
        strcmp(spec->checkpoint_folder, from->spec.checkpoint_folder) == 0) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the checkpoints of job %llu are in the shared folder %s: submit with --checkpoint-folder "
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

/* "those of the steps 10, 20 and 30": those that the job keeps, and the one that it went on from
 * where it has none. */
static void text_kept(struct text *text, const struct directory_entry *from)
{
    text_add(text, from->checkpoint_count > 1 ? "those of the steps " : "that of step ");
    for (size_t i = 0; i < from->checkpoint_count; i++) {
        bool last = i + 1 == from->checkpoint_count;
        text_add(text, i == 0 ? "" : last ? " and " : ", ");
        text_add_u64(text, from->checkpoints[i].position);
    }
    if (from->checkpoint_count == 0) {
        text_add_u64(text, from->origin.position);
    }
}

void engine_describe_kept(const struct directory_entry *from, struct job_id source, uint64_t but,
    char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    const struct core_checkpoint *newest =
        from != NULL ? directory_checkpoint_before(from, UINT64_MAX) : NULL;
    if (source.n == 0) {
        text_add(&text, "there is no other to go on from");
        return;
    }
    text_add(&text, "job ");
    text_add_u64(&text, source.n);
    if (newest == NULL || newest->position == but) {
        text_add(&text, from != NULL ? " keeps no other that is whole" : " was removed");
        return;
    }
    text_add(&text, " keeps ");
    text_kept(&text, from);
    text_add(&text, ": name one with --restore ");
    text_add_u64(&text, source.n);
    text_add(&text, "@");
    text_add_u64(&text, newest->position);
}

/* "job 3 has no checkpoint of step 25: it keeps those of the steps 10, 20 and 30". */
static cadre_status refuse_step(
    const struct directory_entry *from, uint64_t step, struct cadre_error *error)
{
    char steps[LIMIT_TEXT_BYTES];
    struct text text = text_begin(steps, sizeof steps);
    bool lost = from->newest_lost.position == step;
    text_kept(&text, from);
    return cadre_error_set(error, lost ? CADRE_DATA_LOSS : CADRE_NOT_FOUND,
        "%s of step %llu of job %llu%s%s%s: it keeps %s",
        lost ? "the checkpoint" : "there is no checkpoint", (unsigned long long)step,
        (unsigned long long)from->id.n, lost ? " is damaged (" : "",
        lost ? from->newest_lost.why : "", lost ? ")" : "", steps);
}

static cadre_status refuse_all(const struct directory_entry *from, struct cadre_error *error)
{
    if (from->newest_lost.position > 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "job %llu has no checkpoint that is whole: the newest, of step %llu, is damaged (%s), "
            "and it keeps no other",
            (unsigned long long)from->id.n, (unsigned long long)from->newest_lost.position,
            from->newest_lost.why);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "job %llu has no checkpoint to go on from: it was submitted without --checkpoint-every, or "
        "none is published yet",
        (unsigned long long)from->id.n);
}

/* "the checkpoint of step 30 of job 1 is damaged (why): the job goes on from that of step 20"; "":
 * the newest is whole, as far as it was read. */
static void note_lost(const struct directory_entry *from, const struct core_checkpoint *origin,
    char note[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(note, LIMIT_TEXT_BYTES);
    if (from->newest_lost.position <= origin->position) {
        return;
    }
    text_add(&text, "the checkpoint of step ");
    text_add_u64(&text, from->newest_lost.position);
    text_add(&text, " of job ");
    text_add_u64(&text, from->id.n);
    text_add(&text, " is damaged (");
    text_add(&text, from->newest_lost.why);
    text_add(&text, "): the job goes on from that of step ");
    text_add_u64(&text, origin->position);
}

/* The checkpoint of the job that the spec names: of its step, else the newest that is whole. */
static cadre_status find_origin(const struct engine *engine, const struct job_spec *spec,
    struct core_checkpoint *ret_checkpoint, char note[LIMIT_TEXT_BYTES], struct cadre_error *error)
{
    const struct directory_entry *from = directory_find(&engine->directory, spec->restore_from);
    if (from == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "job %llu, from whose checkpoint this one is to go on, does not exist: `cadre jobs` "
            "lists them",
            (unsigned long long)spec->restore_from.n);
    }
    const struct core_checkpoint *newest = directory_checkpoint_before(from, UINT64_MAX);
    if (newest == NULL) {
        return refuse_all(from, error);
    }
    const struct core_checkpoint *named =
        spec->restore_step > 0 ? checkpoint_of(from, spec->restore_step) : newest;
    if (named == NULL) {
        return refuse_step(from, spec->restore_step, error);
    }
    CADRE_TRY(check_folder(spec, from, named, error));
    *ret_checkpoint = *named;
    if (spec->restore_step == 0) {
        note_lost(from, named, note);
    }
    return CADRE_OK;
}

/* One that the spec names by its path. */
static struct core_checkpoint named_origin(const struct checkpoint_ref *named)
{
    struct core_checkpoint origin = {
        .position = named->position, .shared = true, .manifest_bytes = named->manifest_bytes};
    memcpy(origin.manifest_sha256, named->manifest_sha256, sizeof origin.manifest_sha256);
    snprintf(origin.path, sizeof origin.path, "%s", named->path);
    return origin;
}

static cadre_status engine_prepare(struct engine *engine, const struct job_spec *spec,
    const struct core_checkpoint *origin, struct core_submit *submit, char note[LIMIT_TEXT_BYTES],
    struct cadre_error *error)
{
    submit->spec = core_spec(spec);
    submit->note = note;
    submit->restores = origin != NULL || spec->restore_from.n != 0 || spec->has_restore_checkpoint;
    if (origin != NULL) {
        submit->checkpoint = *origin;
    } else if (spec->has_restore_checkpoint) {
        submit->checkpoint = named_origin(&spec->restore_checkpoint);
    } else if (submit->restores) {
        CADRE_TRY(find_origin(engine, spec, &submit->checkpoint, note, error));
    }
    CADRE_TRY(directory_entry_new(spec, &engine->submitting, error));
    engine->submitting->submitted_us = clock_wall_us();
    engine->submitting->restores = submit->restores;
    engine->submitting->origin = submit->checkpoint;
    return CADRE_OK;
}

static cadre_status check_same_spec(
    const struct directory_entry *entry, const struct job_spec *spec, struct cadre_error *error)
{
    struct wire_buffer first = {0};
    struct wire_buffer second = {0};
    cadre_status status = wire_pack_job_spec(&entry->spec, &first, error);
    status = status == CADRE_OK ? wire_pack_job_spec(spec, &second, error) : status;
    bool same = status == CADRE_OK && first.size == second.size &&
                memcmp(first.bytes, second.bytes, first.size) == 0;
    wire_buffer_free(&first);
    wire_buffer_free(&second);
    if (status != CADRE_OK || same) {
        return status;
    }
    return cadre_error_set(error, CADRE_ALREADY_EXISTS,
        "job %llu was submitted with this request id and another spec: draw a new id for each "
        "submission",
        (unsigned long long)entry->id.n);
}

/* Answers a submission that is a repetition: behind the records of the job, should these be in this
 * turn. */
static bool answer_repeated(struct engine *engine, struct call_id call, const struct job_spec *spec)
{
    struct cadre_error error = {0};
    const struct directory_entry *entry = directory_find_request(&engine->directory, spec);
    if (entry == NULL) {
        return false;
    }
    if (check_same_spec(entry, spec, &error) != CADRE_OK) {
        engine_answer(engine, call, error.code, error.text);
    } else {
        engine_answer_job(engine, call, entry->id);
    }
    return true;
}

bool engine_knows_request(const struct engine *engine, const struct job_spec *spec)
{
    return directory_find_request(&engine->directory, spec) != NULL;
}

static void submit_spec(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct job_spec *spec, const struct core_checkpoint *origin)
{
    struct cadre_error error = {0};
    char note[LIMIT_TEXT_BYTES] = "";
    if (answer_repeated(engine, call, spec)) {
        return;
    }
    struct core_event event = {
        .type = CORE_EVENT_SUBMIT, .now_us = now_us, .submit = {.call = call}};
    engine->now_us = now_us;
    if (engine_prepare(engine, spec, origin, &event.submit, note, &error) != CADRE_OK) {
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
    submit_spec(engine, now_us, call, spec, NULL);
}

void engine_submit_restored(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct job_spec *spec, const struct core_checkpoint *checkpoint)
{
    submit_spec(engine, now_us, call, spec, checkpoint);
}
