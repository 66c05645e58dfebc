/* SPDX-License-Identifier: Apache-2.0
 * Where each record of a plain TFRecord file begins: 2.5 bytes a record when they are short, 4.5 or
 * 8.5 when they are long. As bytes it can be kept in a file, and is checked when it comes back. */
#ifndef CADRE_WORKER_INPUT_FILES_RECORD_INDEX_H
#define CADRE_WORKER_INPUT_FILES_RECORD_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* Records whose offsets are kept as differences from the first of them. */
#define RECORD_INDEX_GROUP 16

/* Zeroed: of a file without records. */
struct record_index {
    uint64_t count;       /* records */
    uint64_t end;         /* where the last one ends: the size of the file */
    uint32_t width;       /* bytes of a difference: 2, 4 or 8; 0 without records */
    uint64_t frame_bytes; /* of each record, once the index is whole; 0: they are not alike */
    uint8_t *groups;
    void *memory; /* malloc'ed, in which the groups lie */
    size_t room;  /* groups that there is memory for, while it is made */
};

/* Which file it is of. */
struct record_index_file {
    uint64_t bytes;
    int64_t modified_ns; /* since 1970; of an object a number that stands for its ETag */
};

/* A zeroed index is allowed. */
void record_index_clear(struct record_index *index);

/* Adds the record that begins at `offset`, above those of all before. */
cadre_status record_index_add(
    struct record_index *index, uint64_t offset, struct cadre_error *error);

/* Call it once `end` is set and no more are added: offsets of records that are alike are computed
 * from then on, not looked up. */
void record_index_finish(struct record_index *index);

/* The offset of record `number` < count, or, for count, where the last one ends. */
uint64_t record_index_offset(const struct record_index *index, uint64_t number);

/* Asks the processor to have ready what record_index_offset will look at. */
void record_index_prefetch(const struct record_index *index, uint64_t number);

/* The bytes that stand for it: a header, to be written first, then record_index_body_bytes of
 * index->groups. */
#define RECORD_INDEX_HEADER_BYTES 64
size_t record_index_body_bytes(const struct record_index *index);
void record_index_pack(const struct record_index *index, const struct record_index_file *file,
    uint8_t ret_header[RECORD_INDEX_HEADER_BYTES]);

/* Takes `memory` of `size` bytes, header and groups, over as an index of `file`; on failure it is
 * freed. DATA_LOSS: it is damaged, or no index. FAILED_PRECONDITION: it is of another file, of
 * another state of it, or of another version of this format. */
cadre_status record_index_unpack(void *memory, size_t size, const struct record_index_file *file,
    struct record_index *ret_index, struct cadre_error *error);

#endif
