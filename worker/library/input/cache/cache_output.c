/* SPDX-License-Identifier: Apache-2.0
 * See cache_output.h. */
#include "worker/library/input/cache/cache_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "worker/library/checksum/crc32c.h"

#define MAGIC        "cadre cache data 1\n"
#define BUFFER_BYTES (256 << 10)

void cache_header_make(uint64_t stamp, char ret_header[CACHE_HEADER_BYTES])
{
    memset(ret_header, 0, CACHE_HEADER_BYTES);
    memcpy(ret_header, MAGIC, strlen(MAGIC));
    memcpy(ret_header + CACHE_HEADER_BYTES - sizeof stamp, &stamp, sizeof stamp);
}

cadre_status cache_output_flush(struct cache_output *output, struct cadre_error *error)
{
    CADRE_TRY(file_write_all(output->fd, output->path, output->buffer, output->buffered, error));
    output->written += output->buffered;
    output->buffered = 0;
    return CADRE_OK;
}

static cadre_status add_bytes(
    struct cache_output *output, const void *bytes, size_t count, struct cadre_error *error)
{
    if (count > BUFFER_BYTES - output->buffered) {
        CADRE_TRY(cache_output_flush(output, error));
    }
    if (count > BUFFER_BYTES) {
        CADRE_TRY(file_write_all(output->fd, output->path, bytes, count, error));
        output->written += count;
        return CADRE_OK;
    }
    memcpy(output->buffer + output->buffered, bytes, count);
    output->buffered += count;
    return CADRE_OK;
}

static cadre_status open_file(
    struct cache_output *output, uint64_t stamp, struct cadre_error *error)
{
    char header[CACHE_HEADER_BYTES];
    output->fd =
        fault_point("cache.open")
            ? -1
            : open(output->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (output->fd < 0) {
        return cadre_error_errno(error, errno, "cannot write %s", output->path);
    }
    cache_header_make(stamp, header);
    return add_bytes(output, header, sizeof header, error);
}

cadre_status cache_output_open(
    struct cache_output *output, const char *path, uint64_t *ret_stamp, struct cadre_error *error)
{
    *output = (struct cache_output){.path = path, .fd = -1, .buffer = malloc(BUFFER_BYTES)};
    if (output->buffer == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a buffer");
    }
    cadre_status status = CADRE_OK;
    if (getrandom(ret_stamp, sizeof *ret_stamp, 0) != (ssize_t)sizeof *ret_stamp) {
        status = cadre_error_errno(error, errno, "cannot get random bytes");
    }
    status = status == CADRE_OK ? open_file(output, *ret_stamp, error) : status;
    if (status != CADRE_OK) {
        free(output->buffer);
        *output = (struct cache_output){.fd = -1};
    }
    return status;
}

cadre_status cache_output_add(struct cache_output *output, const cadre_element *element,
    const struct id_list *ids, struct cache_entry *ret_entry, struct cadre_error *error)
{
    struct iterator_state_writer *scratch = &output->scratch;
    scratch->count = 0;
    CADRE_TRY(iterator_state_write_element(scratch, element, error));
    CADRE_TRY(iterator_state_write_ids(scratch, ids, error));
    *ret_entry = (struct cache_entry){
        .offset = output->written + output->buffered,
        .bytes = scratch->count,
        .checksum = crc32c(0, scratch->bytes, scratch->count),
    };
    return add_bytes(output, scratch->bytes, scratch->count, error);
}

cadre_status cache_output_publish(
    struct cache_output *output, const char *path, struct cadre_error *error)
{
    CADRE_TRY(cache_output_flush(output, error));
    if (fault_point("cache.fsync") || fsync(output->fd) != 0) {
        return cadre_error_errno(error, errno, "cannot write %s", output->path);
    }
    if (fault_point("cache.rename") || rename(output->path, path) != 0) {
        return cadre_error_errno(error, errno, "cannot rename %s to %s", output->path, path);
    }
    output->path = NULL;
    return CADRE_OK;
}

void cache_output_end(struct cache_output *output)
{
    if (output->path != NULL) {
        (void)unlink(output->path);
    }
    free(output->buffer);
    iterator_state_writer_clear(&output->scratch);
    *output = (struct cache_output){.fd = -1};
}
