/* SPDX-License-Identifier: Apache-2.0
 * TFRecord files in order. Short records are copied from what is read ahead, so that who keeps one
 * keeps no more; long ones are read to where they stay. */
#include <inttypes.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/sources/tfrecord.h"

/* Elements of this many bytes together are not copied: a read of their own costs no more. */
#define BLOCK_BYTES_MIN ((uint64_t)64 << 10)

/* Of the object that is read next, while this one is read. */
#define EXPECTED_BYTES ((size_t)1 << 20)

struct tfrecord_iterator {
    cadre_iterator base;
    size_t file;                  /* number of the file at hand, or of the next one */
    struct record_reader *reader; /* of the file at hand; NULL: none is open */
    uint64_t number;              /* of the next record, over all files */
};

static const struct tfrecord_dataset *dataset_of(const struct tfrecord_iterator *iterator)
{
    return (const struct tfrecord_dataset *)iterator->base.data;
}

static void tfrecord_iterator_destroy(cadre_iterator *self)
{
    record_reader_close(((struct tfrecord_iterator *)self)->reader);
}

/* Opens the file at hand; OUT_OF_RANGE when there are no more. */
static cadre_status open_file(struct tfrecord_iterator *iterator, struct cadre_error *error)
{
    struct tfrecord_dataset *tfrecord = (struct tfrecord_dataset *)iterator->base.data;
    if (iterator->reader != NULL) {
        return CADRE_OK;
    }
    if (iterator->file == tfrecord->path_count) {
        return iterator_end(error);
    }
    CADRE_TRY(tfrecord_hold(tfrecord, iterator->file, error));
    if (iterator->file + 1 < tfrecord->path_count) {
        input_file_expect(tfrecord->paths[iterator->file + 1], EXPECTED_BYTES);
    }
    return record_reader_open(
        tfrecord->paths[iterator->file], &tfrecord->options, &iterator->reader, error);
}

static void leave_file(struct tfrecord_iterator *iterator)
{
    record_reader_close(iterator->reader);
    iterator->reader = NULL;
    iterator->file++;
}

static cadre_status add_ids(struct tfrecord_iterator *iterator, size_t count, struct id_list *ids,
    struct cadre_error *error)
{
    for (size_t i = 0; i < count && ids != NULL; i++) {
        CADRE_TRY(id_list_add(ids, iterator->number + i, error));
    }
    iterator->number += count;
    return CADRE_OK;
}

/* A tensor of records that lie in `block`, which it keeps. */
static cadre_status make_in_block(cadre_tensor *block, uint32_t rank, const cadre_string *records,
    size_t count, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    const int64_t rows = (int64_t)count;
    CADRE_TRY(tensor_strings_in(block, rank, &rows, ret_tensor, error));
    cadre_string *to = cadre_tensor_data(*ret_tensor);
    for (size_t i = 0; i < count; i++) {
        to[i] = records[i];
    }
    return CADRE_OK;
}

/* 1 to `wanted` records of the file at hand as a tensor; none at its end. */
static cadre_status tfrecord_iterator_take(struct record_reader *reader, size_t wanted,
    uint32_t rank, cadre_tensor **ret_tensor, size_t *ret_count, struct cadre_error *error)
{
    const cadre_string *records = NULL;
    uint64_t bytes = 0;
    *ret_count = 0;
    CADRE_TRY(record_reader_expect(reader, wanted, &bytes, error));
    if (bytes == 0) {
        return CADRE_OK;
    }
    if (bytes >= BLOCK_BYTES_MIN) {
        cadre_tensor *block = NULL;
        CADRE_TRY(record_reader_next_block(reader, wanted, &records, ret_count, &block, error));
        cadre_status status = make_in_block(block, rank, records, *ret_count, ret_tensor, error);
        cadre_tensor_release(block);
        return status;
    }
    CADRE_TRY(record_reader_next(reader, wanted, &records, ret_count, error));
    const int64_t rows = (int64_t)*ret_count;
    return tensor_from_data(CADRE_STRING, rank, &rows, records, ret_tensor, error);
}

