/* SPDX-License-Identifier: Apache-2.0
 * Rows of one size that lie at equal distances in a file, read by their numbers. */
#ifndef CADRE_WORKER_INPUT_FILES_FILE_ROWS_H
#define CADRE_WORKER_INPUT_FILES_FILE_ROWS_H

#include "worker/library/input/files/input_file.h"
#include "worker/library/input/node/node.h"

struct file_rows {
    const struct input_file *file;
    int64_t offset;    /* of row `first` */
    size_t row_bytes;  /* may be 0 */
    size_t step_bytes; /* from where one row begins to the next: less where they overlap */
    uint64_t first;    /* the number of the file's first row */
};

/* Reads the rows whose numbers are the indexes of `places`, one behind the other, to `to`.
 * Neighbours without anything between them or in common are read at once; rows here and there come
 * out of memory where the file is kept. */
cadre_status file_rows_read(const struct file_rows *rows, const struct element_position positions[],
    size_t count, char *to, struct cadre_error *error);

#endif
