/* SPDX-License-Identifier: Apache-2.0
 * Reading manifests: all is checked and made before anything is taken over. checkpoint_read.c and
 * state_hooks.c call it. */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/checkpoint/content.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "worker/library/runtime/state/format/manifest_json.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define PARSE_FLAGS JSON_REJECT_DUPLICATES

struct manifest_content {
    uint64_t position;
    uint64_t job;
    char run[MANIFEST_RUN_BYTES];
    bool restored;
    uint32_t plain_tasks; /* 0: of a strategy */
    enum loop_point saved;
    struct saved_stream *streams;
    size_t stream_count;
    cadre_tensor **strings; /* by variable; NULL for those of other types */
    size_t string_count;
    struct manifest_hashes hashes;
    struct manifest_file file;
};

static cadre_status manifest_read_malformed(struct cadre_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static cadre_status manifest_read_malformed(struct cadre_error *error, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "this is not a manifest of a checkpoint that can be read here: %s", text);
}

/* --- streams --- */

static bool is_run(const char *text)
{
    return text != NULL && strlen(text) == MANIFEST_RUN_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == MANIFEST_RUN_BYTES - 1;
}

static cadre_status read_streams(
    const json_t *root, struct manifest_content *content, struct cadre_error *error)
{
    const json_t *list = json_object_get(root, "streams");
    if (!json_is_array(list)) {
        return manifest_read_malformed(error, "\"streams\" is no list");
    }
    size_t count = json_array_size(list);
    content->streams = calloc(count + 1, sizeof *content->streams);
    if (content->streams == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a manifest of %zu streams", count);
    }
    content->stream_count = count;
    cadre_status status = CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < count; i++) {
        struct saved_stream *saved = &content->streams[i];
        if (!manifest_read_stream(json_array_get(list, i), saved)) {
            status = manifest_read_malformed(
                error, "its description of stream %zu, '%s', is not whole", i, saved->name);
        }
    }
    return status;
}

/* --- strings --- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Turns hexadecimal digits into bytes, in place. */
static bool decode_hex(char *text, size_t *ret_size)
{
    size_t digits = strlen(text);
    for (size_t i = 0; i + 1 < digits; i += 2) {
        int high = digit_of(text[i]);
        int low = digit_of(text[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        text[i / 2] = (char)(high * 16 + low);
    }
    *ret_size = digits / 2;
    return digits % 2 == 0;
}

/* The bytes stay the value's; *ret_owned are those made of hexadecimal digits. */
static bool read_string(const json_t *value, cadre_string *ret_string, char **ret_owned)
{
    *ret_owned = NULL;
    if (json_is_string(value)) {
        *ret_string = (cadre_string){json_string_value(value), json_string_length(value)};
        return true;
    }
    const char *hex = json_string_value(json_object_get(value, "hex"));
    *ret_owned = hex == NULL ? NULL : strdup(hex);
    if (*ret_owned == NULL || !decode_hex(*ret_owned, &ret_string->size)) {
        return false;
    }
    ret_string->bytes = *ret_owned;
    return true;
}

static cadre_status read_strings_of(const json_t *list, const cadre_variable *variable,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    if (list == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "it holds no variable of strings '%s'", variable->name);
    }
    size_t count = (size_t)variable->count;
    if (!json_is_array(list) || json_array_size(list) != count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds %zu strings of '%s', and the program has %zu", json_array_size(list),
            variable->name, count);
    }
    cadre_string *strings = calloc(count + 1, sizeof *strings);
    char **owned = calloc(count + 1, sizeof *owned);
    cadre_status status = strings != NULL && owned != NULL
                              ? CADRE_OK
                              : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                    "no memory for %zu strings of '%s'", count, variable->name);
    for (size_t i = 0; status == CADRE_OK && i < count; i++) {
        if (!read_string(json_array_get(list, i), &strings[i], &owned[i])) {
            status =
                manifest_read_malformed(error, "string %zu of '%s' is none", i, variable->name);
        }
    }
    if (status == CADRE_OK) {
        status = tensor_from_data(
            CADRE_STRING, variable->rank, variable->dims, strings, ret_tensor, error);
    }
    for (size_t i = 0; owned != NULL && i < count; i++) {
        free(owned[i]);
    }
    free(owned);
    free(strings);
    return status;
}

static cadre_status read_strings(const struct cadre_strategy *strategy, const json_t *root,
    struct manifest_content *content, struct cadre_error *error)
{
    const json_t *all = json_object_get(root, "strings");
    if (!json_is_object(all)) {
        return manifest_read_malformed(error, "\"strings\" is no object");
    }
    content->string_count = strategy->variables->count;
    content->strings = calloc(content->string_count + 1, sizeof *content->strings);
    if (content->strings == NULL) {
        content->string_count = 0;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for strings");
    }
    cadre_status status = CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < content->string_count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->dtype == CADRE_STRING) {
            status = read_strings_of(
                json_object_get(all, variable->name), variable, &content->strings[i], error);
        }
    }
    return status;
}

