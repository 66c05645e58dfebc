/* SPDX-License-Identifier: Apache-2.0
 * Writing TFRecord files; see cadre/tfrecord.h. Frames gather in a buffer; full ones go through the
 * compressor, where there is one, to the file or object. ISA-L compresses (igzip, its level 1:
 * about the size of zlib's level 1 at several times its speed). */
#include "cadre/tfrecord.h"

#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/error.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/input/files/output_file.h"
#include "worker/library/input/files/record_frame.h"

#define BUFFER_BYTES     ((size_t)1 << 20)
#define COMPRESSED_BYTES ((size_t)256 << 10)
#define LEVEL            1

/* The compressor counts what it is given in 32 bits. */
#define PIECE_BYTES_MAX ((size_t)1 << 30)

struct compressor {
    struct isal_zstream stream;
    uint8_t level_buffer[ISAL_DEF_LVL1_DEFAULT];
    uint8_t out[COMPRESSED_BYTES];
};

struct cadre_tfrecord_writer {
    struct output_file *file;
    uint8_t *buffer;
    size_t used;
    struct compressor *compressor; /* NULL: plain */
    struct cadre_error failure;    /* code CADRE_OK: none */
};

/* --- bytes to the file --- */

static cadre_status tfrecord_writer_put(
    struct cadre_tfrecord_writer *writer, const uint8_t *bytes, size_t size, bool last)
{
    struct compressor *compressor = writer->compressor;
    if (compressor == NULL) {
        return output_file_add(writer->file, bytes, size, &writer->failure);
    }
    struct isal_zstream *stream = &compressor->stream;
    do {
        size_t piece = size < PIECE_BYTES_MAX ? size : PIECE_BYTES_MAX;
        stream->next_in = (uint8_t *)bytes; /* read only */
        stream->avail_in = (uint32_t)piece;
        stream->end_of_stream = last && piece == size;
        do {
            stream->next_out = compressor->out;
            stream->avail_out = COMPRESSED_BYTES;
            int code = isal_deflate(stream);
            CADRE_ASSERT(code == COMP_OK);
            CADRE_TRY(output_file_add(writer->file, compressor->out,
                COMPRESSED_BYTES - stream->avail_out, &writer->failure));
        } while (stream->avail_out == 0);
        CADRE_ASSERT(stream->avail_in == 0);
        bytes += piece;
        size -= piece;
    } while (size > 0);
    return CADRE_OK;
}

static cadre_status tfrecord_writer_flush(struct cadre_tfrecord_writer *writer, bool last)
{
    CADRE_TRY(tfrecord_writer_put(writer, writer->buffer, writer->used, last));
    writer->used = 0;
    return CADRE_OK;
}

/* Large data goes around the buffer. */
static cadre_status tfrecord_writer_add(
    struct cadre_tfrecord_writer *writer, const void *bytes, size_t size)
{
    if (size > BUFFER_BYTES - writer->used) {
        CADRE_TRY(tfrecord_writer_flush(writer, false));
    }
    if (size > BUFFER_BYTES) {
        return tfrecord_writer_put(writer, bytes, size, false);
    }
    if (size > 0) {
        memcpy(writer->buffer + writer->used, bytes, size);
    }
    writer->used += size;
    return CADRE_OK;
}

/* --- lifetime --- */

static void tfrecord_writer_destroy(struct cadre_tfrecord_writer *writer)
{
    output_file_abort(writer->file);
    free(writer->buffer);
    free(writer->compressor);
    free(writer);
}

static struct compressor *create_compressor(cadre_compression compression)
{
    struct compressor *compressor = fault_point("input.writer") ? NULL : malloc(sizeof *compressor);
    if (compressor != NULL) {
        isal_deflate_init(&compressor->stream);
        compressor->stream.level = LEVEL;
        compressor->stream.level_buf = compressor->level_buffer;
        compressor->stream.level_buf_size = sizeof compressor->level_buffer;
        compressor->stream.gzip_flag =
            compression == CADRE_COMPRESSION_GZIP ? IGZIP_GZIP : IGZIP_ZLIB;
    }
    return compressor;
}

