/* SPDX-License-Identifier: Apache-2.0
 * Files of blocks; see disk_cache.h. The time of a file's last change is when it was used last,
 * within a minute: reading one sets it. */
#include "worker/library/input/objects/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/input/objects/disk_cache_space.h"

#define FOLDER_VARIABLE "CADRE_CACHE_FOLDER"
#define SIZE_VARIABLE   "CADRE_CACHE_MIB"
#define MIB             ((uint64_t)1 << 20)
#define MIB_DEFAULT     16384
#define MIB_MIN         64
#define MIB_MAX         ((uint64_t)1 << 30)

/* A file's time is set when it is older than this. */
#define USED_SECONDS 60

/* A folder is made so often for one write. */
#define FOLDER_TRIES 3

/* For so long nothing is written after a write failed. */
#define PAUSE_US (30 * CADRE_US_PER_S)

/* What has a checksum of its own. */
#define PIECE_BYTES ((size_t)16 << 10)
#define PIECES      (DISK_BLOCK_BYTES / PIECE_BYTES)
#define PIECES_ALL  UINT32_C(0xffff)

/* One of so many reads looks at checksums again, of what was checked before. */
#define CHECKED_AGAIN 16

struct disk_head {
    char magic[8];
    uint64_t number;
    uint64_t bytes;
    uint32_t version;
    uint32_t checksum;       /* CRC-32C of the name of the object and this head with 0 here */
    uint32_t pieces[PIECES]; /* that of each piece of the bytes; behind the last one 0 */
};

_Static_assert(PIECES == 16, "a bit each in half of a disk_checked");

static const char magic[8] = {'c', 'a', 'd', 'r', 'e', 'b', 'l', 'k'};

#define FORMAT_VERSION 2
#define PATH_BYTES     4096

static pthread_mutex_t prepare_lock = PTHREAD_MUTEX_INITIALIZER;
/* Set once, under the lock. */
static bool prepared;
static char folder[PATH_BYTES - 128]; /* "": there is no cache */
static atomic_bool in_use;
static _Atomic uint64_t paused_until_us;

static cadre_status read_size(uint64_t *ret_bytes, struct cadre_error *error)
{
    const char *text = getenv(SIZE_VARIABLE);
    char *end = NULL;
    *ret_bytes = MIB_DEFAULT * MIB;
    if (text == NULL || text[0] == '\0') {
        return CADRE_OK;
    }
    errno = 0;
    unsigned long long mib = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9' || mib < MIB_MIN ||
        mib > MIB_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            SIZE_VARIABLE " is \"%s\"; give the mebibytes that blocks of objects may take on the "
                          "disk, %d to %" PRIu64,
            text, MIB_MIN, MIB_MAX);
    }
    *ret_bytes = mib * MIB;
    return CADRE_OK;
}

static cadre_status read_settings(struct cadre_error *error)
{
    const char *text = getenv(FOLDER_VARIABLE);
    uint64_t bytes = 0;
    if (text == NULL || text[0] == '\0') {
        return CADRE_OK;
    }
    if (text[0] != '/' || strlen(text) >= sizeof folder) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            FOLDER_VARIABLE " is \"%s\"; give the absolute path of a folder", text);
    }
    CADRE_TRY(read_size(&bytes, error));
    cadre_status status = folder_make(text, 0700, error);
    if (status == CADRE_RESOURCE_EXHAUSTED) {
        return CADRE_OK; /* no room: no caching */
    }
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "the folder that " FOLDER_VARIABLE " names");
    }
    snprintf(folder, sizeof folder, "%s", text);
    disk_cache_space_begin(folder, bytes);
    atomic_store(&in_use, true);
    return CADRE_OK;
}

cadre_status disk_cache_prepare(struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&prepare_lock);
    if (!prepared) {
        status = read_settings(error);
        prepared = status == CADRE_OK;
    }
    pthread_mutex_unlock(&prepare_lock);
    return status;
}

void disk_cache_reset(void)
{
    pthread_mutex_lock(&prepare_lock);
    prepared = false;
    folder[0] = '\0';
    atomic_store(&in_use, false);
    atomic_store(&paused_until_us, 0);
    pthread_mutex_unlock(&prepare_lock);
}

void disk_cache_key_make(
    const char *path, const char *version, uint64_t bytes, struct disk_cache_key *ret_key)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    struct sha256 hash;
    ret_key->text[0] = '\0';
    if (!atomic_load(&in_use) || version[0] == '\0') {
        return;
    }
    int length = asprintf(&text, "%s\n%s\n%" PRIu64, path, version, bytes);
    if (length < 0) {
        text = NULL;
    } else if (sha256_of(text, (size_t)length, &hash, NULL) == CADRE_OK) {
        sha256_hex(&hash, ret_key->text);
    }
}

