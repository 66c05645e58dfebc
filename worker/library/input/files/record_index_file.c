/* SPDX-License-Identifier: Apache-2.0
 * Indexes in files; see record_index_file.h.
 *
 * Who makes NAME.cadre-index writes NAME.cadre-index.part and renames it when all of it is on the
 * disk. The lock is held on that very file: with the rename it is gone, and a process that dies
 * leaves a file that the next one takes over.
 *
 * Measured on files in the page cache, one thread of a Xeon that others used too: making it
 * takes 46 ms for a million records of 200 bytes (4.7 GB/s, all of them read) and 84 ms for 20,000
 * of 100 KiB (only their headers are read); finding it again, with all checks, 11 ms for the
 * million. */
#include "worker/library/input/files/record_index_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/storage/storage.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/input/files/record_frame.h"
#include "worker/library/input/objects/object.h"

#define STARTS_AT_ONCE 4096

cadre_status record_index_path(
    const char *path, const char *folder, char **ret_path, struct cadre_error *error)
{
    int length = 0;
    if (folder == NULL) {
        length = asprintf(ret_path, "%s" RECORD_INDEX_SUFFIX, path);
    } else {
        CADRE_FREE_AT_EXIT char *whole = storage_is_object(path) ? NULL : realpath(path, NULL);
        const char *of = whole == NULL ? path : whole;
        const char *slash = strrchr(path, '/');
        size_t folder_length = strlen(folder);
        bool ends = folder_length > 0 && folder[folder_length - 1] == '/';
        length = asprintf(ret_path, "%s%s%s-%08" PRIx32 RECORD_INDEX_SUFFIX, folder,
            ends ? "" : "/", slash == NULL ? path : slash + 1, crc32c(0, of, strlen(of)));
    }
    if (length < 0) {
        *ret_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory for a path", path);
    }
    return CADRE_OK;
}

static cadre_status look_at_object(
    const char *path, struct record_index_file *ret_file, struct cadre_error *error)
{
    struct object *object = NULL;
    struct sha256 hash;
    cadre_status status = CADRE_OK;
    CADRE_TRY(object_open(path, &object, error));
    const char *version = object_version(object);
    *ret_file = (struct record_index_file){
        .bytes = object_bytes(object), .modified_ns = object_modified_us(object) * 1000};
    if (version[0] != '\0') {
        status = sha256_of(version, strlen(version), &hash, error);
        memcpy(&ret_file->modified_ns, hash.bytes, sizeof ret_file->modified_ns);
    }
    object_close(object);
    return status;
}

static cadre_status look_at(
    const char *path, struct record_index_file *ret_file, struct cadre_error *error)
{
    struct stat facts;
    if (storage_is_object(path)) {
        return look_at_object(path, ret_file, error);
    }
    if (stat(path, &facts) != 0) {
        return cadre_error_errno(error, errno, "cannot look at the data file %s", path);
    }
    *ret_file = (struct record_index_file){
        .bytes = (uint64_t)facts.st_size,
        .modified_ns = (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec,
    };
    return CADRE_OK;
}

/* Makes it without looking for one that is kept, and keeps nothing. */
static cadre_status record_index_build(const char *path, const struct record_options *options,
    struct record_index *ret_index, struct cadre_error *error)
{
    struct record_reader *reader = NULL;
    struct record_index index = {0};
    uint64_t skipped = 0;
    *ret_index = index;
    CADRE_FREE_AT_EXIT uint64_t *starts = malloc(STARTS_AT_ONCE * sizeof starts[0]);
    if (starts == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory for an index of its records", path);
    }
    CADRE_TRY(record_reader_open(path, options, &reader, error));
    cadre_status status = CADRE_OK;
    do {
        status = record_reader_skip(reader, STARTS_AT_ONCE, starts, &skipped, error);
        for (uint64_t i = 0; i < skipped && status == CADRE_OK; i++) {
            status = record_index_add(&index, starts[i], error);
        }
    } while (status == CADRE_OK && skipped == STARTS_AT_ONCE);
    index.end = record_reader_offset(reader);
    record_reader_close(reader);
    if (status != CADRE_OK) {
        record_index_clear(&index);
        return status;
    }
    record_index_finish(&index);
    *ret_index = index;
    return CADRE_OK;
}

/* The same of a file that stands still. */
static cadre_status build_of(const char *path, const struct record_options *options,
    const struct record_index_file *file, struct record_index *ret_index, struct cadre_error *error)
{
    struct record_index_file after = {0};
    CADRE_TRY(record_index_build(path, options, ret_index, error));
    cadre_status status = look_at(path, &after, error);
    if (status == CADRE_OK && (after.bytes != file->bytes || ret_index->end != file->bytes ||
                                  after.modified_ns != file->modified_ns)) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s changes while its records are counted; read it when its writer has closed it",
            path);
    }
    if (status != CADRE_OK) {
        record_index_clear(ret_index);
    }
    return status;
}

