/* SPDX-License-Identifier: Apache-2.0
 * Reads one TFRecord file in order, plain or compressed. One thread at a time; after a failure it
 * can only be closed. Failures name the file, the number of the record in it, and its offset in the
 * plain bytes. */
#ifndef CADRE_WORKER_INPUT_FILES_RECORD_READER_H
#define CADRE_WORKER_INPUT_FILES_RECORD_READER_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/sources.h"
#include "cadre/tensor.h"
#include "common/base/error.h"
#include "worker/library/input/files/record_frame.h"

struct record_options {
    cadre_compression compression;
    struct record_rules rules;
    size_t buffer_bytes; /* read at a time; >= 1 */
};

struct record_reader;

/* Opens a regular file. On success *ret_reader is the caller's to close; on error it is NULL. */
cadre_status record_reader_open(const char *path, const struct record_options *options,
    struct record_reader **ret_reader, struct cadre_error *error);

/* NULL is allowed. */
void record_reader_close(struct record_reader *reader);

/* Gives 1 to `most` (>= 1) records, as many as the buffer holds at once, or *ret_count 0 at the end
 * of the file. *ret_records and the bytes are the reader's, until the next call. DATA_LOSS: a
 * checksum is wrong, a length is over the limit, the file ends inside a record; records before the
 * bad one are given first. */
cadre_status record_reader_next(struct record_reader *reader, size_t limit,
    const cadre_string **ret_records, size_t *ret_count, struct cadre_error *error);

/* The same in memory of their own, and `most` of them unless the file ends before: *ret_block, a
 * reference of which is given to the caller, NULL at the end. The records were read to where they
 * lie, so this is the way to have large ones; what else the block holds is little. */
cadre_status record_reader_next_block(struct record_reader *reader, size_t limit,
    const cadre_string **ret_records, size_t *ret_count, cadre_tensor **ret_block,
    struct cadre_error *error);

/* Bytes that the next `most` records will take with their frames, judged by the next one and those
 * before; 0 at the end of the file. */
cadre_status record_reader_expect(
    struct record_reader *reader, size_t limit, uint64_t *ret_bytes, struct cadre_error *error);

/* Passes over up to `most` records without checking their data; of large ones only the headers are
 * read. *ret_skipped is less only at the end. `starts` gets the offset of each; may be NULL. */
cadre_status record_reader_skip(struct record_reader *reader, uint64_t limit, uint64_t starts[],
    uint64_t *ret_skipped, struct cadre_error *error);

/* Goes to a position that record_reader_offset and _number returned before; right after opening.
 * INVALID_ARGUMENT: the file has no such offset. */
cadre_status record_reader_seek(
    struct record_reader *reader, uint64_t offset, uint64_t number, struct cadre_error *error);

/* Where the next record begins in the plain bytes, and its number, from 0. */
uint64_t record_reader_offset(const struct record_reader *reader);
uint64_t record_reader_number(const struct record_reader *reader);

/* What is wrong with a frame, said of record `number` of `path` at `offset`; for a fault other than
 * RECORD_SOUND. */
cadre_status record_fault_error(enum record_fault fault, uint64_t length,
    const struct record_rules *rules, const char *path, uint64_t number, uint64_t offset,
    struct cadre_error *error);

#endif