static uint32_t disk_checksum(const struct disk_cache_key *key, const struct disk_head *head)
{
    struct disk_head of = *head;
    of.checksum = 0;
    return crc32c(crc32c(0, key->text, SHA256_HEX_BYTES - 1), &of, sizeof of);
}

/* Bytes of a piece of a block of `bytes`. */
static size_t piece_bytes(size_t bytes, size_t piece)
{
    size_t left = bytes - piece * PIECE_BYTES;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static void set_used(int fd, const struct statx *facts)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec - facts->stx_mtime.tv_sec > USED_SECONDS) {
        (void)futimens(fd, NULL);
    }
}

/* --- what was checked before --- */

/* The upper half of a disk_checked: which file it was, by its number and when it was made, as a
 * file that takes its place is another one. 0: the file system does not say. */
static uint32_t identity_of(const struct statx *facts)
{
    if ((facts->stx_mask & STATX_BTIME) == 0) {
        return 0;
    }
    uint64_t made = (uint64_t)facts->stx_btime.tv_sec * 1000000000 + facts->stx_btime.tv_nsec;
    uint64_t mixed =
        (facts->stx_ino ^ made * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xD1B54A32D192ED03);
    return ((uint32_t)(mixed >> 48) | 1) << PIECES;
}

/* The pieces of these bytes, a bit each. */
static uint32_t pieces_of(size_t offset, size_t count)
{
    size_t first = offset / PIECE_BYTES;
    size_t end = count > 0 ? (offset + count - 1) / PIECE_BYTES + 1 : first;
    return (UINT32_C(1) << end) - (UINT32_C(1) << first);
}

/* Whether all of these pieces were checked, of this file, and are not to be checked again. */
static bool is_checked(const disk_checked *checked, uint32_t identity, uint32_t pieces)
{
    static _Thread_local unsigned reads;
    uint32_t known = checked != NULL ? atomic_load_explicit(checked, memory_order_relaxed) : 0;
    return identity != 0 && (known & ~PIECES_ALL) == identity && (pieces & ~known) == 0 &&
           ++reads % CHECKED_AGAIN != 0;
}

static void note_checked(disk_checked *checked, uint32_t identity, uint32_t pieces)
{
    if (checked != NULL && identity != 0) {
        uint32_t known = atomic_load_explicit(checked, memory_order_relaxed);
        known = (known & ~PIECES_ALL) == identity ? known : identity;
        atomic_store_explicit(checked, known | pieces, memory_order_relaxed);
    }
}

/* --- reading --- */

