/* SPDX-License-Identifier: Apache-2.0
 * Record files of cases: real TFRecord files in a folder of the case's own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/tfrecord.h"
#include "datasets.h"

#define FILES_MAX   4096
#define RECORDS_MAX 1000000
#define PATH_BYTES  640

static bool write_record(cadre_tfrecord_writer *writer, const json_t *record)
{
    char text[64];
    const char *bytes = text;
    size_t size = 0;
    if (json_is_string(record)) {
        bytes = json_string_value(record);
        size = json_string_length(record);
    } else if (json_is_integer(record)) {
        size = (size_t)snprintf(
            text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(record));
    } else if (json_is_real(record)) {
        size = (size_t)snprintf(text, sizeof text, "%.17g", json_real_value(record));
    } else {
        return false;
    }
    return cadre_tfrecord_writer_write(writer, bytes, size) == CADRE_OK;
}

static bool write_file(
    struct conformance_case *self, const char *path, const json_t *records, size_t number)
{
    cadre_tfrecord_writer *writer = NULL;
    if (!json_is_array(records)) {
        return case_skip(self, "the records of file %zu are no list", number);
    }
    if (!case_ok(self, cadre_tfrecord_writer_create(path, CADRE_COMPRESSION_NONE, &writer),
            "writing a record file")) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(records); i++) {
        if (!write_record(writer, json_array_get(records, i))) {
            cadre_tfrecord_writer_release(writer);
            return case_skip(
                self, "record %zu of file %zu is neither text nor a number", i, number);
        }
    }
    return case_ok(self, cadre_tfrecord_writer_close(writer), "writing a record file");
}

/* Record r of file f is "f:r". */
static json_t *numbered_files(struct conformance_case *self, const json_t *source)
{
    json_int_t files = 0;
    json_int_t records = 0;
    if (!case_number(self, source, "num_files", 0, FILES_MAX, 0, &files) ||
        !case_number(self, source, "records_per_file", 0, RECORDS_MAX, 0, &records)) {
        return NULL;
    }
    if (files * records > RECORDS_MAX) {
        case_skip(self, "more than %d records", RECORDS_MAX);
        return NULL;
    }
    json_t *list = json_array();
    for (json_int_t file = 0; file < files; file++) {
        json_t *content = json_array();
        for (json_int_t record = 0; record < records; record++) {
            json_array_append_new(content, json_sprintf("%lld:%lld", file, record));
        }
        json_array_append_new(list, content);
    }
    return list;
}

/* --- reading --- */

static cadre_status open_file(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)user;
    const cadre_string *name = cadre_tensor_const_data(in->tensors[0]);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.*s", (int)name->size, name->bytes);
    const char *paths[1] = {path};
    *ret_data = cadre_dataset_tfrecord(paths, 1, NULL);
    return CADRE_OK;
}

static cadre_status parse_integer(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const cadre_string *record = cadre_tensor_const_data(in->tensors[0]);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)record->size, record->bytes);
    ret_out->count = 1;
    return cadre_tensor_from_i64(strtoll(text, NULL, 10), &ret_out->tensors[0]);
}

static cadre_status parse_real(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const cadre_string *record = cadre_tensor_const_data(in->tensors[0]);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)record->size, record->bytes);
    ret_out->count = 1;
    return cadre_tensor_from_f32(strtof(text, NULL), &ret_out->tensors[0]);
}

static cadre_dataset *names_of(const char *const paths[], size_t count)
{
    cadre_string *names = calloc(count + 1, sizeof *names);
    const int64_t rows = (int64_t)count;
    cadre_tensor *tensor = NULL;
    for (size_t i = 0; names != NULL && i < count; i++) {
        names[i] = (cadre_string){paths[i], strlen(paths[i])};
    }
    if (names == NULL ||
        cadre_tensor_from_data(CADRE_STRING, 1, &rows, names, &tensor) != CADRE_OK) {
        free(names);
        return NULL;
    }
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    free(names);
    return data;
}