static cadre_status take_rows(struct tfrecord_iterator *iterator, size_t wanted, uint32_t rank,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    for (;;) {
        CADRE_TRY(open_file(iterator, error));
        CADRE_TRY(tfrecord_iterator_take(
            iterator->reader, wanted, rank, &ret_element->tensors[0], ret_count, error));
        if (*ret_count > 0) {
            ret_element->count = 1;
            cadre_status status = add_ids(iterator, *ret_count, ids, error);
            if (status != CADRE_OK) {
                cadre_element_release(ret_element);
            }
            return status;
        }
        leave_file(iterator);
    }
}

static cadre_status tfrecord_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    size_t count = 0;
    return take_rows((struct tfrecord_iterator *)self, 1, 0, ret_element, &count, ids, error);
}

static cadre_status tfrecord_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    return take_rows(
        (struct tfrecord_iterator *)self, wanted, 1, ret_element, ret_count, ids, error);
}

static cadre_status tfrecord_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct tfrecord_iterator *iterator = (struct tfrecord_iterator *)self;
    *ret_skipped = 0;
    while (*ret_skipped < count) {
        uint64_t passed = 0;
        cadre_status status = open_file(iterator, error);
        if (status == CADRE_OUT_OF_RANGE) {
            return CADRE_OK;
        }
        CADRE_TRY(status);
        CADRE_TRY(record_reader_skip(iterator->reader, count - *ret_skipped, NULL, &passed, error));
        *ret_skipped += passed;
        iterator->number += passed;
        if (*ret_skipped < count) {
            leave_file(iterator);
        }
    }
    return CADRE_OK;
}

static cadre_status tfrecord_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct tfrecord_iterator *iterator = (const struct tfrecord_iterator *)self;
    const struct record_reader *reader = iterator->reader;
    CADRE_TRY(iterator_state_write_number(writer, iterator->number, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->file, error));
    CADRE_TRY(iterator_state_write_number(
        writer, reader == NULL ? 0 : record_reader_offset(reader), error));
    return iterator_state_write_number(
        writer, reader == NULL ? 0 : record_reader_number(reader), error);
}

static cadre_status tfrecord_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct tfrecord_iterator *iterator = (struct tfrecord_iterator *)self;
    size_t files = dataset_of(iterator)->path_count;
    uint64_t number = 0;
    uint64_t file = 0;
    uint64_t offset = 0;
    uint64_t number_in_file = 0;
    CADRE_TRY(iterator_state_read_number(reader, &number, error));
    CADRE_TRY(iterator_state_read_number(reader, &file, error));
    CADRE_TRY(iterator_state_read_number(reader, &offset, error));
    CADRE_TRY(iterator_state_read_number(reader, &number_in_file, error));
    if (file > files || number_in_file > number || (file == files && offset > 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tfrecord: the saved position, record %" PRIu64 " in file %" PRIu64
            ", is not one of %zu files; they are other ones than before",
            number, file, files);
    }
    CADRE_ASSERT(iterator->reader == NULL);
    iterator->file = (size_t)file;
    iterator->number = number;
    if (offset > 0) {
        CADRE_TRY(open_file(iterator, error));
        CADRE_TRY(record_reader_seek(iterator->reader, offset, number_in_file, error));
    }
    return CADRE_OK;
}

static const struct iterator_ops tfrecord_iterator_ops = {
    .next = tfrecord_next,
    .next_rows = tfrecord_next_rows,
    .skip = tfrecord_skip,
    .save = tfrecord_save,
    .restore = tfrecord_restore,
    .destroy = tfrecord_iterator_destroy,
};

cadre_status tfrecord_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct tfrecord_iterator), &tfrecord_iterator_ops, self, pass, NULL,
        ret_iterator, error);
}
