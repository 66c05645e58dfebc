/* SPDX-License-Identifier: Apache-2.0
 * The plain bytes of a file or object from its start to its end, whether it is compressed or not.
 * One thread at a time. */
#ifndef CADRE_WORKER_INPUT_FILES_INFLATE_STREAM_H
#define CADRE_WORKER_INPUT_FILES_INFLATE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/sources.h"
#include "common/base/error.h"

struct inflate_stream;

/* Opens a regular file or an object. On success *ret_stream is the caller's to close; on error it
 * is NULL. Looks at no byte of it yet. */
cadre_status inflate_stream_open(const char *path, cadre_compression compression,
    struct inflate_stream **ret_stream, struct cadre_error *error);

/* Gives 1 to `bytes` bytes (>= 1), or *ret_count 0 at the end. Gzip members and zlib streams that
 * stand one behind the other are read as one. DATA_LOSS, naming the file and the place: it is not
 * of the kind, a checksum is wrong, it ends inside a member, or something else follows the last
 * one. What was read before a failure was checked only as far as the decompressor had come: the
 * checksum stands at the end. After a failure the stream can only be closed. */
cadre_status inflate_stream_read(struct inflate_stream *stream, void *to, size_t bytes,
    size_t *ret_count, struct cadre_error *error);

/* Passes over `bytes` plain bytes; *ret_skipped is less only at the end. A file that is not
 * compressed is not read for it. */
cadre_status inflate_stream_skip(struct inflate_stream *stream, uint64_t bytes,
    uint64_t *ret_skipped, struct cadre_error *error);

/* Plain bytes given or skipped so far. */
uint64_t inflate_stream_offset(const struct inflate_stream *stream);

/* The path it was opened with; valid until the close. */
const char *inflate_stream_path(const struct inflate_stream *stream);

/* NULL is allowed. */
void inflate_stream_close(struct inflate_stream *stream);

#endif
