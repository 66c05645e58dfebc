/* SPDX-License-Identifier: Apache-2.0
 * Records by number; see record_table.h.
 *
 * Short runs are copied from the mapped file, long ones are read with pread, which asks the disk
 * for all of it at once. Records a second, batches of 64 in random order from the page cache, one
 * thread, when each run was read and checked before the next one:
 *
 *     bytes a record    200      4 Ki     16 Ki    48 Ki    100 Ki
 *     pread           1.2 M     500 k     250 k    104 k      51 k
 *     mapped          4.8 M     990 k     440 k    150 k      66 k */
#include "worker/library/input/files/record_table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "common/storage/storage.h"
#include "worker/library/input/files/record_index_file.h"

#define MAPPED_BYTES_MAX ((uint64_t)64 << 10)

/* So many runs are prefetched ahead of the one that is copied: as many cache lines as a processor
 * waits for at a time. */
#define RUNS_AHEAD 16

/* Frames are checked when so much was copied, which is in the first cache then. */
#define GROUP_BYTES ((size_t)16 << 10)

/* One read call asks for no more than this: Linux never gives more than 2 GiB at a time. */
#define READ_BYTES_MAX ((size_t)1 << 30)

/* Opens it for one read. A file of this name that is another one now would give other records. */
static cadre_status record_table_reopen(
    const struct record_table *table, int *ret_fd, struct cadre_error *error)
{
    struct stat facts;
    CADRE_TRY(file_open_regular(table->path, ret_fd, NULL, error));
    if (fstat(*ret_fd, &facts) != 0) {
        return cadre_error_errno(error, errno, "cannot look at the data file %s", table->path);
    }
    if ((uint64_t)facts.st_dev != table->device || (uint64_t)facts.st_ino != table->inode) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s was replaced by another file since its records were counted; files stay as they "
            "are while they are read",
            table->path);
    }
    return CADRE_OK;
}

/* While it is open it is one state of the object, also for those who make the index. */
static cadre_status open_object_table(struct record_table *table, const char *path,
    const char *index_folder, const struct record_options *options, struct cadre_error *error)
{
    struct record_table opened = {.path = path, .rules = options->rules, .fd = -1, .open = true};
    CADRE_TRY(object_open(path, &opened.object, error));
    cadre_status status = record_index_open(path, index_folder, options, &opened.index, error);
    if (status != CADRE_OK) {
        object_close(opened.object);
        return status;
    }
    CADRE_ASSERT(opened.index.end == object_bytes(opened.object));
    *table = opened;
    return CADRE_OK;
}

cadre_status record_table_open(struct record_table *table, const char *path,
    const char *index_folder, const struct record_options *options, bool keep_open,
    struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t bytes = 0;
    struct record_table opened = {.path = path, .rules = options->rules, .fd = -1, .open = true};
    *table = (struct record_table){0};
    CADRE_ASSERT(options->compression == CADRE_COMPRESSION_NONE);
    if (storage_is_object(path)) {
        return open_object_table(table, path, index_folder, options, error);
    }
    CADRE_TRY(file_open_regular(path, &fd, &bytes, error));
    struct stat facts;
    struct stat named;
    CADRE_TRY(record_index_open(path, index_folder, options, &opened.index, error));
    bool same = fstat(fd, &facts) == 0 && stat(path, &named) == 0 && facts.st_dev == named.st_dev &&
                facts.st_ino == named.st_ino && (uint64_t)facts.st_size == bytes;
    if (!same || bytes != opened.index.end) {
        record_index_clear(&opened.index);
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s changes while its records are counted; read it when its writer has closed it",
            path);
    }
    if (bytes > 0 && mapped_file_open(&opened.mapped, fd, bytes, NULL) != CADRE_OK) {
        opened.mapped = (struct mapped_file){0}; /* pread does as well */
    }
    opened.device = (uint64_t)facts.st_dev;
    opened.inode = (uint64_t)facts.st_ino;
    if (keep_open) {
        opened.fd = fd;
        fd = -1;
    }
    *table = opened;
    return CADRE_OK;
}

void record_table_close(struct record_table *table)
{
    if (table->open) {
        record_index_clear(&table->index);
        mapped_file_close(&table->mapped);
        object_close(table->object);
        if (table->fd >= 0) {
            close(table->fd);
        }
        *table = (struct record_table){0};
    }
}