cadre_status manifest_read_strings(const char *text, size_t bytes, const cadre_variable *variable,
    cadre_tensor **ret_strings, struct cadre_error *error)
{
    json_error_t where;
    json_t *root = json_loadb(text, bytes, PARSE_FLAGS, &where);
    const json_t *all = json_object_get(root, "strings");
    cadre_status status =
        json_is_object(all)
            ? read_strings_of(json_object_get(all, variable->name), variable, ret_strings, error)
            : manifest_read_malformed(error, "\"strings\" is no object");
    json_decref(root);
    return status;
}

cadre_status manifest_each_strings(const char *text, size_t bytes,
    void (*each)(void *user, const char *name, size_t count), void *user, struct cadre_error *error)
{
    json_error_t where;
    json_t *root = json_loadb(text, bytes, PARSE_FLAGS, &where);
    json_t *all = json_object_get(root, "strings");
    cadre_status status =
        json_is_object(all) ? CADRE_OK : manifest_read_malformed(error, "\"strings\" is no object");
    const char *name;
    json_t *list;
    json_object_foreach(all, name, list)
    {
        each(user, name, json_array_size(list));
    }
    json_decref(root);
    return status;
}

/* --- the file --- */

static cadre_status read_checksums(
    const json_t *root, struct manifest_file *file, struct cadre_error *error)
{
    const json_t *list = json_object_get(root, "blocks");
    for (size_t i = 0; i < file->block_count; i++) {
        const char *text = json_string_value(json_object_get(json_array_get(list, i), "crc32c"));
        if (text == NULL || strlen(text) != 8 || strspn(text, "0123456789abcdef") != 8) {
            return manifest_read_malformed(error, "block %zu has no \"crc32c\" of 8 digits", i);
        }
        file->blocks[i].crc32c = (uint32_t)strtoul(text, NULL, 16);
    }
    return CADRE_OK;
}

static cadre_status read_file(const json_t *root, const char *text, size_t bytes,
    struct manifest_file *file, struct cadre_error *error)
{
    struct checkpoint_content content;
    cadre_status status = checkpoint_content_read(text, bytes, &content, error);
    if (status != CADRE_OK) {
        return status;
    }
    memcpy(file->name, content.file_name, sizeof file->name);
    file->bytes = content.file_bytes;
    file->block_count = content.block_count;
    file->blocks = calloc(content.block_count + 1, sizeof *file->blocks);
    for (size_t i = 0; file->blocks != NULL && i < content.block_count; i++) {
        file->blocks[i].offset = content.blocks[i].offset;
        file->blocks[i].bytes = content.blocks[i].bytes;
        memcpy(file->blocks[i].sha256, content.blocks[i].sha256, sizeof file->blocks[i].sha256);
    }
    checkpoint_content_free(&content);
    return file->blocks != NULL
               ? read_checksums(root, file, error)
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a manifest");
}

/* --- the whole --- */

static cadre_status read_head(
    const json_t *root, struct manifest_content *content, struct cadre_error *error)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const char *run = json_string_value(json_object_get(root, "run"));
    uint64_t version = 0;
    if (format == NULL || strcmp(format, "cadre-checkpoint") != 0) {
        return manifest_read_malformed(error, "\"format\" is not \"cadre-checkpoint\"");
    }
    if (!manifest_read_number(root, "version", &version) || version < CHECKPOINT_VERSION_OLDEST ||
        version > CHECKPOINT_VERSION) {
        return manifest_read_malformed(
            error, "its \"version\" is not 1 or 2: a newer Cadre wrote it");
    }
    if (!manifest_read_count(root, "position", &content->position)) {
        return manifest_read_malformed(error, "\"position\" is no count of steps");
    }
    if (!manifest_read_number(root, "job", &content->job) || run == NULL ||
        !manifest_read_bool(root, "restored", &content->restored)) {
        return manifest_read_malformed(error, "\"job\", \"run\" or \"restored\" is missing");
    }
    if (run[0] != '\0' && !is_run(run)) {
        return manifest_read_malformed(error, "\"run\" is not 32 hexadecimal digits");
    }
    uint64_t saved = LOOP_BETWEEN_STEPS;
    if (json_object_get(root, "place") != NULL &&
        (!manifest_read_number(root, "place", &saved) || saved > LOOP_IN_RUN)) {
        return manifest_read_malformed(error, "\"place\" is not one of 0 to %d", LOOP_IN_RUN);
    }
    const json_t *plain = json_object_get(root, "plain");
    uint64_t tasks = 0;
    if (plain != NULL && (!manifest_read_number(plain, "tasks", &tasks) || tasks == 0 ||
                             tasks > LIMIT_TASKS_PER_JOB)) {
        return manifest_read_malformed(
            error, "\"plain\" has no number of tasks from 1 to %d", LIMIT_TASKS_PER_JOB);
    }
    content->plain_tasks = (uint32_t)tasks;
    content->saved = (enum loop_point)saved;
    memcpy(content->run, run, strlen(run) + 1);
    return CADRE_OK;
}