/* The reason of a failure is dropped: the index is then made. */
static bool record_index_file_load(
    const char *index_path, const struct record_index_file *file, struct record_index *ret_index)
{
    char *bytes = NULL;
    size_t size = 0;
    /* No index of this file is larger: a frame has 16 bytes, its place 8 and its share of a group.
     */
    size_t limit =
        RECORD_INDEX_HEADER_BYTES + (size_t)(file->bytes / RECORD_FRAME_BYTES + 1) * 16 + 256;
    struct cadre_error unsaid = {0};
    cadre_status status = storage_is_object(index_path)
                              ? storage_get(NULL, index_path, limit, &bytes, &size, &unsaid)
                              : file_read(index_path, limit, &bytes, &size, &unsaid);
    return status == CADRE_OK &&
           record_index_unpack(bytes, size, file, ret_index, NULL) == CADRE_OK;
}

/* Opens and locks PATH.part, waiting for its holder. False where that cannot be done. */
static bool record_index_file_lock(const char *part, int *ret_fd)
{
    for (;;) {
        struct stat own;
        struct stat named;
        int locked = 0;
        int fd = fault_point("input.index-lock")
                     ? -1
                     : open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0666);
        if (fd < 0) {
            break;
        }
        do {
            locked = flock(fd, LOCK_EX);
        } while (locked != 0 && errno == EINTR);
        if (locked != 0 || fstat(fd, &own) != 0) {
            close(fd);
            break;
        }
        if (stat(part, &named) == 0 && named.st_ino == own.st_ino && named.st_dev == own.st_dev) {
            *ret_fd = fd;
            return true;
        }
        close(fd); /* its holder has renamed or removed it meanwhile */
    }
    return false;
}

/* Whole or absent, as file_write_atomic; into the file whose lock is held. */
static cadre_status record_index_file_keep(int fd, const char *part, const char *index_path,
    const struct record_index *index, const struct record_index_file *file)
{
    uint8_t header[RECORD_INDEX_HEADER_BYTES];
    record_index_pack(index, file, header);
    size_t body_bytes = index->count == 0 ? 0 : record_index_body_bytes(index);
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
        return CADRE_UNKNOWN;
    }
    CADRE_TRY(file_write_all(fd, part, header, sizeof header, NULL));
    CADRE_TRY(file_write_all(fd, part, index->groups, body_bytes, NULL));
    bool kept =
        fsync(fd) == 0 && !fault_point("input.index-rename") && rename(part, index_path) == 0;
    return kept ? CADRE_OK : CADRE_UNKNOWN;
}

static cadre_status make_and_keep(const char *path, const char *index_path,
    const struct record_options *options, const struct record_index_file *file,
    struct record_index *ret_index, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *part = NULL;
    CADRE_CLOSE_AT_EXIT int fd = -1;
    if (asprintf(&part, "%s.part", index_path) < 0) {
        part = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory for a path", path);
    }
    if (!record_index_file_lock(part, &fd)) {
        return build_of(path, options, file, ret_index, error);
    }
    if (record_index_file_load(
            index_path, file, ret_index)) { /* another process made it during the wait */
        unlink(part);
        return CADRE_OK;
    }
    cadre_status status = build_of(path, options, file, ret_index, error);
    if (status != CADRE_OK ||
        record_index_file_keep(fd, part, index_path, ret_index, file) != CADRE_OK) {
        unlink(part);
    }
    return status;
}

/* As an object. Where it cannot be written the next reader makes it again. */
static cadre_status make_and_put(const char *path, const char *index_path,
    const struct record_options *options, const struct record_index_file *file,
    struct record_index *ret_index, struct cadre_error *error)
{
    struct cadre_error unsaid = {0};
    CADRE_TRY(build_of(path, options, file, ret_index, error));
    size_t body_bytes = ret_index->count == 0 ? 0 : record_index_body_bytes(ret_index);
    CADRE_FREE_AT_EXIT uint8_t *bytes = malloc(RECORD_INDEX_HEADER_BYTES + body_bytes);
    if (bytes != NULL) {
        record_index_pack(ret_index, file, bytes);
        if (body_bytes > 0) {
            memcpy(bytes + RECORD_INDEX_HEADER_BYTES, ret_index->groups, body_bytes);
        }
        (void)storage_put(NULL, index_path, bytes, RECORD_INDEX_HEADER_BYTES + body_bytes, &unsaid);
    }
    return CADRE_OK;
}

cadre_status record_index_open(const char *path, const char *folder,
    const struct record_options *options, struct record_index *ret_index, struct cadre_error *error)
{
    struct record_index_file file = {0};
    CADRE_FREE_AT_EXIT char *index_path = NULL;
    *ret_index = (struct record_index){0};
    CADRE_TRY(look_at(path, &file, error));
    CADRE_TRY(record_index_path(path, folder, &index_path, error));
    if (record_index_file_load(index_path, &file, ret_index)) {
        return CADRE_OK;
    }
    return storage_is_object(index_path)
               ? make_and_put(path, index_path, options, &file, ret_index, error)
               : make_and_keep(path, index_path, options, &file, ret_index, error);
}