void record_table_locate(struct record_run *run)
{
    const struct record_index *index = &run->table->index;
    run->offset = record_index_offset(index, run->first);
    run->bytes = record_index_offset(index, run->first + run->count) - run->offset;
}

void record_table_prefetch_offset(const struct record_table *table, uint64_t number)
{
    record_index_prefetch(&table->index, number);
}

static bool comes_from_mapping(const struct record_run *run)
{
    return run->bytes <= MAPPED_BYTES_MAX && run->table->mapped.mapping != NULL;
}

static void record_table_prefetch(const struct record_run *run)
{
    if (comes_from_mapping(run)) {
        mapped_file_prefetch(&run->table->mapped, run->offset, (size_t)run->bytes);
    } else if (run->table->object != NULL) {
        object_prefetch(run->table->object, run->offset, run->bytes);
    }
}

/* What is wrong with record `number` of a table. */
static cadre_status position_error(
    const struct record_table *table, uint64_t number, const char *what, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s, record %" PRIu64 " at offset %" PRIu64 ": %s", table->path, number,
        record_index_offset(&table->index, number), what);
}

/* The record of the run in which byte `offset` of the file lies. */
static uint64_t find_record(const struct record_run *run, uint64_t offset)
{
    const struct record_index *index = &run->table->index;
    uint64_t number = run->first;
    while (
        number + 1 < run->first + run->count && record_index_offset(index, number + 1) <= offset) {
        number++;
    }
    return number;
}

static cadre_status read_error(
    const struct record_run *run, uint64_t offset, int errnum, struct cadre_error *error)
{
    const struct record_table *table = run->table;
    uint64_t number = find_record(run, offset);
    if (errnum == 0) {
        return position_error(table, number,
            "the file ends before its end; it was cut short since its records were counted", error);
    }
    return cadre_error_errno(error, errnum, "%s, record %" PRIu64 " at offset %" PRIu64,
        table->path, number, record_index_offset(&table->index, number));
}

