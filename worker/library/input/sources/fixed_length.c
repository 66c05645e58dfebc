/* SPDX-License-Identifier: Apache-2.0
 * The source of fixed-size records in binary files. Sizes are checked when it is built, so that the
 * number of records, and with it the order of the whole set, is known before anything is read. */
#include <inttypes.h>
#include <stdlib.h>

#include "worker/library/device/tensor.h"
#include "worker/library/input/files/file_rows.h"
#include "worker/library/input/node/source.h"

/* Descriptors one source holds; the files behind the first ones are opened for each read. */
#define FILES_KEPT_OPEN 64

struct record_file {
    struct input_file file;
    uint64_t end; /* number of records in this file and all before it */
};

struct fixed_dataset {
    cadre_dataset base;
    struct record_file *files;
    size_t file_count;
    int64_t record_bytes;
    int64_t elements;                   /* of a record */
    cadre_fixed_length_options options; /* with what zeroes stand for */
    bool fills;                         /* the records fill each file */
};

static void fixed_destroy(cadre_dataset *self)
{
    struct fixed_dataset *fixed = (struct fixed_dataset *)self;
    for (size_t i = 0; i < fixed->file_count; i++) {
        input_file_close(&fixed->files[i].file);
    }
    free(fixed->files);
}

static cadre_status fixed_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)inputs;
    (void)error;
    const struct fixed_dataset *fixed = (const struct fixed_dataset *)self;
    *ret_spec = (cadre_element_spec){.count = 1,
        .tensors = {{.dtype = fixed->options.dtype, .rank = 1, .dims = {fixed->elements}}}};
    return CADRE_OK;
}

/* The first file that ends behind record `index`. */
static size_t find_file(const struct fixed_dataset *fixed, uint64_t index)
{
    size_t low = 0;
    size_t high = fixed->file_count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fixed->files[middle].end > index) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The records at `places`, one behind the other, as a tensor of that shape. */
static cadre_status read_records(const struct fixed_dataset *fixed, uint32_t rank,
    const int64_t *dims, const struct element_position positions[], size_t count,
    cadre_element *ret_element, struct cadre_error *error)
{
    cadre_tensor *read = NULL;
    CADRE_TRY(tensor_create_unset(fixed->options.dtype, rank, dims, &read, error));
    char *to = cadre_tensor_data(read);
    for (size_t done = 0; done < count;) {
        size_t number = find_file(fixed, positions[done].index);
        const struct record_file *file = &fixed->files[number];
        const struct file_rows rows = {
            .file = &file->file,
            .offset = fixed->options.header_bytes,
            .row_bytes = (size_t)fixed->record_bytes,
            .step_bytes = (size_t)fixed->options.every_bytes,
            .first = number == 0 ? 0 : fixed->files[number - 1].end,
        };
        size_t same = 1; /* how many from here on are of this file */
        while (done + same < count && positions[done + same].index >= rows.first &&
               positions[done + same].index < file->end) {
            same++;
        }
        cadre_status status = file_rows_read(&rows, positions + done, same, to, error);
        if (status != CADRE_OK) {
            cadre_tensor_release(read);
            return status;
        }
        done += same;
        to += same * rows.row_bytes;
    }
    *ret_element = (cadre_element){.count = 1, .tensors = {read}};
    return CADRE_OK;
}

static cadre_status fixed_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct fixed_dataset *fixed = (const struct fixed_dataset *)self;
    CADRE_TRY(id_list_add(ids, position.index, error));
    return read_records(fixed, 1, &fixed->elements, &position, 1, ret_element, error);
}

static cadre_status fixed_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct fixed_dataset *fixed = (const struct fixed_dataset *)self;
    const int64_t dims[] = {(int64_t)count, fixed->elements};
    CADRE_TRY(source_ids_at(self, positions, count, ids, error));
    return read_records(fixed, 2, dims, positions, count, ret_element, error);
}

static void fixed_describe(const cadre_dataset *self, struct description *text)
{
    const struct fixed_dataset *fixed = (const struct fixed_dataset *)self;
    description_add(text,
        "%zu files, records of %" PRId64 " %s every %" PRId64 " bytes behind %" PRId64,
        fixed->file_count, fixed->elements, cadre_dtype_name(fixed->options.dtype),
        fixed->options.every_bytes, fixed->options.header_bytes);
    for (size_t i = 0; i < fixed->file_count; i++) {
        input_file_describe(&fixed->files[i].file, text);
    }
}

static size_t fixed_count(const cadre_dataset *self)
{
    return ((const struct fixed_dataset *)self)->file_count;
}

static const char *fixed_path(const cadre_dataset *self, size_t number)
{
    return ((const struct fixed_dataset *)self)->files[number].file.path;
}

static cadre_dataset *fixed_alone(const cadre_dataset *self, const char *path)
{
    const struct fixed_dataset *fixed = (const struct fixed_dataset *)self;
    cadre_fixed_length_options options = fixed->options;
    options.every_bytes = fixed->fills ? 0 : options.every_bytes;
    return cadre_dataset_fixed_length(&path, 1, fixed->record_bytes, &options);
}

static const struct file_list_source fixed_lists = {
    .count = fixed_count, .path = fixed_path, .alone = fixed_alone};

