/* SPDX-License-Identifier: Apache-2.0
 * The source of the lines of text files, compressed or not. Where a line begins is known only when
 * those before it have been read, so it is read in order; going on in the middle of a file passes
 * over what was read before, without looking for lines. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/files/inflate_stream.h"
#include "worker/library/input/files/input_file.h"
#include "worker/library/input/files/line_reader.h"
#include "worker/library/input/node/node.h"

#define TEXT_LINE_BYTES_DEFAULT ((int64_t)64 << 20)

/* Of the object that is read next, while this one is read. */
#define EXPECTED_BYTES ((size_t)1 << 20)

/* Lines that are passed over at a time. */
#define LINES_SKIPPED 256

struct text_dataset {
    cadre_dataset base;
    struct input_file *files;
    size_t file_count;
    cadre_compression compression;
    uint64_t text_line_bytes;
};

struct text_iterator {
    cadre_iterator base;
    struct line_reader reader;
    size_t file;               /* that the reader reads, or that is to be opened */
    uint64_t text_line_number; /* number of the next one, over all files */
    cadre_string *lines;       /* room for those of a batch */
    size_t room;
};

static const struct text_dataset *text_of(const struct text_iterator *iterator)
{
    return (const struct text_dataset *)iterator->base.data;
}

static cadre_status open_file(
    struct text_iterator *iterator, uint64_t offset, struct cadre_error *error)
{
    const struct text_dataset *text = text_of(iterator);
    if (iterator->file + 1 < text->file_count) {
        input_file_expect(text->files[iterator->file + 1].path, EXPECTED_BYTES);
    }
    return line_reader_open(&iterator->reader, text->files[iterator->file].path, text->compression,
        text->text_line_bytes, offset, error);
}

/* At least one line of one file, borrowed until the next call; OUT_OF_RANGE when there are no more.
 */
static cadre_status next_lines(struct text_iterator *iterator, cadre_string lines[], size_t wanted,
    size_t *ret_count, struct cadre_error *error)
{
    *ret_count = 0;
    while (iterator->file < text_of(iterator)->file_count) {
        if (iterator->reader.stream == NULL) {
            CADRE_TRY(open_file(iterator, 0, error));
        }
        CADRE_TRY(line_reader_next(&iterator->reader, lines, wanted, ret_count, error));
        if (*ret_count > 0) {
            iterator->text_line_number += *ret_count;
            return CADRE_OK;
        }
        line_reader_close(&iterator->reader);
        iterator->file++;
    }
    return iterator_end(error);
}

static cadre_status add_ids(const struct text_iterator *iterator, size_t count, struct id_list *ids,
    struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(id_list_add(ids, iterator->text_line_number - count + i, error));
    }
    return CADRE_OK;
}

static cadre_status text_next(cadre_iterator *self, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    struct text_iterator *iterator = (struct text_iterator *)self;
    cadre_string text_line;
    size_t count = 0;
    CADRE_TRY(next_lines(iterator, &text_line, 1, &count, error));
    CADRE_TRY(add_ids(iterator, 1, ids, error));
    CADRE_TRY(tensor_from_data(CADRE_STRING, 0, NULL, &text_line, &ret_element->tensors[0], error));
    ret_element->count = 1;
    return CADRE_OK;
}

static cadre_status text_next_rows(cadre_iterator *self, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct text_iterator *iterator = (struct text_iterator *)self;
    if (wanted > iterator->room) {
        cadre_string *lines = wanted > SIZE_MAX / sizeof *lines || fault_point("input.line")
                                  ? NULL
                                  : realloc(iterator->lines, wanted * sizeof *lines);
        if (lines == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "text_lines: no memory for a batch of %zu lines", wanted);
        }
        iterator->lines = lines;
        iterator->room = wanted;
    }
    CADRE_TRY(next_lines(iterator, iterator->lines, wanted, ret_count, error));
    const int64_t dims[] = {(int64_t)*ret_count};
    CADRE_TRY(add_ids(iterator, *ret_count, ids, error));
    CADRE_TRY(
        tensor_from_data(CADRE_STRING, 1, dims, iterator->lines, &ret_element->tensors[0], error));
    ret_element->count = 1;
    return CADRE_OK;
}

static cadre_status text_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct text_iterator *iterator = (struct text_iterator *)self;
    *ret_skipped = 0;
    while (*ret_skipped < count) {
        cadre_string lines[LINES_SKIPPED];
        size_t passed = 0;
        uint64_t left = count - *ret_skipped;
        cadre_status status = next_lines(
            iterator, lines, left < LINES_SKIPPED ? (size_t)left : LINES_SKIPPED, &passed, error);
        if (status == CADRE_OUT_OF_RANGE) {
            return CADRE_OK;
        }
        CADRE_TRY(status);
        *ret_skipped += passed;
    }
    return CADRE_OK;
}

/* A file, a place in its text where a line begins, and how many lines there were. */
static cadre_status text_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct text_iterator *iterator = (const struct text_iterator *)self;
    const struct line_reader *reader = &iterator->reader;
    bool open = reader->stream != NULL;
    /* Behind a last line without an end no line begins; the next file does. */
    bool through = open && reader->ended && reader->start == reader->end;
    CADRE_TRY(iterator_state_write_number(writer, iterator->file + through, error));
    CADRE_TRY(iterator_state_write_number(writer, open && !through ? reader->offset : 0, error));
    return iterator_state_write_number(writer, iterator->text_line_number, error);
}

