/* SPDX-License-Identifier: Apache-2.0
 * The records of one plain TFRecord file or object by number. Any thread may read from it once it
 * is open. */
#ifndef CADRE_WORKER_INPUT_FILES_RECORD_TABLE_H
#define CADRE_WORKER_INPUT_FILES_RECORD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "worker/library/input/files/mapped_file.h"
#include "worker/library/input/files/record_index.h"
#include "worker/library/input/files/record_reader.h"
#include "worker/library/input/objects/object.h"

/* Zeroed: closed. */
struct record_table {
    const char *path; /* the owner's */
    struct record_rules rules;
    struct record_index index;
    struct object *object;     /* NULL: it is a file; */
    struct mapped_file mapped; /* of nothing where the file cannot be mapped */
    int fd;                    /* -1: opened for each read, */
    uint64_t device;           /* which must find the same file */
    uint64_t inode;
    bool open;
};

/* Opens the regular file or object `path`, which outlives the table, and finds its records (see
 * record_index_file.h); `keep_open` holds the descriptor. On error the table is zeroed. */
cadre_status record_table_open(struct record_table *table, const char *path,
    const char *index_folder, const struct record_options *options, bool keep_open,
    struct cadre_error *error);

/* A zeroed table is allowed. */
void record_table_close(struct record_table *table);

/* Records [first, first + count) of a table, and where their frames lie in the file. */
struct record_run {
    const struct record_table *table;
    uint64_t first;
    size_t count; /* >= 1 */
    uint64_t offset;
    uint64_t bytes;
    uint8_t *text;         /* where several threads read: this one's part */
    cadre_string *records; /* likewise */
};

/* Fills in offset and bytes of a run. */
void record_table_locate(struct record_run *run);

/* Prefetches what record_table_locate reads of a record. */
void record_table_prefetch_offset(const struct record_table *table, uint64_t number);

/* Reads and checks the frames of located runs one behind the other into `to`, which has room for
 * their bytes; `records` gets the place and size of the data of each. All tables have one rule.
 * DATA_LOSS names the file, the record and the offset of the first failure: a checksum is wrong,
 * the file was cut short or is another one than that whose places were found. */
cadre_status record_table_read(const struct record_run runs[], size_t run_count, uint8_t *to,
    cadre_string records[], struct cadre_error *error);

#endif