static cadre_status tfrecord_writer_create(struct cadre_tfrecord_writer *writer, const char *path,
    cadre_compression compression, struct cadre_error *error)
{
    bool plain = compression == CADRE_COMPRESSION_NONE;
    writer->buffer = fault_point("input.writer") ? NULL : malloc(BUFFER_BYTES);
    writer->compressor = plain ? NULL : create_compressor(compression);
    if (writer->buffer == NULL || (!plain && writer->compressor == NULL)) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory for a writer of records", path);
    }
    return output_file_open(path, &writer->file, error);
}

cadre_status cadre_tfrecord_writer_create(
    const char *path, cadre_compression compression, cadre_tfrecord_writer **ret_writer)
{
    struct cadre_error error = {0};
    struct cadre_tfrecord_writer *writer = NULL;
    cadre_status status = argument_require(ret_writer, __func__, "ret_writer", &error);
    if (status == CADRE_OK) {
        *ret_writer = NULL;
        status = argument_require(path, __func__, "path", &error);
    }
    if (status == CADRE_OK && compression != CADRE_COMPRESSION_NONE &&
        compression != CADRE_COMPRESSION_GZIP && compression != CADRE_COMPRESSION_ZLIB) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "%s: %d is not a compression; use one of enum cadre_compression", path,
            (int)compression);
    }
    if (status == CADRE_OK) {
        writer = calloc(1, sizeof *writer);
        status = writer != NULL ? CADRE_OK
                                : cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
                                      "%s: no memory for a writer of records", path);
    }
    if (status == CADRE_OK) {
        status = tfrecord_writer_create(writer, path, compression, &error);
    }
    if (status != CADRE_OK) {
        if (writer != NULL) {
            tfrecord_writer_destroy(writer);
        }
        return cadre_error_publish(&error);
    }
    *ret_writer = writer;
    return CADRE_OK;
}

cadre_status cadre_tfrecord_writer_write(
    cadre_tfrecord_writer *writer, const void *bytes, size_t size)
{
    struct cadre_error error = {0};
    uint8_t header[RECORD_HEADER_BYTES];
    uint8_t footer[RECORD_FOOTER_BYTES];
    cadre_status status = argument_require(writer, __func__, "writer", &error);
    if (status == CADRE_OK && size > 0) {
        status = argument_require(bytes, __func__, "bytes", &error);
    }
    if (status != CADRE_OK) {
        return cadre_error_publish(&error);
    }
    status = writer->failure.code;
    if (status == CADRE_OK) {
        record_frame_make(bytes, size, header, footer);
        status = tfrecord_writer_add(writer, header, sizeof header);
    }
    if (status == CADRE_OK) {
        status = tfrecord_writer_add(writer, bytes, size);
    }
    if (status == CADRE_OK) {
        status = tfrecord_writer_add(writer, footer, sizeof footer);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&writer->failure);
}

static cadre_status tfrecord_writer_finish(struct cadre_tfrecord_writer *writer)
{
    CADRE_TRY(writer->failure.code);
    CADRE_TRY(tfrecord_writer_flush(writer, true));
    struct output_file *file = writer->file;
    writer->file = NULL;
    return output_file_finish(file, &writer->failure);
}

cadre_status cadre_tfrecord_writer_close(cadre_tfrecord_writer *writer)
{
    if (writer == NULL) {
        return CADRE_OK;
    }
    cadre_status status = tfrecord_writer_finish(writer);
    if (status != CADRE_OK) {
        struct cadre_error failure = writer->failure;
        cadre_tfrecord_writer_release(writer);
        return cadre_error_publish(&failure);
    }
    tfrecord_writer_destroy(writer);
    return CADRE_OK;
}

void cadre_tfrecord_writer_release(cadre_tfrecord_writer *writer)
{
    if (writer != NULL) {
        tfrecord_writer_destroy(writer);
    }
}
