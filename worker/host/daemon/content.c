/* SPDX-License-Identifier: Apache-2.0
 * Copies contents of the cache and hashes them in pieces, in threads of the pool; removes what
 * is damaged. Called by stage_in.c for tasks that start and by cache_check.c. */
#include "worker/host/daemon/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

#define BUFFER_BYTES ((size_t)256 * 1024)

/* Only the file that was read: another task may have renamed a whole one to the same path
 * meanwhile. */
static enum content_state remove_damaged(const char *path, int fd)
{
    struct stat read_one;
    struct stat named;
    bool same = fstat(fd, &read_one) == 0 && lstat(path, &named) == 0 &&
                read_one.st_ino == named.st_ino && read_one.st_dev == named.st_dev;
    return same && unlink(path) == 0 ? CONTENT_REMOVED : CONTENT_DAMAGED;
}

static ssize_t read_some(int fd, uint8_t *bytes, size_t size)
{
    ssize_t got;
    do {
        got = read(fd, bytes, size);
    } while (got < 0 && errno == EINTR);
    return got;
}

static bool is_as_hashed(struct sha256_stream *hash, const uint8_t sha256[SHA256_BYTES])
{
    struct sha256 made;
    return sha256_finish(hash, &made, NULL) == CADRE_OK &&
           memcmp(made.bytes, sha256, sizeof made.bytes) == 0;
}

/* ---- a copy ---- */

struct copying {
    const char *from;
    const char *to;
    int in;
    int out;
    struct sha256_stream *hash;
    uint8_t *buffer;
};

static cadre_status copy_all(const struct copying *copying, struct cadre_error *error)
{
    ssize_t got;
    while ((got = read_some(copying->in, copying->buffer, BUFFER_BYTES)) > 0) {
        CADRE_TRY(sha256_add(copying->hash, copying->buffer, (size_t)got, error));
        CADRE_TRY(file_write_all(copying->out, copying->to, copying->buffer, (size_t)got, error));
    }
    return got == 0 ? CADRE_OK : cadre_error_errno(error, errno, "cannot read %s", copying->from);
}

static cadre_status copy_checked(struct copying *copying, const uint8_t sha256[SHA256_BYTES],
    enum content_state *ret_state, struct cadre_error *error)
{
    cadre_status status = sha256_open(&copying->hash, error);
    if (status == CADRE_OK && (copying->buffer = malloc(BUFFER_BYTES)) == NULL) {
        status = cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to copy a file to %s", copying->to);
    }
    if (status == CADRE_OK) {
        status = copy_all(copying, error);
    }
    if (status == CADRE_OK && !is_as_hashed(copying->hash, sha256)) {
        *ret_state = remove_damaged(copying->from, copying->in);
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "%s in this worker's cache does not have its hash: its disk damaged it, or another "
            "program changed it",
            copying->from);
    }
    sha256_close(copying->hash);
    free(copying->buffer);
    return status;
}

cadre_status content_copy(const char *from, const uint8_t sha256[SHA256_BYTES], const char *to,
    bool executable, enum content_state *ret_state, struct cadre_error *error)
{
    *ret_state = CONTENT_INTACT;
    CADRE_CLOSE_AT_EXIT int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in < 0) {
        *ret_state = errno == ENOENT ? CONTENT_NOT_CACHED : CONTENT_INTACT;
        return cadre_error_errno(error, errno, "cannot open %s", from);
    }
    CADRE_CLOSE_AT_EXIT int out =
        open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0) {
        return cadre_error_errno(error, errno, "cannot make %s", to);
    }
    struct copying copying = {.from = from, .to = to, .in = in, .out = out};
    CADRE_TRY(copy_checked(&copying, sha256, ret_state, error));
    if (fchmod(out, executable ? 0755 : 0644) != 0) {
        return cadre_error_errno(error, errno, "cannot set the mode of %s", to);
    }
    return CADRE_OK;
}

/* ---- a check in pieces ---- */

struct content_check {
    char *path;
    uint8_t sha256[SHA256_BYTES];
    int fd;
    struct sha256_stream *hash;
    uint8_t *buffer;
};

struct content_check *content_check_open(const char *path, const uint8_t sha256[SHA256_BYTES])
{
    struct content_check *check = calloc(1, sizeof *check);
    if (check == NULL) {
        return NULL;
    }
    check->fd = -1;
    memcpy(check->sha256, sha256, sizeof check->sha256);
    check->path = strdup(path);
    check->buffer = malloc(BUFFER_BYTES);
    if (check->path == NULL || check->buffer == NULL ||
        sha256_open(&check->hash, NULL) != CADRE_OK) {
        content_check_close(check);
        return NULL;
    }
    return check;
}

bool content_check_piece(struct content_check *check, uint64_t bytes, enum content_state *ret_state)
{
    *ret_state = CONTENT_INTACT;
    if (check->fd < 0) {
        check->fd = open(check->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (check->fd < 0) {
            *ret_state = CONTENT_NOT_CACHED;
            return false;
        }
        (void)posix_fadvise(check->fd, 0, 0, POSIX_FADV_DONTNEED); /* so that the next read is
                                                                    * from the disk */
    }
    ssize_t got = 1;
    for (uint64_t done = 0; done < bytes && got > 0; done += (uint64_t)(got > 0 ? got : 0)) {
        got = read_some(check->fd, check->buffer, BUFFER_BYTES);
        if (got > 0 && sha256_add(check->hash, check->buffer, (size_t)got, NULL) != CADRE_OK) {
            return false; /* it was not read */
        }
    }
    if (got > 0) {
        return true;
    }
    if (got < 0 || !is_as_hashed(check->hash, check->sha256)) { /* one that cannot be read, too */
        *ret_state = remove_damaged(check->path, check->fd);
    }
    return false;
}

void content_check_close(struct content_check *check)
{
    if (check == NULL) {
        return;
    }
    if (check->fd >= 0) {
        close(check->fd);
    }
    sha256_close(check->hash);
    free(check->buffer);
    free(check->path);
    free(check);
}