/* What all records are: the type of the first one's, a real wherever there is one. */
static enum json_type_of_records {
    RECORDS_TEXT,
    RECORDS_INTEGER,
    RECORDS_REAL
} records_of(const json_t *files)
{
    enum json_type_of_records kind = RECORDS_TEXT;
    for (size_t f = 0; f < json_array_size(files); f++) {
        const json_t *records = json_array_get(files, f);
        for (size_t r = 0; r < json_array_size(records); r++) {
            const json_t *record = json_array_get(records, r);
            kind = json_is_real(record)                              ? RECORDS_REAL
                   : json_is_integer(record) && kind == RECORDS_TEXT ? RECORDS_INTEGER
                                                                     : kind;
        }
    }
    return kind;
}

/* One reader that nothing can be seen of: a generator that goes through the records. */
static cadre_status begin_fused(uint64_t epoch, void **ret_pass, void *user)
{
    cadre_iterator *iterator = NULL;
    cadre_status status = cadre_dataset_iterate(user, epoch, &iterator);
    *ret_pass = iterator;
    return status;
}

static cadre_status next_fused(void *pass, cadre_element *ret_out, void *user)
{
    (void)user;
    return cadre_iterator_next(pass, ret_out);
}

static void end_fused(void *pass, void *user)
{
    (void)user;
    cadre_iterator_release(pass);
}

static void release_dataset(void *data)
{
    cadre_dataset_release(data);
}

static cadre_dataset *fused(struct conformance_case *self, const char *const paths[], size_t count)
{
    static const cadre_element_spec record = {.count = 1, .tensors = {{.dtype = CADRE_STRING}}};
    cadre_dataset *records = cadre_dataset_tfrecord(paths, count, NULL);
    case_keep(self, records, release_dataset);
    const cadre_generator generator = {.output = &record,
        .begin = begin_fused,
        .next = next_fused,
        .end = end_fused,
        .user = records};
    return cadre_dataset_generator(&generator);
}

static bool read_files(struct conformance_case *self, const char *reader, const char *const paths[],
    size_t count, cadre_dataset **ret_data)
{
    if (strcmp(reader, "sequential") == 0) {
        *ret_data = cadre_dataset_flat_map(names_of(paths, count), open_file, NULL);
        return true;
    }
    if (strcmp(reader, "interleave") == 0) {
        const cadre_interleave_options options = {.cycle_length = count == 0 ? 1 : (int64_t)count};
        *ret_data = cadre_dataset_interleave(names_of(paths, count), open_file, NULL, &options);
        return true;
    }
    if (strcmp(reader, "fused") == 0) {
        *ret_data = fused(self, paths, count);
        return true;
    }
    if (strcmp(reader, "list") == 0) {
        *ret_data = cadre_dataset_tfrecord(paths, count, NULL);
        return true;
    }
    return case_skip(self, "the reader \"%s\" is not known", reader);
}

bool dataset_of_record_files(
    struct conformance_case *self, const json_t *source, cadre_dataset **ret_data)
{
    const char *reader = json_string_value(json_object_get(source, "reader"));
    const char *folder = case_folder(self);
    json_t *files = json_incref(json_object_get(source, "files"));
    files = files != NULL ? files : numbered_files(self, source);
    if (folder == NULL || !json_is_array(files) || json_array_size(files) > FILES_MAX) {
        json_decref(files);
        return case_skip(self, "no list of at most %d files", FILES_MAX);
    }
    size_t count = json_array_size(files);
    char(*names)[PATH_BYTES] = case_alloc(self, count, sizeof *names);
    const char **paths = case_alloc(self, count, sizeof *paths);
    static unsigned serial; /* a case may have several sources */
    serial++;
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        snprintf(names[i], PATH_BYTES, "%s/%u-%04zu.tfrecord", folder, serial, i);
        paths[i] = names[i];
        good = write_file(self, paths[i], json_array_get(files, i), i);
    }
    enum json_type_of_records kind = records_of(files);
    json_decref(files);
    if (!good ||
        !read_files(self, reader == NULL ? "sequential" : reader, paths, count, ret_data)) {
        return false;
    }
    if (kind != RECORDS_TEXT) {
        *ret_data = cadre_dataset_map(
            *ret_data, kind == RECORDS_REAL ? parse_real : parse_integer, NULL, NULL);
    }
    return true;
}
