/* SPDX-License-Identifier: Apache-2.0
 * The source whose elements are the records of TFRecord files: what it is. See
 * tfrecord_iterator.c and tfrecord_by_index.c for how it is read. */
#include "worker/library/input/sources/tfrecord.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES_DEFAULT ((size_t)1 << 20)
#define BUFFER_BYTES_MAX     ((size_t)1 << 30)
#define RECORD_BYTES_DEFAULT ((int64_t)1 << 30)

static void tfrecord_destroy(cadre_dataset *self)
{
    struct tfrecord_dataset *tfrecord = (struct tfrecord_dataset *)self;
    tfrecord_close_tables(tfrecord);
    for (size_t i = 0; tfrecord->files != NULL && i < tfrecord->path_count; i++) {
        input_file_close(&tfrecord->files[i]);
    }
    free(tfrecord->files);
    for (size_t i = 0; tfrecord->paths != NULL && i < tfrecord->path_count; i++) {
        free(tfrecord->paths[i]);
    }
    free(tfrecord->paths);
    free(tfrecord->index_folder);
    pthread_mutex_destroy(&tfrecord->lock);
}

static cadre_status tfrecord_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    (void)inputs;
    (void)error;
    *ret_spec = (cadre_element_spec){.count = 1, .tensors = {{.dtype = CADRE_STRING}}};
    return CADRE_OK;
}

static cadre_status tfrecord_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(id_list_add(ids, positions[i].index, error));
    }
    return CADRE_OK;
}

static const char *compression_name(cadre_compression compression)
{
    return compression == CADRE_COMPRESSION_GZIP   ? "gzip, "
           : compression == CADRE_COMPRESSION_ZLIB ? "zlib, "
                                                   : "";
}

static void tfrecord_describe(const cadre_dataset *self, struct description *text)
{
    struct tfrecord_dataset *tfrecord = (struct tfrecord_dataset *)self;
    description_add(text, "%s%zu %s", compression_name(tfrecord->options.compression),
        tfrecord->path_count, tfrecord->path_count == 1 ? "file" : "files");
    for (size_t i = 0; i < tfrecord->path_count; i++) {
        const char *slash = strrchr(tfrecord->paths[i], '/');
        const char *name = slash == NULL ? tfrecord->paths[i] : slash + 1;
        struct cadre_error unsaid = {0};
        int64_t bytes = 0;
        input_files_expect((const char *const *)tfrecord->paths, tfrecord->path_count, i);
        if (tfrecord_hold(tfrecord, i, &unsaid) == CADRE_OK &&
            input_file_size(tfrecord->paths[i], &bytes, &unsaid) == CADRE_OK) {
            description_add(text, ", %s (%" PRId64 " bytes)", name, bytes);
        } else {
            description_add(text, ", %s (not there)", name);
        }
    }
}

static size_t tfrecord_count(const cadre_dataset *self)
{
    return ((const struct tfrecord_dataset *)self)->path_count;
}

static const char *tfrecord_path(const cadre_dataset *self, size_t number)
{
    return ((const struct tfrecord_dataset *)self)->paths[number];
}

static cadre_dataset *tfrecord_alone(const cadre_dataset *self, const char *path)
{
    const struct tfrecord_dataset *tfrecord = (const struct tfrecord_dataset *)self;
    const cadre_tfrecord_options options = {.compression = tfrecord->options.compression,
        .index_folder = tfrecord->index_folder,
        .skip_checksums = tfrecord->options.rules.skip_checksums,
        .buffer_bytes = tfrecord->options.buffer_bytes,
        .record_bytes = (int64_t)tfrecord->options.rules.record_bytes};
    return cadre_dataset_tfrecord(&path, 1, &options);
}

static const struct file_list_source tfrecord_lists = {
    .count = tfrecord_count, .path = tfrecord_path, .alone = tfrecord_alone};