static cadre_status text_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct text_iterator *iterator = (struct text_iterator *)self;
    size_t file_count = text_of(iterator)->file_count;
    uint64_t file = 0;
    uint64_t offset = 0;
    CADRE_TRY(iterator_state_read_number(reader, &file, error));
    CADRE_TRY(iterator_state_read_number(reader, &offset, error));
    CADRE_TRY(iterator_state_read_number(reader, &iterator->text_line_number, error));
    if (file > file_count || (file == file_count && offset > 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "text_lines: the saved position is in file %" PRIu64
            " (from 0), and there are %zu files",
            file, file_count);
    }
    iterator->file = (size_t)file;
    return offset == 0 ? CADRE_OK : open_file(iterator, offset, error);
}

static void text_free(cadre_iterator *self)
{
    struct text_iterator *iterator = (struct text_iterator *)self;
    line_reader_free(&iterator->reader);
    free(iterator->lines);
}

static const struct iterator_ops text_iterator_ops = {
    .next = text_next,
    .next_rows = text_next_rows,
    .skip = text_skip,
    .save = text_save,
    .restore = text_restore,
    .destroy = text_free,
};

static cadre_status text_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(struct text_iterator), &text_iterator_ops, self, pass, NULL, ret_iterator, error);
}

static cadre_status text_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    (void)inputs;
    (void)error;
    *ret_spec = (cadre_element_spec){.count = 1, .tensors = {{.dtype = CADRE_STRING}}};
    return CADRE_OK;
}

static void text_describe(const cadre_dataset *self, struct description *text)
{
    const struct text_dataset *lines = (const struct text_dataset *)self;
    static const char *const compressions[] = {"plain", "gzip", "zlib"};
    description_add(text, "%zu %s files", lines->file_count, compressions[lines->compression]);
    for (size_t i = 0; i < lines->file_count; i++) {
        input_file_describe(&lines->files[i], text);
    }
}

static void text_destroy(cadre_dataset *self)
{
    struct text_dataset *text = (struct text_dataset *)self;
    for (size_t i = 0; i < text->file_count; i++) {
        input_file_close(&text->files[i]);
    }
    free(text->files);
}

static size_t text_count(const cadre_dataset *self)
{
    return ((const struct text_dataset *)self)->file_count;
}

static const char *text_path(const cadre_dataset *self, size_t number)
{
    return ((const struct text_dataset *)self)->files[number].path;
}

static cadre_dataset *text_alone(const cadre_dataset *self, const char *path)
{
    const struct text_dataset *text = (const struct text_dataset *)self;
    const cadre_text_options options = {
        .compression = text->compression, .line_bytes = (int64_t)text->text_line_bytes};
    return cadre_dataset_text_lines(&path, 1, &options);
}

static const struct file_list_source text_lists = {
    .count = text_count, .path = text_path, .alone = text_alone};

static const struct dataset_ops text_ops = {
    .name = "text_lines",
    .describe = text_describe,
    .destroy = text_destroy,
    .spec = text_spec,
    .iterate = text_iterate,
    .reads_files = true,
    .lists = &text_lists,
};

static cadre_status check_arguments(const char *const paths[], size_t path_count,
    const cadre_text_options *options, struct cadre_error *error)
{
    if (paths == NULL || path_count == 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "text_lines: no file given; give at least one path");
    }
    for (size_t i = 0; i < path_count; i++) {
        if (paths[i] == NULL) {
            return cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "text_lines: path %zu is NULL", i);
        }
    }
    int compression = (int)options->compression;
    if (compression < CADRE_COMPRESSION_NONE || compression > CADRE_COMPRESSION_ZLIB) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "text_lines: %d is not a compression; use one of enum cadre_compression", compression);
    }
    if (options->line_bytes < 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "text_lines: lines of at most %" PRId64 " bytes; give 0 for %" PRId64
            ", or a positive number",
            options->line_bytes, TEXT_LINE_BYTES_DEFAULT);
    }
    return CADRE_OK;
}

cadre_dataset *cadre_dataset_text_lines(
    const char *const paths[], size_t path_count, const cadre_text_options *options)
{
    static const cadre_text_options defaults;
    struct cadre_error error = {0};
    options = options != NULL ? options : &defaults;
    if (check_arguments(paths, path_count, options, &error) != CADRE_OK) {
        return dataset_failed(NULL, &error);
    }
    struct text_dataset *text = dataset_new(sizeof *text, &text_ops, NULL);
    if (text == NULL) {
        return NULL;
    }
    text->base.indexable = false;
    text->base.cardinality = CADRE_CARDINALITY_UNKNOWN;
    text->compression = options->compression;
    int64_t bytes = options->line_bytes > 0 ? options->line_bytes : TEXT_LINE_BYTES_DEFAULT;
    text->text_line_bytes = (uint64_t)bytes;
    text->files = fault_point("input.line") ? NULL : calloc(path_count, sizeof text->files[0]);
    if (text->files == NULL) {
        cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "text_lines: no memory for %zu files", path_count);
        return dataset_failed(&text->base, &error);
    }
    for (size_t i = 0; i < path_count; i++) {
        input_files_expect(paths, path_count, i);
        if (input_file_open(&text->files[i], paths[i], false, &error) != CADRE_OK) {
            return dataset_failed(&text->base, &error);
        }
        text->file_count++;
    }
    return &text->base;
}