static const struct dataset_ops fixed_ops = {
    .name = "fixed_length",
    .describe = fixed_describe,
    .destroy = fixed_destroy,
    .spec = fixed_spec,
    .at = fixed_at,
    .gather = fixed_gather,
    .ids_at = source_ids_at,
    .reads_files = true,
    .lists = &fixed_lists,
};

static cadre_status check_paths(
    const char *const paths[], size_t path_count, struct cadre_error *error)
{
    if (paths == NULL || path_count == 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "fixed_length: no file given; give at least one path");
    }
    for (size_t i = 0; i < path_count; i++) {
        if (paths[i] == NULL) {
            return cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "fixed_length: path %zu is NULL", i);
        }
    }
    return CADRE_OK;
}

static cadre_status check_sizes(
    int64_t record_bytes, const cadre_fixed_length_options *options, struct cadre_error *error)
{
    int64_t around = 0;
    if (options->header_bytes < 0 || options->footer_bytes < 0 || record_bytes < 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "fixed_length: header %" PRId64 ", record %" PRId64 " and footer %" PRId64
            " bytes; a record has at least 1 byte, the others at least 0",
            options->header_bytes, record_bytes, options->footer_bytes);
    }
    if (__builtin_add_overflow(options->header_bytes, options->footer_bytes, &around)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "fixed_length: header %" PRId64 " and footer %" PRId64
            " bytes are larger than any file",
            options->header_bytes, options->footer_bytes);
    }
    if (options->every_bytes < 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "fixed_length: a record every %" PRId64
            " bytes; give at least 1, or 0 for records one behind the other",
            options->every_bytes);
    }
    bool number = options->dtype >= CADRE_DTYPE_NONE && options->dtype <= CADRE_U8;
    if (!number) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "fixed_length: records cannot be read as %s; use a number type, or bytes",
            cadre_dtype_name(options->dtype));
    }
    size_t bytes = cadre_dtype_bytes(options->dtype);
    if (bytes > 0 && record_bytes % (int64_t)bytes != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "fixed_length: a record of %" PRId64 " bytes is no whole number of %s, of %zu bytes",
            record_bytes, cadre_dtype_name(options->dtype), bytes);
    }
    return CADRE_OK;
}

/* Opens file `number` and counts its records. */
static cadre_status add_file(
    struct fixed_dataset *fixed, const char *path, struct cadre_error *error)
{
    int64_t header_bytes = fixed->options.header_bytes;
    int64_t footer_bytes = fixed->options.footer_bytes;
    size_t number = fixed->file_count;
    struct record_file *added = &fixed->files[number];
    CADRE_TRY(input_file_open(&added->file, path, number < FILES_KEPT_OPEN, error));
    fixed->file_count++;
    int64_t content = added->file.bytes - header_bytes - footer_bytes;
    if (content < 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s has %" PRId64 " bytes, fewer than its header of %" PRId64 " and footer of %" PRId64,
            path, added->file.bytes, header_bytes, footer_bytes);
    }
    if (fixed->fills && content % fixed->record_bytes != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s holds %" PRId64 " bytes of records, which is %" PRId64 " records of %" PRId64
            " bytes and %" PRId64 " bytes more; it is cut short or the sizes are wrong",
            path, content, content / fixed->record_bytes, fixed->record_bytes,
            content % fixed->record_bytes);
    }
    uint64_t before = number == 0 ? 0 : fixed->files[number - 1].end;
    int64_t behind_first = content - fixed->record_bytes;
    added->end =
        before + (behind_first < 0 ? 0 : (uint64_t)(behind_first / fixed->options.every_bytes) + 1);
    if (added->end > INT64_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s and the files before it hold more than 2^63 records", path);
    }
    return CADRE_OK;
}

cadre_dataset *cadre_dataset_fixed_length(const char *const paths[], size_t path_count,
    int64_t record_bytes, const cadre_fixed_length_options *options)
{
    struct cadre_error error = {0};
    const cadre_fixed_length_options none = {0};
    options = options == NULL ? &none : options;
    if (check_paths(paths, path_count, &error) != CADRE_OK ||
        check_sizes(record_bytes, options, &error) != CADRE_OK) {
        return dataset_failed(NULL, &error);
    }
    struct fixed_dataset *fixed = dataset_new(sizeof *fixed, &fixed_ops, NULL);
    if (fixed == NULL) {
        return NULL;
    }
    fixed->options = *options;
    fixed->fills = options->every_bytes == 0;
    fixed->options.every_bytes = fixed->fills ? record_bytes : options->every_bytes;
    fixed->options.dtype = options->dtype == CADRE_DTYPE_NONE ? CADRE_U8 : options->dtype;
    fixed->record_bytes = record_bytes;
    fixed->elements = record_bytes / (int64_t)cadre_dtype_bytes(fixed->options.dtype);
    fixed->files = calloc(path_count, sizeof fixed->files[0]);
    if (fixed->files == NULL) {
        cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "fixed_length: no memory for %zu files", path_count);
        return dataset_failed(&fixed->base, &error);
    }
    for (size_t i = 0; i < path_count; i++) {
        input_files_expect(paths, path_count, i);
        if (add_file(fixed, paths[i], &error) != CADRE_OK) {
            return dataset_failed(&fixed->base, &error);
        }
    }
    fixed->base.cardinality = (int64_t)fixed->files[path_count - 1].end;
    return &fixed->base;
}