static const struct dataset_ops tfrecord_ops = {
    .name = "tfrecord",
    .destroy = tfrecord_destroy,
    .describe = tfrecord_describe,
    .spec = tfrecord_spec,
    .prepare = tfrecord_prepare,
    .at = tfrecord_at,
    .gather = tfrecord_gather,
    .ids_at = tfrecord_ids_at,
    .iterate = tfrecord_iterate,
    .reads_files = true,
    .lists = &tfrecord_lists,
};

static cadre_status check_arguments(const char *const paths[], size_t path_count,
    const cadre_tfrecord_options *options, struct cadre_error *error)
{
    if (paths == NULL || path_count == 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "tfrecord: no file given; give at least one path");
    }
    for (size_t i = 0; i < path_count; i++) {
        if (paths[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "tfrecord: path %zu is NULL", i);
        }
    }
    if (options->compression != CADRE_COMPRESSION_NONE &&
        options->compression != CADRE_COMPRESSION_GZIP &&
        options->compression != CADRE_COMPRESSION_ZLIB) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tfrecord: %d is not a compression; use one of enum cadre_compression",
            (int)options->compression);
    }
    if (options->buffer_bytes > BUFFER_BYTES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tfrecord: a buffer of %zu bytes; the largest has %zu", options->buffer_bytes,
            BUFFER_BYTES_MAX);
    }
    if (options->record_bytes < 0 || options->record_bytes > RECORD_BYTES_LIMIT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tfrecord: a limit of %" PRId64 " bytes for a record; it is 0 (1 GiB) to %" PRId64,
            options->record_bytes, (int64_t)RECORD_BYTES_LIMIT);
    }
    return CADRE_OK;
}

static cadre_status copy_arguments(struct tfrecord_dataset *tfrecord, const char *const paths[],
    size_t path_count, const cadre_tfrecord_options *options, struct cadre_error *error)
{
    bool copied = true;
    tfrecord->paths = calloc(path_count, sizeof tfrecord->paths[0]);
    for (size_t i = 0; tfrecord->paths != NULL && i < path_count; i++) {
        tfrecord->paths[i] = strdup(paths[i]);
        copied = copied && tfrecord->paths[i] != NULL;
    }
    tfrecord->path_count = path_count;
    tfrecord->files = calloc(path_count, sizeof tfrecord->files[0]);
    copied = copied && tfrecord->files != NULL;
    if (options->index_folder != NULL) {
        tfrecord->index_folder = strdup(options->index_folder);
        copied = copied && tfrecord->index_folder != NULL;
    }
    if (tfrecord->paths == NULL || !copied) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "tfrecord: no memory for %zu files", path_count);
    }
    return CADRE_OK;
}

cadre_dataset *cadre_dataset_tfrecord(
    const char *const paths[], size_t path_count, const cadre_tfrecord_options *options)
{
    static const cadre_tfrecord_options defaults;
    struct cadre_error error = {0};
    options = options == NULL ? &defaults : options;
    if (check_arguments(paths, path_count, options, &error) != CADRE_OK) {
        return dataset_failed(NULL, &error);
    }
    struct tfrecord_dataset *tfrecord = dataset_new(sizeof *tfrecord, &tfrecord_ops, NULL);
    if (tfrecord == NULL) {
        return NULL;
    }
    pthread_mutex_init(&tfrecord->lock, NULL);
    tfrecord->options = (struct record_options){
        .compression = options->compression,
        .rules = {.record_bytes = (uint64_t)(options->record_bytes == 0 ? RECORD_BYTES_DEFAULT
                                                                        : options->record_bytes),
            .skip_checksums = options->skip_checksums},
        .buffer_bytes = options->buffer_bytes == 0 ? BUFFER_BYTES_DEFAULT : options->buffer_bytes,
    };
    tfrecord->base.indexable = options->compression == CADRE_COMPRESSION_NONE;
    if (thread_pool_parallel(options->parallel, "tfrecord", &tfrecord->threads, &error) !=
            CADRE_OK ||
        copy_arguments(tfrecord, paths, path_count, options, &error) != CADRE_OK) {
        return dataset_failed(&tfrecord->base, &error);
    }
    return &tfrecord->base;
}