static cadre_status read_file(const struct record_run *run, uint8_t *to, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int own = -1;
    int fd = run->table->fd;
    if (fd < 0) {
        CADRE_TRY(record_table_reopen(run->table, &own, error));
        fd = own;
    }
    for (size_t done = 0; done < run->bytes;) {
        size_t left = (size_t)run->bytes - done;
        size_t want = left < READ_BYTES_MAX ? left : READ_BYTES_MAX;
        ssize_t got = fault_point("input.record-read")
                          ? (errno = EIO, -1)
                          : pread(fd, to + done, want, (off_t)(run->offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return read_error(run, run->offset + done, got < 0 ? errno : 0, error);
        }
        done += (size_t)got;
    }
    return CADRE_OK;
}

/* Says what is wrong with a run in which `walk` did not find as many frames as it has. */
static cadre_status frames_error(const struct record_run *run, const struct record_walk *walk,
    const cadre_string records[], struct cadre_error *error)
{
    const struct record_table *table = run->table;
    const struct record_index *index = &table->index;
    uint64_t number = run->first;
    for (size_t i = 0; i < walk->count; i++, number++) {
        uint64_t bytes =
            record_index_offset(index, number + 1) - record_index_offset(index, number);
        if (records[i].size + RECORD_FRAME_BYTES != bytes) {
            break;
        }
    }
    if (number == run->first + walk->count && walk->fault != RECORD_SOUND) {
        return record_fault_error(walk->fault, walk->length, &table->rules, table->path, number,
            record_index_offset(index, number), error);
    }
    return position_error(table, number,
        "its length is not that of the index; the file was changed since its records were counted",
        error);
}

static cadre_status record_table_copy(
    const struct record_run *run, uint8_t *to, struct cadre_error *error)
{
    /* Where the mapping fails, reading says exactly why. */
    bool copied = comes_from_mapping(run) &&
                  mapped_file_copy(&run->table->mapped, run->offset, to, (size_t)run->bytes);
    return copied ? CADRE_OK : read_file(run, to, error);
}

/* Whether the frames of runs that were copied one behind the other are sound, each run as long as
 * its index has it. One walk over all of them: the checksums of several are computed at a time. */
static bool are_sound(const struct record_run runs[], size_t run_count, const uint8_t *bytes,
    size_t size, cadre_string records[])
{
    size_t count = 0;
    for (size_t i = 0; i < run_count; i++) {
        count += runs[i].count;
    }
    struct record_walk walk =
        record_walk_frames(bytes, size, count, &runs[0].table->rules, records);
    bool sound = walk.count == count && walk.used == size;
    for (size_t i = 0; sound && i < run_count; i++) {
        sound = (const uint8_t *)records->bytes == bytes + RECORD_HEADER_BYTES;
        bytes += runs[i].bytes;
        records += runs[i].count;
    }
    return sound;
}

static cadre_status check_runs(const struct record_run runs[], size_t run_count,
    const uint8_t *bytes, size_t size, cadre_string records[], struct cadre_error *error)
{
    if (run_count == 0 || are_sound(runs, run_count, bytes, size, records)) {
        return CADRE_OK;
    }
    for (size_t i = 0; i < run_count; i++) {
        const struct record_run *run = &runs[i];
        struct record_walk walk =
            record_walk_frames(bytes, (size_t)run->bytes, run->count, &run->table->rules, records);
        if (walk.count < run->count || walk.used != run->bytes) {
            return frames_error(run, &walk, records, error);
        }
        bytes += run->bytes;
        records += run->count;
    }
    return CADRE_OK;
}

/* Copies runs until they are worth a walk; *ret_count: how many. */
static cadre_status copy_group(const struct record_run runs[], size_t run_count, uint8_t *to,
    size_t *ret_count, size_t *ret_bytes, struct cadre_error *error)
{
    *ret_count = 0;
    *ret_bytes = 0;
    while (*ret_count < run_count && *ret_bytes < GROUP_BYTES &&
           runs[*ret_count].table->object == NULL) {
        const struct record_run *run = &runs[*ret_count];
        if (*ret_count + RUNS_AHEAD < run_count) {
            record_table_prefetch(run + RUNS_AHEAD);
        }
        CADRE_TRY(record_table_copy(run, to + *ret_bytes, error));
        *ret_bytes += (size_t)run->bytes;
        ++*ret_count;
    }
    return CADRE_OK;
}

/* The same of runs that lie in objects. */
static cadre_status copy_object_group(const struct record_run runs[], size_t run_count, uint8_t *to,
    size_t *ret_count, size_t *ret_bytes, struct cadre_error *error)
{
    struct object_piece pieces[OBJECT_PIECES_MAX];
    size_t count = 0;
    size_t bytes = 0;
    for (; count < run_count && count < OBJECT_PIECES_MAX && bytes < GROUP_BYTES &&
           runs[count].table->object != NULL;
         count++) {
        pieces[count] = (struct object_piece){.object = runs[count].table->object,
            .offset = runs[count].offset,
            .to = to + bytes,
            .bytes = (size_t)runs[count].bytes};
        bytes += pieces[count].bytes;
        if (count + RUNS_AHEAD < run_count) {
            record_table_prefetch(&runs[count + RUNS_AHEAD]);
        }
    }
    *ret_bytes = 0;
    cadre_status status = object_read_pieces(pieces, count, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        *ret_bytes += pieces[i].bytes;
    }
    if (status != CADRE_OK) {
        const struct record_run *failed = &runs[*ret_count];
        return cadre_error_wrap(error, status, "%s, record %" PRIu64 " at offset %" PRIu64,
            failed->table->path, failed->first, failed->offset);
    }
    return CADRE_OK;
}

cadre_status record_table_read(const struct record_run runs[], size_t run_count, uint8_t *to,
    cadre_string records[], struct cadre_error *error)
{
    for (size_t i = 0; i < run_count; i++) {
        if (runs[i].table->object != NULL) { /* those of all runs at the same time */
            object_ask(runs[i].table->object, runs[i].offset, runs[i].bytes);
        }
    }
    for (size_t i = 0; i < run_count && i < RUNS_AHEAD; i++) {
        record_table_prefetch(&runs[i]);
    }
    while (run_count > 0) {
        size_t count = 0;
        size_t bytes = 0;
        cadre_status status = runs->table->object != NULL
                                  ? copy_object_group(runs, run_count, to, &count, &bytes, error)
                                  : copy_group(runs, run_count, to, &count, &bytes, error);
        /* Also of the runs before one that cannot be read: the first failure counts. */
        CADRE_TRY(check_runs(runs, count, to, bytes, records, error));
        if (status != CADRE_OK) {
            return status;
        }
        for (size_t i = 0; i < count; i++) {
            records += runs[i].count;
        }
        runs += count;
        run_count -= count;
        to += bytes;
    }
    return CADRE_OK;
}
