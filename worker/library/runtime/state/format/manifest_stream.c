/* SPDX-License-Identifier: Apache-2.0
 * A distributed dataset as JSON, and back. manifest.c writes, manifest_read.c reads. */
#include "worker/library/runtime/state/format/manifest_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/runtime/state/format/base64.h"
#include "worker/library/runtime/strategy/strategy.h"

#define PIPELINE_BYTES_MAX (256 * 1024) /* a longer description is left out */

void saved_stream_clear(struct saved_stream *saved)
{
    free(saved->pipeline);
    file_shares_clear(&saved->received.shares);
    distributed_state_clear(&saved->received.state);
    *saved = (struct saved_stream){0};
}

/* --- numbers --- */

static json_t *manifest_digits(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

json_t *manifest_number(uint64_t value)
{
    return value <= (uint64_t)INT64_MAX ? json_integer((json_int_t)value) : manifest_digits(value);
}

static bool manifest_read_value(const json_t *value, uint64_t *ret_value)
{
    if (json_is_integer(value)) {
        *ret_value = (uint64_t)json_integer_value(value);
        return json_integer_value(value) >= 0;
    }
    const char *text = json_string_value(value);
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end = NULL;
    errno = 0;
    *ret_value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

bool manifest_read_number(const json_t *object, const char *name, uint64_t *ret_value)
{
    return manifest_read_value(json_object_get(object, name), ret_value);
}

bool manifest_read_count(const json_t *object, const char *name, uint64_t *ret_value)
{
    return manifest_read_number(object, name, ret_value) && *ret_value < LIMIT_POSITION;
}

bool manifest_read_bool(const json_t *object, const char *name, bool *ret_value)
{
    const json_t *value = json_object_get(object, name);
    *ret_value = json_is_true(value);
    return json_is_boolean(value);
}

static bool read_pair(const json_t *object, const char *name, uint64_t ret_pair[2])
{
    const json_t *list = json_object_get(object, name);
    return json_is_array(list) && json_array_size(list) == 2 &&
           manifest_read_value(json_array_get(list, 0), &ret_pair[0]) &&
           manifest_read_value(json_array_get(list, 1), &ret_pair[1]);
}

/* --- writing --- */

static json_t *consumption_of(const struct consumption *consumption)
{
    return json_pack("{s:o, s:o, s:[o, o], s:[o, o], s:b, s:i}", "steps",
        manifest_number(consumption->steps), "samples", manifest_number(consumption->samples),
        "fed", manifest_digits(consumption->consumed[0]), manifest_digits(consumption->consumed[1]),
        "expected", manifest_digits(consumption->expected[0]),
        manifest_digits(consumption->expected[1]), "provable", consumption->provable ? 1 : 0,
        "files", (int)consumption->files);
}

static json_t *bytes_of(const uint8_t *bytes, size_t count)
{
    CADRE_FREE_AT_EXIT char *text = base64_encode(bytes, count);
    return text == NULL ? NULL : json_string(text);
}

/* A checkpoint that was loaded is passed on before it is taken over: then the received table is
 * written, not this task's own. */
static int add_files(json_t *stream, const cadre_distributed_dataset *dataset)
{
    CADRE_FREE_AT_EXIT uint8_t *bytes = NULL;
    size_t count = 0;
    struct cadre_error ignored; /* no memory */
    const struct dataset_received *received = &dataset->received;
    if (received->any ? !received->has_shares : !dataset->has_shares) {
        return 0;
    }
    if (file_shares_encode(received->any ? &received->shares : &dataset->shares, &bytes, &count,
            &ignored) != CADRE_OK) {
        return -1;
    }
    return json_object_set_new(stream, "files", bytes_of(bytes, count));
}

static int put_state(json_t *stream, const struct distributed_state *state, size_t *room)
{
    if (state->count > *room) {
        return 0;
    }
    *room -= state->count;
    return json_object_set_new(stream, "iterator",
        json_pack("{s:o, s:o, s:o}", "epoch", manifest_number(state->epoch), "step",
            manifest_number(state->step), "bytes", bytes_of(state->bytes, state->count)));
}

/* The position of the pipeline itself, for a task that would have to read it from the beginning.
 * That of one worker's own pipeline is useless to another. */
static int add_state(json_t *stream, const cadre_distributed_dataset *dataset, size_t *room)
{
    const struct dataset_position *at = &dataset->at;
    bool alike = dataset->input != NULL && (!distributed_own_pipelines(dataset) ||
                                               dataset->strategy->roster.member_count == 1);
    struct cadre_error ignored; /* then it is read from the beginning */
    struct distributed_state state = {0};
    if (dataset->received.any) {
        const struct dataset_received *received = &dataset->received;
        return received->has_state ? put_state(stream, &received->state, room) : 0;
    }
    if (!alike || !at->open || at->epochs_begun == 0 || at->applied == 0 || at->ended ||
        dataset->has_shares) {
        return 0;
    }
    uint64_t epoch = at->epochs_begun - 1;
    uint64_t step = at->applied;
    distributed_input_step(dataset, &epoch, &step);
    if (distributed_input_save(dataset->input, epoch, step, &state, &ignored) != CADRE_OK) {
        return 0;
    }
    int failed = put_state(stream, &state, room);
    distributed_state_clear(&state);
    return failed;
}

static bool is_by_files(const cadre_distributed_dataset *dataset)
{
    if (dataset->received.any) {
        return dataset->received.by_files;
    }
    return dataset->input != NULL && distributed_input_policy(dataset->input) == CADRE_SHARD_FILE;
}

json_t *manifest_stream(const cadre_distributed_dataset *dataset, size_t *state_room)
{
    const struct dataset_position *at = &dataset->at;
    json_t *stream = json_pack("{s:s, s:I, s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:I, s:b}", "name",
        dataset->name, "stream", (json_int_t)dataset->stream, "epochs_begun",
        manifest_number(at->epochs_begun), "applied", manifest_number(at->applied), "steps",
        (json_int_t)dataset->steps, "open", at->open ? 1 : 0, "serial", manifest_number(at->serial),
        "feed", consumption_of(&at->consumption), "next", manifest_number(at->next), "workers",
        (json_int_t)at->workers, "by_files", is_by_files(dataset));
    int failed = stream == NULL ? -1 : 0;
    if (failed == 0 && dataset->iterating.of != NULL) {
        failed = json_object_set_new(stream, "of", json_string(dataset->iterating.of->name));
    }
    if (failed == 0 && at->ended) {
        failed = json_object_set_new(stream, "end", manifest_number(at->end));
    }
    if (failed == 0 && dataset->pipeline != NULL &&
        strlen(dataset->pipeline) <= PIPELINE_BYTES_MAX) {
        /* A name that is not UTF-8 is not compared. */
        json_t *text = json_string(dataset->pipeline);
        failed = text == NULL ? 0 : json_object_set_new(stream, "pipeline", text);
    }
    failed = failed != 0 ? failed : add_files(stream, dataset);
    failed = failed != 0 ? failed : add_state(stream, dataset, state_room);
    if (failed != 0) {
        json_decref(stream);
        return NULL;
    }
    return stream;
}

/* --- reading --- */

static bool read_consumption(const json_t *object, struct consumption *consumption)
{
    json_int_t files = json_integer_value(json_object_get(object, "files")); /* 0: absent */
    if (files < CONSUMED_FILES_NONE || files > CONSUMED_FILES_ALL) {
        return false;
    }
    consumption->files = (enum consumed_files)files;
    return manifest_read_count(object, "steps", &consumption->steps) &&
           manifest_read_number(object, "samples", &consumption->samples) &&
           read_pair(object, "fed", consumption->consumed) &&
           read_pair(object, "expected", consumption->expected) &&
           manifest_read_bool(object, "provable", &consumption->provable);
}

static bool read_bytes(const json_t *value, uint8_t **ret_bytes, size_t *ret_count)
{
    *ret_bytes = NULL;
    return json_is_string(value) &&
           base64_decode(json_string_value(value), json_string_length(value), ret_bytes, ret_count);
}

static bool read_files(const json_t *value, struct dataset_received *received)
{
    CADRE_FREE_AT_EXIT uint8_t *bytes = NULL;
    size_t count = 0;
    struct cadre_error ignored; /* malformed, as all else here */
    received->has_shares =
        read_bytes(value, &bytes, &count) &&
        file_shares_decode(bytes, count, &received->shares, &ignored) == CADRE_OK;
    return received->has_shares;
}

static bool read_state(const json_t *object, struct dataset_received *received)
{
    struct distributed_state *state = &received->state;
    received->has_state =
        manifest_read_count(object, "epoch", &state->epoch) &&
        manifest_read_count(object, "step", &state->step) &&
        read_bytes(json_object_get(object, "bytes"), &state->bytes, &state->count);
    return received->has_state;
}

/* Members that manifests of older versions lack. */
static bool read_more(const json_t *object, struct saved_stream *saved)
{
    struct dataset_position *at = &saved->at;
    const json_t *pipeline = json_object_get(object, "pipeline");
    const json_t *files = json_object_get(object, "files");
    const json_t *state = json_object_get(object, "iterator");
    uint64_t workers = 0;
    bool good = true;
    at->next = at->applied;
    at->ended = json_object_get(object, "end") != NULL;
    if (at->ended) {
        good = manifest_read_count(object, "end", &at->end);
    }
    if (good && json_object_get(object, "next") != NULL) {
        good = manifest_read_count(object, "next", &at->next);
    }
    if (good && json_object_get(object, "workers") != NULL) {
        good = manifest_read_count(object, "workers", &workers) && workers <= LIMIT_TASKS_PER_JOB;
        at->workers = (uint32_t)workers;
    }
    if (good && json_is_string(pipeline)) {
        saved->pipeline = strdup(json_string_value(pipeline));
        good = saved->pipeline != NULL;
    }
    good = good && (files == NULL || read_files(files, &saved->received));
    good = good && (state == NULL || read_state(state, &saved->received));
    saved->received.any = manifest_read_bool(object, "by_files", &saved->received.by_files);
    return good;
}

bool manifest_read_stream(const json_t *object, struct saved_stream *ret_saved)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const json_t *steps = json_object_get(object, "steps");
    struct dataset_position *at = &ret_saved->at;
    *ret_saved = (struct saved_stream){0};
    if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof ret_saved->name) {
        return false;
    }
    memcpy(ret_saved->name, name, strlen(name) + 1);
    const char *of = json_string_value(json_object_get(object, "of"));
    if (of != NULL && strlen(of) < sizeof ret_saved->of) {
        memcpy(ret_saved->of, of, strlen(of) + 1);
    }
    ret_saved->steps = json_integer_value(steps);
    return json_is_integer(steps) &&
           manifest_read_count(object, "epochs_begun", &at->epochs_begun) &&
           manifest_read_count(object, "applied", &at->applied) &&
           manifest_read_bool(object, "open", &at->open) &&
           manifest_read_count(object, "serial", &at->serial) &&
           read_consumption(json_object_get(object, "feed"), &at->consumption) &&
           read_more(object, ret_saved);
}