static bool read_exactly(int fd, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(fd, (char *)to + done, bytes - done);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* The file of a block; -1: there is none. */
static int open_block(const struct disk_cache_key *key, uint64_t number, char path[PATH_BYTES],
    struct statx *ret_facts)
{
    if (key->text[0] == '\0') {
        return -1;
    }
    snprintf(path, PATH_BYTES, "%s/%s/%" PRIu64, folder, key->text, number);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 &&
        statx(fd, "", AT_EMPTY_PATH, STATX_MTIME | STATX_INO | STATX_BTIME, ret_facts) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void disk_cache_list(
    const struct disk_cache_key *key, void (*each)(void *user, uint64_t number), void *user)
{
    char path[PATH_BYTES];
    DIR *blocks = NULL;
    if (key->text[0] != '\0') {
        snprintf(path, sizeof path, "%s/%s", folder, key->text);
        blocks = opendir(path);
    }
    const struct dirent *entry = NULL;
    while (blocks != NULL && (entry = readdir(blocks)) != NULL) {
        char *end = NULL;
        uint64_t number = strtoull(entry->d_name, &end, 10);
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && *end == '\0') {
            each(user, number);
        }
    }
    if (blocks != NULL) {
        closedir(blocks);
    }
}

static bool read_head(
    const struct disk_cache_key *key, uint64_t number, size_t bytes, int fd, struct disk_head *head)
{
    return read_exactly(fd, head, sizeof *head) && memcmp(head->magic, magic, sizeof magic) == 0 &&
           head->version == FORMAT_VERSION && head->number == number && head->bytes == bytes &&
           disk_checksum(key, head) == head->checksum;
}

/* Reads and checks pieces [first, end) of a block of `bytes`. */
static bool read_pieces(
    int fd, const struct disk_head *head, size_t bytes, size_t first, size_t end, uint8_t *to)
{
    size_t begin = first * PIECE_BYTES;
    size_t size = (end - 1) * PIECE_BYTES + piece_bytes(bytes, end - 1) - begin;
    if (pread(fd, to, size, (off_t)(sizeof *head + begin)) != (ssize_t)size) {
        return false;
    }
    for (size_t i = first; i < end; i++) {
        if (crc32c(0, to + (i - first) * PIECE_BYTES, piece_bytes(bytes, i)) != head->pieces[i]) {
            return false;
        }
    }
    return true;
}

/* Pieces that are wanted as a whole go to where they are wanted. */
static bool read_range(
    int fd, const struct disk_head *head, size_t bytes, size_t offset, uint8_t *to, size_t count)
{
    uint8_t buffer[PIECE_BYTES];
    size_t stop = offset + count;
    size_t whole_end = stop == bytes ? (bytes + PIECE_BYTES - 1) / PIECE_BYTES : stop / PIECE_BYTES;
    for (size_t at = offset; at < stop;) {
        size_t piece = at / PIECE_BYTES;
        size_t begin = piece * PIECE_BYTES;
        bool whole = at == begin && piece < whole_end;
        size_t end = whole ? whole_end : piece + 1;
        if (!read_pieces(fd, head, bytes, piece, end, whole ? to + (at - offset) : buffer)) {
            return false;
        }
        size_t behind = (end - 1) * PIECE_BYTES + piece_bytes(bytes, end - 1);
        behind = behind < stop ? behind : stop;
        if (!whole) {
            memcpy(to + (at - offset), buffer + (at - begin), behind - at);
        }
        at = behind;
    }
    return true;
}

bool disk_cache_read_range(const struct disk_cache_key *key, uint64_t number, size_t bytes,
    size_t offset, void *to, size_t count, disk_checked *checked)
{
    char path[PATH_BYTES];
    struct disk_head head;
    struct statx facts;
    CADRE_ASSERT(offset + count <= bytes && bytes <= DISK_BLOCK_BYTES);
    CADRE_CLOSE_AT_EXIT int fd = open_block(key, number, path, &facts);
    if (fd < 0) {
        return false;
    }
    uint32_t identity = identity_of(&facts);
    uint32_t pieces = pieces_of(offset, count);
    bool good = false;
    if (is_checked(checked, identity, pieces)) {
        good = pread(fd, to, count, (off_t)(sizeof head + offset)) == (ssize_t)count;
    } else {
        good = read_head(key, number, bytes, fd, &head) &&
               read_range(fd, &head, bytes, offset, to, count);
    }
    if (!good) {
        unlink(path);
        return false;
    }
    note_checked(checked, identity, pieces);
    set_used(fd, &facts);
    return true;
}

bool disk_cache_read(const struct disk_cache_key *key, uint64_t number, void *to, size_t bytes,
    disk_checked *checked)
{
    return disk_cache_read_range(key, number, bytes, 0, to, bytes, checked);
}

static bool write_file(const char *path, const struct disk_head *head, const void *bytes)
{
    CADRE_CLOSE_AT_EXIT int fd = fault_point("input.disk-cache")
                                     ? -1
                                     : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    struct cadre_error unsaid = {0};
    bool written = !fault_point("input.disk-cache") &&
                   file_write_all(fd, path, head, sizeof *head, &unsaid) == CADRE_OK &&
                   file_write_all(fd, path, bytes, (size_t)head->bytes, &unsaid) == CADRE_OK;
    if (!written) {
        unlink(path);
    }
    return written;
}

/* Another process that looks for room may remove the object's folder while it is empty: then it is
 * made again. */
static bool write_part(const struct disk_cache_key *key, const char *part,
    const struct disk_head *head, const void *bytes)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, key->text);
    for (unsigned tries = 0; tries < FOLDER_TRIES; tries++) {
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            return false;
        }
        errno = 0;
        if (write_file(part, head, bytes)) {
            return true;
        }
        if (errno != ENOENT) {
            return false;
        }
    }
    return false;
}

bool disk_cache_write(
    const struct disk_cache_key *key, uint64_t number, const void *bytes, size_t size)
{
    static atomic_uint_fast64_t made;
    char path[PATH_BYTES];
    char part[PATH_BYTES];
    struct disk_head head = {.number = number, .bytes = size, .version = FORMAT_VERSION};
    uint64_t now_us = clock_monotonic_us();
    CADRE_ASSERT(size <= DISK_BLOCK_BYTES);
    if (key->text[0] == '\0' || now_us < atomic_load(&paused_until_us) ||
        !disk_cache_space_claim(sizeof head + size)) {
        return false;
    }
    memcpy(head.magic, magic, sizeof magic);
    for (size_t i = 0; i * PIECE_BYTES < size; i++) {
        head.pieces[i] = crc32c(0, (const char *)bytes + i * PIECE_BYTES, piece_bytes(size, i));
    }
    head.checksum = disk_checksum(key, &head);
    snprintf(path, sizeof path, "%s/%s/%" PRIu64, folder, key->text, number);
    snprintf(part, sizeof part, "%s/%s/part-%ld-%" PRIuFAST64, folder, key->text, (long)getpid(),
        atomic_fetch_add(&made, 1));
    if (!write_part(key, part, &head, bytes) || rename(part, path) != 0) {
        unlink(part);
        atomic_store(&paused_until_us, now_us + PAUSE_US);
        return false;
    }
    return true;
}
