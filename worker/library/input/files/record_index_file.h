/* SPDX-License-Identifier: Apache-2.0
 * Finds the records of a plain TFRecord file or object once, and keeps what was found in a file or
 * object, for other processes and programs to come. */
#ifndef CADRE_WORKER_INPUT_FILES_RECORD_INDEX_FILE_H
#define CADRE_WORKER_INPUT_FILES_RECORD_INDEX_FILE_H

#include "common/base/error.h"
#include "worker/library/input/files/record_index.h"
#include "worker/library/input/files/record_reader.h"

#define RECORD_INDEX_SUFFIX ".cadre-index"

/* Where the index of `path` is kept: beside it, or in `folder` (not NULL), of files or of a store,
 * as the file's name, a number that stands for its whole path, and the suffix. malloc'ed. */
cadre_status record_index_path(
    const char *path, const char *folder, char **ret_path, struct cadre_error *error);

/* The index of `path`, which must be a regular file or an object: that which is kept, where it is
 * sound and of the file as it is now (its size and time of change; of an object its size and ETag);
 * else it is made in one pass over the frames (the data's checksums are not looked at), and kept.
 * Where it cannot be kept it serves from memory. One process at a time makes an index that is a
 * file, on one machine or on a shared disk, while others wait for it; one that dies meanwhile does
 * not stop them. An index that is an object is made by each process that finds none: stores have no
 * locks. On success the index is the caller's to clear. DATA_LOSS as in reading;
 * FAILED_PRECONDITION: the file changes meanwhile. */
cadre_status record_index_open(const char *path, const char *folder,
    const struct record_options *options, struct record_index *ret_index,
    struct cadre_error *error);

#endif
