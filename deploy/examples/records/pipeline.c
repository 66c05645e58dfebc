/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <glob.h>
#include <stdio.h>

#include "model.h"

#define PATH_BYTES     4096
#define SHUFFLE_BUFFER 512 /* records held, where they cannot be read by place */

/* --- files --- */

static void pattern_of(const struct pipeline *pipeline, const char *set, char path[PATH_BYTES])
{
    const char *end = pipeline->files.compression == CADRE_COMPRESSION_GZIP ? ".gz" : "";
    snprintf(path, PATH_BYTES, "%s/digits-%s-*.tfrecord%s", pipeline->data, set, end);
}

/* Records of a fixed list of files, one file after the other. Not compressed they can be read by
 * place: shuffled without a buffer, and by each task its own only. */
static cadre_dataset *records_in_order(const struct pipeline *pipeline, const char *set)
{
    char pattern[PATH_BYTES];
    const char *patterns[1] = {pattern};
    glob_t files;
    pattern_of(pipeline, set, pattern);
    if (glob(pattern, 0, NULL, &files) != 0) {
        return cadre_dataset_list_files(patterns, 1, NULL); /* which says what is wrong */
    }
    cadre_dataset *data = cadre_dataset_tfrecord(
        (const char *const *)files.gl_pathv, files.gl_pathc, &pipeline->files);
    globfree(&files);
    return data;
}

/* Records of all files by turns. The names of the files are a dataset themselves, so that the tasks
 * share them out (CADRE_SHARD_FILE) and each reads several of its own at a time. */
static cadre_dataset *records_interleaved(struct pipeline *pipeline, uint64_t seed)
{
    char pattern[PATH_BYTES];
    const char *patterns[1] = {pattern};
    pattern_of(pipeline, "train", pattern);
    cadre_dataset *names = cadre_dataset_list_files(
        patterns, 1, &(cadre_list_files_options){.shuffle = true, .seed = seed});
    return cadre_dataset_interleave(names, cadre_open_tfrecord, &pipeline->files,
        &(cadre_interleave_options){.cycle_length = 4, .block_length = 8});
}

/* --- records to tensors --- */

/* A batch is parsed at once: one tensor per feature, not one per feature and record. */
static cadre_dataset *parsed(cadre_dataset *batches, cadre_example_parser *parser)
{
    return cadre_dataset_map(batches, cadre_example_map, parser, NULL);
}

static cadre_dataset *normalized(cadre_dataset *data, const struct pipeline *pipeline)
{
    return cadre_dataset_map(data, cadre_normalization_map, pipeline->normalization, NULL);
}

/* Of (numbers [n], records [n]) makes (image, label, number). */
static cadre_status parse_numbered(const cadre_element *in, cadre_element *ret_out, void *user)
{
    CADRE_TRY(cadre_example_parse_batch(user, in->tensors[1], ret_out));
    ret_out->tensors[ret_out->count++] = cadre_tensor_retain(in->tensors[0]);
    return CADRE_OK;
}

/* --- the pipelines --- */

cadre_dataset *pipeline_training(struct pipeline *pipeline, const struct settings *settings)
{
    bool by_index =
        settings->shard == CADRE_SHARD_DATA && settings->compression == CADRE_COMPRESSION_NONE;
    cadre_dataset *data = settings->shard == CADRE_SHARD_DATA
                              ? records_in_order(pipeline, "train")
                              : records_interleaved(pipeline, settings->seed);
    data = cadre_dataset_shuffle(
        data, by_index ? CADRE_SHUFFLE_ALL : SHUFFLE_BUFFER, settings->seed, NULL);
    data = cadre_dataset_batch(data, settings->batch, false);
    return normalized(parsed(data, pipeline->parser), pipeline);
}

cadre_dataset *pipeline_test(struct pipeline *pipeline, int64_t batch)
{
    cadre_dataset *data = cadre_dataset_batch(records_in_order(pipeline, "test"), batch, false);
    return normalized(parsed(data, pipeline->parser), pipeline);
}

cadre_dataset *pipeline_numbered(struct pipeline *pipeline, int64_t batch)
{
    cadre_dataset *data = cadre_dataset_enumerate(records_in_order(pipeline, "test"), 0);
    data = cadre_dataset_batch(data, batch, false);
    data = cadre_dataset_map(data, parse_numbered, pipeline->parser, NULL);
    return normalized(data, pipeline);
}

/* --- what they share --- */

cadre_status pipeline_create(
    cadre_strategy *strategy, const struct settings *settings, struct pipeline *ret_pipeline)
{
    static const cadre_feature features[] = {
        {.name = "image", .dtype = CADRE_F32, .rank = 1, .dims = {PIXELS}},
        {.name = "label", .dtype = CADRE_I64},
    };
    *ret_pipeline =
        (struct pipeline){.files = {.compression = settings->compression}, .data = settings->data};
    CADRE_TRY(cadre_example_parser_create(features, 2, &ret_pipeline->parser));
    cadre_dataset *images = cadre_dataset_batch(records_in_order(ret_pipeline, "train"), 64, false);
    /* One mean and variance for all pixels: some are white in every image, and have none. */
    return cadre_normalization_adapt(strategy, parsed(images, ret_pipeline->parser),
        &(cadre_adapt_options){.axis = CADRE_AXIS_NONE}, &ret_pipeline->normalization);
}

void pipeline_release(struct pipeline *pipeline)
{
    cadre_normalization_release(pipeline->normalization);
    cadre_example_parser_release(pipeline->parser);
}
