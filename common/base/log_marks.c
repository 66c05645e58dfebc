/* SPDX-License-Identifier: Apache-2.0
 * Marks as records of two little-endian numbers: the offset, and the time above the two bits of
 * the stream. Marks that were freed are one hole in the file, at its beginning or in its middle. */
#include "common/base/log_marks.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fault.h"

#define RECORD_BYTES 16
#define BATCH        256
#define BLOCK_BYTES  ((uint64_t)4096) /* of which holes consist */
#define STREAM_BITS  2
#define STREAM_MASK  ((uint64_t)3)
#define NOT_FOUND    SIZE_MAX

struct record {
    uint64_t offset;
    uint64_t stamp;
};

_Static_assert(sizeof(struct record) == RECORD_BYTES, "a record is two numbers");

static struct record record_of(const struct log_mark *mark)
{
    return (struct record){.offset = htole64(mark->offset),
        .stamp = htole64(mark->received_us << STREAM_BITS | (uint64_t)mark->stream)};
}

static struct log_mark mark_of(const struct record *record)
{
    uint64_t stamp = le64toh(record->stamp);
    uint64_t stream = stamp & STREAM_MASK;
    return (struct log_mark){.offset = le64toh(record->offset),
        .stream = stream <= LOG_STREAM_STDERR ? (enum log_stream)stream : LOG_STREAM_ANY,
        .received_us = stamp >> STREAM_BITS};
}

char *log_marks_path(const char *path)
{
    char *marks = NULL;
    return asprintf(&marks, "%s.marks", path) >= 0 ? marks : NULL;
}

static size_t record_count(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 ? (size_t)status.st_size / RECORD_BYTES : 0;
}

/* How many records were read. */
static size_t read_records(int fd, size_t index, struct record *ret_records, size_t count)
{
    ssize_t got =
        pread(fd, ret_records, count * RECORD_BYTES, (off_t)((uint64_t)index * RECORD_BYTES));
    return got > 0 ? (size_t)got / RECORD_BYTES : 0;
}

/* The offset of a mark; of one that cannot be read the highest. */
static uint64_t offset_at(int fd, size_t index)
{
    struct record record;
    return read_records(fd, index, &record, 1) == 1 ? mark_of(&record).offset : UINT64_MAX;
}

/* The records among which the one for `offset` is: before the hole or behind it. */
static void find_range(int fd, uint64_t offset, size_t *ret_first, size_t *ret_end)
{
    size_t count = record_count(fd);
    *ret_first = 0;
    *ret_end = count;
    off_t hole = count > 0 ? lseek(fd, 0, SEEK_HOLE) : -1;
    if (hole < 0 || (size_t)hole / RECORD_BYTES >= count) {
        return;
    }
    off_t behind = lseek(fd, hole, SEEK_DATA);
    size_t first = behind > 0 ? (size_t)behind / RECORD_BYTES : count;
    if (first < count && offset_at(fd, first) <= offset) {
        *ret_first = first;
    } else {
        *ret_end = (size_t)hole / RECORD_BYTES;
    }
}

/* The last mark at `offset` or before it; NOT_FOUND: there is none. */
static size_t find_mark(int fd, uint64_t offset)
{
    size_t low;
    size_t high;
    find_range(fd, offset, &low, &high);
    size_t first = low;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (offset_at(fd, middle) <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > first ? low - 1 : NOT_FOUND;
}

static bool says_the_same(const struct log_mark *a, const struct log_mark *b)
{
    return a->stream == b->stream && a->received_us == b->received_us;
}

/* Removes the marks at `log_bytes` and behind; returns how many are left, and the last one. */
static size_t cut(int fd, uint64_t log_bytes, struct log_mark *ret_last)
{
    size_t count = record_count(fd);
    size_t kept = count;
    struct record record;
    while (kept > 0 && read_records(fd, kept - 1, &record, 1) == 1) {
        *ret_last = mark_of(&record);
        bool zeros = kept > 1 && ret_last->offset == 0; /* as a loss of power leaves them */
        if (ret_last->offset < log_bytes && !zeros) {
            break;
        }
        kept--;
    }
    if (kept < count && ftruncate(fd, (off_t)((uint64_t)kept * RECORD_BYTES)) != 0) {
        return NOT_FOUND;
    }
    return kept;
}

bool log_marks_append(int fd, uint64_t log_bytes, const struct log_mark *marks, size_t count)
{
    struct record records[BATCH];
    struct log_mark last = {0};
    size_t kept = cut(fd, log_bytes, &last);
    bool has_last = kept > 0;
    for (size_t i = 0; i < count && kept != NOT_FOUND;) {
        size_t filled = 0;
        for (; i < count && filled < BATCH; i++) {
            if (!has_last || !says_the_same(&last, &marks[i])) {
                records[filled++] = record_of(&marks[i]);
            }
            last = marks[i];
            has_last = true;
        }
        size_t bytes = filled * RECORD_BYTES;
        if (fault_point("logs.marks")) {
            errno = EIO;
            return false;
        }
        if (pwrite(fd, records, bytes, (off_t)((uint64_t)kept * RECORD_BYTES)) != (ssize_t)bytes) {
            return false;
        }
        kept += filled;
    }
    return kept != NOT_FOUND;
}

size_t log_marks_read(
    int fd, uint64_t from, uint64_t to, struct log_mark *ret_marks, size_t max, uint64_t *ret_to)
{
    struct record records[BATCH];
    size_t at = fd >= 0 ? find_mark(fd, from) : NOT_FOUND;
    size_t count = 1;
    size_t got = 1;
    ret_marks[0] = (struct log_mark){.offset = from};
    *ret_to = to;
    if (fd < 0) {
        return 1;
    }
    for (at = at == NOT_FOUND ? 0 : at; got > 0; at += got) {
        got = read_records(fd, at, records, BATCH);
        for (size_t i = 0; i < got; i++) {
            const struct log_mark mark = mark_of(&records[i]);
            if (mark.offset >= to) {
                return count;
            }
            if (mark.offset <= from) {
                ret_marks[0] = mark;
                ret_marks[0].offset = from;
            } else if (mark.offset > ret_marks[count - 1].offset) { /* else the file is damaged */
                if (count == max) {
                    *ret_to = mark.offset;
                    return count;
                }
                ret_marks[count++] = mark;
            }
        }
    }
    return count;
}

uint64_t log_marks_since(int fd, uint64_t since_us, uint64_t log_bytes)
{
    struct record records[BATCH];
    size_t got = fd >= 0 ? read_records(fd, 0, records, BATCH) : 0;
    for (size_t at = 0; got > 0; got = read_records(fd, at, records, BATCH)) {
        for (size_t i = 0; i < got; i++) {
            const struct log_mark mark = mark_of(&records[i]);
            if (mark.received_us >= since_us) {
                return mark.offset < log_bytes ? mark.offset : log_bytes;
            }
        }
        at += got;
    }
    return log_bytes;
}

void log_marks_punch(int fd, uint64_t from, uint64_t to)
{
    size_t last = find_mark(fd, to);
    size_t before = from > 0 ? find_mark(fd, from - 1) : NOT_FOUND;
    uint64_t begin = before == NOT_FOUND ? 0 : ((uint64_t)before + 1) * RECORD_BYTES;
    begin += (BLOCK_BYTES - begin % BLOCK_BYTES) % BLOCK_BYTES;
    if (last == NOT_FOUND) {
        return;
    }
    uint64_t end = (uint64_t)last * RECORD_BYTES;
    end -= end % BLOCK_BYTES;
    if (end > begin) {
        (void)fallocate(
            fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin));
    }
}
