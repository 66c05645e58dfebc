/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/logs/log_read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/base/disk.h"

static uint64_t begin_of_tail(int fd, uint64_t tail_bytes)
{
    struct stat status;
    uint64_t size = fd >= 0 && fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
    return size > tail_bytes ? size - tail_bytes : 0;
}

/* How many of the `got` bytes at the offset are text. The middle may be removed while it is read:
 * the gap file is read after the bytes, and is written before the hole is made (log_hole.c). An
 * offset in the gap moves to its end. */
static size_t size_kept(uint64_t *offset, size_t got, const char *path)
{
    const struct log_hole hole = log_hole_read(path);
    if (*offset >= hole.from && *offset < hole.to) {
        *offset = hole.to;
        return 0;
    }
    bool into = log_hole_bytes(&hole) > 0 && *offset < hole.from && hole.from - *offset < got;
    return into ? (size_t)(hole.from - *offset) : got;
}

/* False: not to the end, because the buffer is full. */
static bool read_slot(struct log_read *read, uint32_t slot)
{
    CADRE_FREE_AT_EXIT char *path = path_of_log(read->daemon, read->job, slot);
    CADRE_CLOSE_AT_EXIT int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    uint64_t *offset = &read->offsets[slot];
    *offset = *offset == LOG_READ_TAIL ? begin_of_tail(fd, read->tail_bytes) : *offset;
    while (fd >= 0) {
        size_t room = LOG_READ_BYTES - read->size;
        size_t want = room < LIMIT_LOG_CHUNK_BYTES ? room : LIMIT_LOG_CHUNK_BYTES;
        if (want == 0 || read->piece_count == LOG_READ_PIECES) {
            return false;
        }
        ssize_t got = pread(fd, read->bytes + read->size, want, (off_t)*offset);
        if (got <= 0) {
            break;
        }
        size_t kept = size_kept(offset, (size_t)got, path);
        if (kept > 0) {
            read->pieces[read->piece_count++] =
                (struct log_piece){.slot = slot, .offset = *offset, .at = read->size, .size = kept};
            read->size += kept;
            *offset += kept;
        }
    }
    return true;
}

void log_read(struct log_read *read)
{
    while (read->slots_done < read->slot_count && read_slot(read, read->slots[read->slots_done])) {
        read->slots_done++;
    }
}