cadre_status manifest_read(const struct cadre_strategy *strategy, const char *text, size_t bytes,
    struct manifest_content **ret_content, struct cadre_error *error)
{
    *ret_content = NULL;
    json_error_t where;
    json_t *root =
        bytes > LIMIT_MANIFEST_BYTES ? NULL : json_loadb(text, bytes, PARSE_FLAGS, &where);
    struct manifest_content *content = calloc(1, sizeof *content);
    cadre_status status = CADRE_OK;
    if (bytes > LIMIT_MANIFEST_BYTES) {
        status = manifest_read_malformed(
            error, "%zu bytes are over the limit of %d", bytes, LIMIT_MANIFEST_BYTES);
    } else if (!json_is_object(root)) {
        status = manifest_read_malformed(
            error, "%s", root == NULL ? where.text : "it is no JSON object");
    } else if (content == NULL) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a manifest");
    }
    if (status == CADRE_OK) {
        status = read_head(root, content, error);
    }
    if (status == CADRE_OK) {
        status = read_streams(root, content, error);
    }
    if (status == CADRE_OK && strategy != NULL) {
        status = read_strings(strategy, root, content, error);
    }
    if (status == CADRE_OK) {
        status = manifest_read_hashes(root, &content->hashes, error);
    }
    if (status == CADRE_OK && json_object_get(root, "file") != NULL) {
        status = read_file(root, text, bytes, &content->file, error);
    }
    json_decref(root);
    if (status != CADRE_OK) {
        manifest_content_free(content);
        return status;
    }
    *ret_content = content;
    return CADRE_OK;
}

void manifest_content_free(struct manifest_content *content)
{
    if (content == NULL) {
        return;
    }
    for (size_t i = 0; i < content->string_count; i++) {
        cadre_tensor_release(content->strings[i]);
    }
    for (size_t i = 0; i < content->stream_count; i++) {
        saved_stream_clear(&content->streams[i]);
    }
    free(content->strings);
    free(content->streams);
    manifest_hashes_clear(&content->hashes);
    manifest_file_clear(&content->file);
    free(content);
}

uint64_t manifest_position(const struct manifest_content *content)
{
    return content->position;
}

const char *manifest_run(const struct manifest_content *content)
{
    return content->run;
}

uint32_t manifest_plain_tasks(const struct manifest_content *content)
{
    return content->plain_tasks;
}

const struct manifest_file *manifest_tensors(const struct manifest_content *content)
{
    return content->file.blocks == NULL ? NULL : &content->file;
}

/* --- taking over --- */

/* Within an epoch the dataset must be divided as it was, or samples would be consumed twice or not
 * at all. */
static cadre_status manifest_read_fits(const cadre_distributed_dataset *dataset,
    const struct saved_stream *saved, struct cadre_error *error)
{
    bool inside = saved->at.open && saved->at.epochs_begun > 0 && saved->at.applied > 0 &&
                  (saved->steps <= 0 || saved->at.applied < (uint64_t)saved->steps);
    if (!inside || strcmp(dataset->name, saved->name) != 0) {
        return CADRE_OK;
    }
    bool own = dataset->iterating.of != NULL; /* which sets its number of steps itself */
    int64_t steps = own ? -1 : distributed_steps_of(dataset, saved->at.epochs_begun - 1);
    if (steps >= 0 && saved->steps > 0 && steps != saved->steps) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it was written after %llu of the %lld steps of epoch %llu of dataset '%s', which has "
            "%lld steps in this program; divide the dataset into the same batches as before",
            (unsigned long long)saved->at.applied, (long long)saved->steps,
            (unsigned long long)saved->at.epochs_begun, dataset->name, (long long)steps);
    }
    bool by_files = distributed_input_policy(dataset->input) == CADRE_SHARD_FILE;
    bool refused = saved->received.by_files != by_files &&
                   !distributed_input_is_either(dataset->input); /* else it stays as it began */
    if (saved->received.any && refused) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it was written in the middle of epoch %llu of dataset '%s', which %s "
            "in this program; use the same cadre_shard_policy as before",
            (unsigned long long)saved->at.epochs_begun, dataset->name,
            by_files ? "was not divided by files then and is"
                     : "was divided by files then and is not");
    }
    return saved->received.has_shares ? pipelines_match(dataset, saved->pipeline, error) : CADRE_OK;
}

