/* SPDX-License-Identifier: Apache-2.0
 * See cache_index.h. The file is a magic, numbers and the entries as iterator_state.h writes them,
 * then 4 bytes of CRC-32C of all that. */
#include "worker/library/input/cache/cache_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/iterator_state.h"

#define MAGIC          "cadre cache index 1"
#define CHECKSUM_BYTES 4

_Static_assert(sizeof(struct cache_entry) == 24, "entries are written as they are");

void cache_index_clear(struct cache_index *index)
{
    free(index->entries);
    *index = (struct cache_index){0};
}

/* One text line per shape; nothing is known of an empty dataset with an undeclared function. */
static cadre_status describe_elements(cadre_dataset *data, FILE *stream, struct cadre_error *error)
{
    cadre_element_spec spec = {0};
    cadre_status status = dataset_spec(data, &spec, error);
    if (status != CADRE_OK) {
        return status == CADRE_FAILED_PRECONDITION ? CADRE_OK : status;
    }
    for (uint32_t i = 0; i < spec.count; i++) {
        const cadre_tensor_spec *tensor = &spec.tensors[i];
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        fprintf(
            stream, "%s\n", tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, shape));
    }
    return CADRE_OK;
}

cadre_status cache_index_pipeline(
    cadre_dataset *data, struct sha256 *ret_hash, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = dataset_describe(data);
    CADRE_FREE_AT_EXIT char *whole = NULL;
    size_t size = 0;
    FILE *stream = text != NULL ? open_memstream(&whole, &size) : NULL;
    if (stream == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to describe the pipeline");
    }
    fputs(text, stream);
    cadre_status status = describe_elements(data, stream, error);
    if (fclose(stream) != 0 && status == CADRE_OK) {
        status =
            cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to describe the pipeline");
    }
    return status == CADRE_OK ? sha256_of(whole, size, ret_hash, error) : status;
}

static cadre_status cache_index_damaged(
    const char *path, const char *how, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS, "%s %s", path, how);
}

/* Bytes that were written with the length `count`. */
static cadre_status read_fixed(
    struct iterator_state_reader *reader, void *to, size_t count, struct cadre_error *error)
{
    const void *bytes = NULL;
    size_t found = 0;
    CADRE_TRY(iterator_state_read_bytes(reader, &bytes, &found, error));
    if (found != count) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "%zu bytes where %zu should be", found, count);
    }
    if (count > 0) {
        memcpy(to, bytes, count);
    }
    return CADRE_OK;
}

static cadre_status cache_index_parse(
    struct iterator_state_reader *reader, struct cache_index *index, struct cadre_error *error)
{
    char magic[sizeof MAGIC];
    CADRE_TRY(read_fixed(reader, magic, sizeof magic, error));
    if (memcmp(magic, MAGIC, sizeof magic) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "another magic");
    }
    CADRE_TRY(read_fixed(reader, index->pipeline.bytes, sizeof index->pipeline.bytes, error));
    CADRE_TRY(iterator_state_read_number(reader, &index->stamp, error));
    CADRE_TRY(iterator_state_read_number(reader, &index->data_bytes, error));
    CADRE_TRY(iterator_state_read_number(reader, &index->count, error));
    if (index->count > reader->count / sizeof index->entries[0]) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "too many entries");
    }
    size_t bytes = (size_t)index->count * sizeof index->entries[0];
    index->entries = malloc(bytes + 1);
    if (index->entries == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the positions of %" PRIu64 " cached elements", index->count);
    }
    CADRE_TRY(read_fixed(reader, index->entries, bytes, error));
    for (uint64_t i = 0; i < index->count; i++) {
        const struct cache_entry *entry = &index->entries[i];
        if (entry->bytes > index->data_bytes || entry->offset > index->data_bytes - entry->bytes) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "an entry outside of the data");
        }
    }
    return CADRE_OK;
}

cadre_status cache_index_read(
    const char *path, struct cache_index *ret_index, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    uint32_t checksum = 0;
    *ret_index = (struct cache_index){0};
    CADRE_TRY(file_read(path, SIZE_MAX / 4, &bytes, &size, error));
    if (size < CHECKSUM_BYTES) {
        return cache_index_damaged(path, "is cut short", error);
    }
    memcpy(&checksum, bytes + size - CHECKSUM_BYTES, CHECKSUM_BYTES);
    if (checksum != crc32c(0, bytes, size - CHECKSUM_BYTES)) {
        return cache_index_damaged(
            path, "is damaged or cut short, for its checksum is wrong", error);
    }
    struct iterator_state_reader reader = {
        .bytes = (const uint8_t *)bytes, .count = size - CHECKSUM_BYTES};
    cadre_status status = cache_index_parse(&reader, ret_index, error);
    if (status != CADRE_OK) {
        cache_index_clear(ret_index);
    }
    return status == CADRE_INVALID_ARGUMENT
               ? cache_index_damaged(path, "is no index of a cache that this version knows", error)
               : status;
}

static cadre_status cache_index_compose(struct iterator_state_writer *writer,
    const struct cache_index *index, struct cadre_error *error)
{
    CADRE_TRY(iterator_state_write_bytes(writer, MAGIC, sizeof MAGIC, error));
    CADRE_TRY(iterator_state_write_bytes(
        writer, index->pipeline.bytes, sizeof index->pipeline.bytes, error));
    CADRE_TRY(iterator_state_write_number(writer, index->stamp, error));
    CADRE_TRY(iterator_state_write_number(writer, index->data_bytes, error));
    CADRE_TRY(iterator_state_write_number(writer, index->count, error));
    return iterator_state_write_bytes(
        writer, index->entries, (size_t)index->count * sizeof index->entries[0], error);
}

cadre_status cache_index_write(
    const char *path, const struct cache_index *index, struct cadre_error *error)
{
    CADRE_CLEANUP(iterator_state_writer_clear) struct iterator_state_writer writer = {0};
    CADRE_TRY(cache_index_compose(&writer, index, error));
    uint32_t checksum = crc32c(0, writer.bytes, writer.count);
    uint8_t *whole = realloc(writer.bytes, writer.count + CHECKSUM_BYTES);
    if (whole == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an index");
    }
    writer.bytes = whole;
    memcpy(whole + writer.count, &checksum, CHECKSUM_BYTES);
    return file_write_atomic(path, whole, writer.count + CHECKSUM_BYTES, 0644, error);
}
