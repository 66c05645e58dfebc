/* SPDX-License-Identifier: Apache-2.0
 * Writing TFRecord files, which cadre_dataset_tfrecord (cadre/sources.h) and TensorFlow read.
 *
 *     CADRE_CHECK(cadre_tfrecord_writer_create("train.tfrecord", CADRE_COMPRESSION_NONE, &writer));
 *     CADRE_CHECK(cadre_tfrecord_writer_write(writer, bytes, size));
 *     CADRE_CHECK(cadre_tfrecord_writer_close(writer));
 *
 * (tf.io.TFRecordWriter.) */
#ifndef CADRE_TFRECORD_H
#define CADRE_TFRECORD_H

#include <stddef.h>

#include "cadre/sources.h"
#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file that is being written, by one thread at a time. */
typedef struct cadre_tfrecord_writer cadre_tfrecord_writer;

/* Begins a file, or an object ("s3://BUCKET/KEY"; see cadre/sources.h). A file is written under
 * another name beside `path` and gets that name, replacing what had it, when it is closed; an
 * object is uploaded in several requests at a time, out of 40 MiB of memory at most: no reader sees
 * half of it. On success *ret_writer is the caller's to close or release; on error it is NULL.
 * INVALID_ARGUMENT, or the system's error of the folder. */
CADRE_API cadre_status cadre_tfrecord_writer_create(
    const char *path, cadre_compression compression, cadre_tfrecord_writer **ret_writer);

/* Adds a record of `size` bytes, which may be 0; they are copied, or written, before this returns.
 * One thread at a time. After a failure (RESOURCE_EXHAUSTED: the disk is full) every further call
 * gives the same one, also close. */
CADRE_API cadre_status cadre_tfrecord_writer_write(
    cadre_tfrecord_writer *writer, const void *bytes, size_t size);

/* Writes what is left, puts the file on the disk (fsync) and under its name, or ends the upload of
 * an object, and frees the writer, also on failure; what had the name before then keeps it. (Only
 * where nothing failed but putting the name itself on the disk, the new file has it, and might not
 * survive a loss of power.) Of NULL nothing. */
CADRE_API cadre_status cadre_tfrecord_writer_close(cadre_tfrecord_writer *writer);

/* Frees the writer and removes what was written. NULL is allowed. */
CADRE_API void cadre_tfrecord_writer_release(cadre_tfrecord_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