cadre_status manifest_fits(const struct cadre_strategy *strategy,
    const struct manifest_content *content, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        for (size_t at = 0; status == CADRE_OK && at < content->stream_count; at++) {
            status = manifest_read_fits(strategy->input->datasets[i], &content->streams[at], error);
        }
    }
    return status;
}

cadre_status manifest_make_iterators(struct cadre_strategy *strategy,
    const struct manifest_content *content, struct cadre_error *error)
{
    for (size_t i = 0; i < content->stream_count; i++) {
        const struct saved_stream *saved = &content->streams[i];
        uint64_t steps = saved->steps > 0 ? (uint64_t)saved->steps : 0;
        if (saved->of[0] != '\0') {
            CADRE_TRY(iterator_receive(strategy, saved->name, saved->of, steps, error));
        }
    }
    return CADRE_OK;
}

bool manifest_hash_of(const struct manifest_content *content, const char *name, uint64_t *ret_hash)
{
    return manifest_hashes_find(&content->hashes, name, ret_hash);
}

static void take_stream(
    struct cadre_strategy *strategy, cadre_distributed_dataset *dataset, struct saved_stream *saved)
{
    bool same = pipelines_match(dataset, saved->pipeline, NULL) == CADRE_OK;
    saved->received.has_state = saved->received.has_state && same;
    dataset->received = saved->received;
    saved->received = (struct dataset_received){0};
    if (strategy_is_warm(strategy)) {
        dataset->at = saved->at;
        dataset->reenters = true;
        if (saved->at.serial > strategy->input->serial_last) {
            strategy->input->serial_last = saved->at.serial;
        }
    } else if (dataset->at.epochs_begun == saved->at.epochs_begun) {
        dataset->at.consumption = saved->at.consumption;
    }
}

void manifest_take_over(
    struct cadre_strategy *strategy, struct manifest_content *content, bool from_file)
{
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    bool warm = strategy_is_warm(strategy);
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        for (size_t at = 0; at < content->stream_count; at++) {
            if (strcmp(strategy->input->datasets[i]->name, content->streams[at].name) == 0) {
                take_stream(strategy, strategy->input->datasets[i], &content->streams[at]);
            }
        }
    }
    for (size_t i = 0; i < content->string_count; i++) {
        if (content->strings[i] != NULL) {
            variable_set_strings(strategy->variables->list[i], content->strings[i]);
            content->strings[i] = NULL;
        }
    }
    /* Another job's checkpoints are not deleted by the job that goes on from them. */
    bool ours = !from_file || strategy->environment->checkpoint_own ||
                (!strategy->environment->by_hand && content->job == strategy->environment->job);
    if (warm && ours) {
        memcpy(checkpointer->run, content->run, sizeof checkpointer->run);
    } else if (warm) {
        struct cadre_error ignored; /* then it is named when it is written */
        checkpointer_name_run(checkpointer, &ignored);
    }
    if (warm) {
        strategy->state_part->captured_at = content->saved;
    }
    if (warm && (from_file || content->restored)) {
        checkpointer->restored_at = content->position;
        state_restored();
    }
}

/* Compares the datasets of the other tasks with this task's. */
static cadre_status manifest_read_match(struct cadre_strategy *strategy,
    const struct manifest_content *content, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        for (size_t at = 0; at < content->stream_count; at++) {
            const struct saved_stream *saved = &content->streams[at];
            if (strcmp(strategy->input->datasets[i]->name, saved->name) == 0) {
                CADRE_TRY(pipelines_match(strategy->input->datasets[i], saved->pipeline, error));
            }
        }
    }
    return CADRE_OK;
}

cadre_status manifest_decode(struct cadre_strategy *strategy, const char *text, size_t bytes,
    uint64_t *ret_position, struct cadre_error *error)
{
    struct manifest_content *content = NULL;
    cadre_status status = manifest_read(strategy, text, bytes, &content, error);
    if (status != CADRE_OK) {
        return status;
    }
    if (strategy_is_warm(strategy)) {
        status = manifest_read_match(strategy, content, error);
        status = status == CADRE_OK ? manifest_make_iterators(strategy, content, error) : status;
    }
    if (status != CADRE_OK) {
        manifest_content_free(content);
        return status;
    }
    manifest_take_over(strategy, content, false);
    *ret_position = content->position;
    manifest_content_free(content);
    return CADRE_OK;
}

bool manifest_is_of(const char *text, size_t bytes, const char *run, uint64_t position)
{
    json_error_t where;
    json_t *root = json_loadb(text, bytes, PARSE_FLAGS, &where);
    const char *is = json_string_value(json_object_get(root, "run"));
    uint64_t at = 0;
    bool same = is != NULL && run[0] != '\0' && strcmp(is, run) == 0 &&
                manifest_read_number(root, "position", &at) && at == position;
    json_decref(root);
    return same;
}
