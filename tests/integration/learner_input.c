/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/learner_input.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char *text, const char *name)
{
    return strcmp(text, name) == 0;
}

cadre_shard_policy learner_shard(const char *text)
{
    return is(text, "off")    ? CADRE_SHARD_OFF
           : is(text, "file") ? CADRE_SHARD_FILE
           : is(text, "auto") ? CADRE_SHARD_AUTO
                              : CADRE_SHARD_DATA;
}

/* --- samples out of files --- */

static cadre_status parse_line(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const cadre_string *line = cadre_tensor_const_data(in->tensors[0]);
    char text[24];
    (void)user;
    if (line->size == 0 || line->size >= sizeof text) {
        return cadre_fail(CADRE_INVALID_ARGUMENT, "a line of %zu bytes is no number", line->size);
    }
    memcpy(text, line->bytes, line->size);
    text[line->size] = '\0';
    ret_out->count = 1;
    return cadre_tensor_from_i64(strtoll(text, NULL, 10), &ret_out->tensors[0]);
}

static cadre_status parse_record(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const cadre_string *record = cadre_tensor_const_data(in->tensors[0]);
    int64_t number;
    (void)user;
    if (record->size < sizeof number) { /* what follows is only there to be read */
        return cadre_fail(CADRE_INVALID_ARGUMENT, "a record of %zu bytes", record->size);
    }
    memcpy(&number, record->bytes, sizeof number);
    ret_out->count = 1;
    return cadre_tensor_from_i64(number, &ret_out->tensors[0]);
}

static cadre_status open_lines(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    const cadre_string *name = cadre_tensor_const_data(in->tensors[0]);
    char path[4096];
    (void)user;
    snprintf(path, sizeof path, "%.*s", (int)name->size, name->bytes);
    *ret_data = cadre_dataset_text_lines(&(const char *){path}, 1, NULL);
    return CADRE_OK;
}

/* Of numbers below twice the samples: the even ones. */
static cadre_status is_even(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) % 2 == 0;
    return CADRE_OK;
}

static cadre_status halve(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->count = 1;
    return cadre_tensor_from_i64(
        *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) / 2, &ret_out->tensors[0]);
}

/* --- files --- */

/* A source of all files that match, in one list. */
static cadre_dataset *list_of(const struct learner_input *input, const char *kind)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.%s", input->data, kind);
    if (glob(pattern, 0, NULL, &found) != 0) {
        return cadre_dataset_list_files(&(const char *){pattern}, 1, NULL); /* it says why */
    }
    const char *const *paths = (const char *const *)found.gl_pathv;
    const size_t count = found.gl_pathc - (input->leaves_out ? 1 : 0);
    cadre_dataset *data = is(kind, "txt") ? cadre_dataset_text_lines(paths, count, NULL)
                                          : cadre_dataset_tfrecord(paths, count, NULL);
    globfree(&found);
    return data;
}

static cadre_dataset *lines_of(const struct learner_input *input)
{
    const cadre_list_files_options stirred = {.shuffle = is(input->via, "stirred"), .seed = 5};
    const cadre_interleave_options by_turns = {
        .cycle_length = 3, .block_length = 2, .parallel = is(input->via, "threads") ? 2 : 0};
    char pattern[4096];
    if (is(input->via, "list")) {
        return cadre_dataset_map(list_of(input, "txt"), parse_line, NULL, NULL);
    }
    snprintf(pattern, sizeof pattern, "%s/*.txt", input->data);
    cadre_dataset *names = cadre_dataset_list_files(&(const char *){pattern}, 1, &stirred);
    if (input->leaves_out) {
        names = cadre_dataset_take(names, cadre_dataset_cardinality(names) - 1);
    }
    cadre_dataset *lines = is(input->via, "flat")
                               ? cadre_dataset_flat_map(names, open_lines, NULL)
                               : cadre_dataset_interleave(names, open_lines, NULL, &by_turns);
    return cadre_dataset_map(lines, parse_line, NULL, NULL);
}

static cadre_dataset *records_of(const struct learner_input *input)
{
    char paths[2][4096];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d.tfrecord", input->data, i);
    }
    return cadre_dataset_tfrecord((const char *[]){paths[0], paths[1]}, 2, NULL);
}

static cadre_dataset *samples_of(const struct learner_input *input)
{
    if (input->data == NULL) {
        return cadre_dataset_shuffle(
            cadre_dataset_range(0, input->samples, 1), CADRE_SHUFFLE_ALL, 7, NULL);
    }
    if (is(input->source, "records")) {
        return cadre_dataset_shuffle(cadre_dataset_map(records_of(input), parse_record, NULL, NULL),
            CADRE_SHUFFLE_ALL, 7, NULL);
    }
    if (is(input->source, "list")) {
        return cadre_dataset_shuffle(
            cadre_dataset_map(list_of(input, "tfrecord"), parse_record, NULL, NULL), 24, 7, NULL);
    }
    cadre_dataset *lines = lines_of(input);
    if (is(input->source, "lines")) {
        return lines;
    }
    return cadre_dataset_shuffle(
        cadre_dataset_map(cadre_dataset_filter(lines, is_even, NULL), halve, NULL, NULL), 24, 7,
        NULL);
}

/* --- distributed --- */

static cadre_dataset *epochs_of(const struct learner_input *input, cadre_dataset *data)
{
    return input->endless ? cadre_dataset_repeat(data, -1) : data;
}

/* Every pipeline has batches half as large as those of the one before, and so twice as many. */
static cadre_status make_pipeline(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    const struct learner_input *input = user;
    int64_t batch = input->batch >> context->input_pipeline_id;
    cadre_dataset *data = cadre_dataset_shard(
        samples_of(input), context->num_input_pipelines, context->input_pipeline_id);
    *ret_data = epochs_of(input, cadre_dataset_batch(data, batch > 0 ? batch : 1, false));
    return CADRE_OK;
}

cadre_status learner_distribute(cadre_strategy *strategy, struct learner_input *input,
    const char *name, cadre_distributed_dataset **ret_distributed)
{
    const cadre_input_options options = {
        .name = name, .auto_shard = input->shard, .steps_per_epoch = input->steps};
    if (is(input->source, "function")) {
        return cadre_distribute_datasets_from_function(
            strategy, make_pipeline, input, &options, ret_distributed);
    }
    cadre_dataset *data =
        epochs_of(input, cadre_dataset_batch(samples_of(input), input->batch, false));
    return cadre_distribute_dataset(strategy, data, &options, ret_distributed);
}
