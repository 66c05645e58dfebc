/* SPDX-License-Identifier: Apache-2.0
 * The beginning of a reading: so many bytes or lines before the end, or at a time. log_read.c calls
 * it once for each log. */
#include "coordinator/daemon/logs/log_begin.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log_marks.h"

#define BLOCK_BYTES 16384
#define BLOCK_MARKS 512

/* A block that is searched for newlines from its end. */
struct block {
    uint64_t from;
    size_t size;
    struct log_mark marks[BLOCK_MARKS];
    size_t mark_count;
    char bytes[BLOCK_BYTES];
};

bool log_begin_wants(const struct logs_request *request, const struct log_mark *mark)
{
    enum log_stream stream = mark->stream == LOG_STREAM_ANY ? LOG_STREAM_STDOUT : mark->stream;
    return request->stream == LOG_STREAM_ANY || request->stream == stream;
}

/* Reads the block that ends at `end`; of one with very many marks only its end. False: there is
 * none. */
static bool read_block(const struct log_source *source, uint64_t end, struct block *block)
{
    const struct log_hole *hole = &source->hole;
    uint64_t least = log_hole_bytes(hole) > 0 && end > hole->to ? hole->to : 0;
    uint64_t size = end - least < BLOCK_BYTES ? end - least : BLOCK_BYTES;
    uint64_t described = end - size;
    while (size > 0 && described < end) {
        block->from = end - size;
        block->mark_count = log_marks_read(
            source->marks_fd, block->from, end, block->marks, BLOCK_MARKS, &described);
        size = described < end ? size / 2 : size;
    }
    block->size = (size_t)size;
    return size > 0 &&
           pread(source->fd, block->bytes, block->size, (off_t)block->from) == (ssize_t)size;
}

/* Searches the block from its end for the newline before the first of the *lines lines; *ends: the
 * last byte of the log that is wanted is still to come, and is no such newline. True: *ret_begin.
 */
static bool search_block(const struct block *block, const struct logs_request *request,
    uint64_t *lines, bool *ends, uint64_t *ret_begin)
{
    uint64_t end = block->from + block->size;
    for (size_t mark = block->mark_count; mark > 0; mark--) {
        uint64_t begin = block->marks[mark - 1].offset;
        for (uint64_t at = end; at > begin && log_begin_wants(request, &block->marks[mark - 1]);
             at--) {
            bool newline = block->bytes[at - 1 - block->from] == '\n';
            if (newline && !*ends && --*lines == 0) {
                *ret_begin = at;
                return true;
            }
            *ends = false;
        }
        end = begin;
    }
    return false;
}

static uint64_t begin_of_lines(
    const struct log_source *source, const struct logs_request *request, uint64_t size)
{
    struct block block;
    uint64_t lines = request->tail_lines;
    uint64_t begin = 0;
    bool ends = true;
    for (uint64_t end = size; end > 0; end = block.from) {
        const struct log_hole *hole = &source->hole;
        end = end > hole->from && end <= hole->to ? hole->from : end;
        if (end == 0 || !read_block(source, end, &block) ||
            search_block(&block, request, &lines, &ends, &begin)) {
            break;
        }
    }
    return begin;
}

uint64_t log_begin(const struct log_source *source, const struct logs_request *request)
{
    struct stat status;
    uint64_t size =
        source->fd >= 0 && fstat(source->fd, &status) == 0 ? (uint64_t)status.st_size : 0;
    uint64_t begin = 0;
    if (size == 0) {
        return 0;
    }
    if (request->tail_bytes > 0 && size > request->tail_bytes) {
        begin = size - request->tail_bytes;
    }
    if (request->tail_lines > 0) {
        uint64_t at = begin_of_lines(source, request, size);
        begin = at > begin ? at : begin;
    }
    if (request->since_us > 0) {
        uint64_t at = log_marks_since(source->marks_fd, request->since_us, size);
        begin = at > begin ? at : begin;
    }
    return begin;
}
