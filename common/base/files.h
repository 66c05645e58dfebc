/* SPDX-License-Identifier: Apache-2.0
 * Files and folders: bounded reads, writes that are whole or absent, removal that never leaves
 * its tree, checks of names that come from other programs, and the lock of a state folder. All
 * paths are relative to the process's working folder unless absolute. All functions are
 * thread-safe. */
#ifndef CADRE_BASE_FILES_H
#define CADRE_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

#define FILE_NAME_PART_BYTES_MAX 255
#define FILE_NAME_BYTES_MAX      1024

/* Opens a regular file for reading, close-on-exec; *ret_size (may be NULL) is its size now. Refuses
 * anything else (a folder, a pipe, a device), and never blocks on one. The descriptor is the
 * caller's; on error *ret_fd is as it was. */
cadre_status file_open_regular(
    const char *path, int *ret_fd, uint64_t *ret_size, struct cadre_error *error);

/* Reads a whole regular file of at most `limit_bytes`; a larger one is OUT_OF_RANGE and nothing is
 * kept. *ret_bytes is the caller's to free(); a zero byte that is not counted follows the content.
 */
cadre_status file_read(const char *path, size_t limit_bytes, char **ret_bytes, size_t *ret_size,
    struct cadre_error *error);

/* The same of a file that is open at its begin, whose size was `size_now`; errors name it as
 * `path`. A file that does not grow meanwhile is never copied in memory: a secret is in one
 * buffer only. */
cadre_status file_read_fd(int fd, const char *path, uint64_t size_now, size_t limit_bytes,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error);

/* Writes all `size` bytes at the descriptor's offset, in as many calls as that takes. Errors
 * name it as `path`. After an error some of the bytes may have been written. */
cadre_status file_write_all(
    int fd, const char *path, const void *bytes, size_t size, struct cadre_error *error);

/* Replaces `path` by `size` bytes so that a reader, or a machine that lost its power, finds the
 * old content or the new one, never a mixture: a temporary file beside it, fsync, rename, fsync
 * of the folder. On error the old content remains and the temporary file is removed; when only
 * the last fsync failed, the new content is there but might not survive a loss of power. */
cadre_status file_write_atomic(
    const char *path, const void *bytes, size_t size, mode_t mode, struct cadre_error *error);

/* The last part of that for a file that is written elsewhere: `fd` is `temporary`, beside `path`,
 * and stays the caller's. On error the temporary file is removed. */
cadre_status file_replace(
    int fd, const char *temporary, const char *path, struct cadre_error *error);

/* Creates the folder and those above it; one that exists is left as it is. `mode` is for the last
 * one made, the others get 0755; the umask applies. */
cadre_status folder_make(const char *path, mode_t mode, struct cadre_error *error);

/* The same, and the names of the folders that it made survive a loss of power, and so does that of
 * the last one when it was there already (unless it is in a folder that we may not read). */
cadre_status folder_make_durable(const char *path, mode_t mode, struct cadre_error *error);

/* A descriptor to read and write the file, which is made (0600) with the folders above it (0700)
 * where it is missing; no symbolic link in its place is followed. -1 and errno: it cannot be. The
 * caller closes it. */
int file_open_made(const char *path);

/* The names in the folder survive a loss of power as they are now. */
cadre_status folder_sync(const char *folder, struct cadre_error *error);

/* Removes a file, or a folder with all it holds, however deep. Follows no symbolic link: a link
 * is removed, what it points to is not touched. OK when `path` does not exist. Goes on after a
 * failure and reports the first one. */
cadre_status tree_remove(const char *path, struct cadre_error *error);

/* Free bytes, for users other than root, on the file system of `path`. False: not known. */
bool disk_free_bytes(const char *path, uint64_t *ret_bytes);

/* Checks a relative name from another program or machine before it is joined to a folder of
 * ours. Refused: empty, absolute, a part that is empty, "." or "..", a part over 255 bytes, more
 * than 1024 in all, control bytes, or bytes that are not UTF-8. */
cadre_status file_name_check(const char *name, struct cadre_error *error);

/* Takes the lock of a file that is open for writing, for as long as this description of it stays
 * open, without waiting. False: another process, maybe of another host, has it. True as well on a
 * file system that knows no locks. */
bool file_lock_try(int fd);

/* Takes the lock file `path` (made 0600 when absent) for as long as *ret_fd stays open, and writes
 * our process id into it. FAILED_PRECONDITION names the process that holds it. Ends with the
 * process, however it ends. The file is left behind: removing it would let two processes hold two
 * locks. */
cadre_status lock_file_acquire(const char *path, int *ret_fd, struct cadre_error *error);

/* For main(): descriptors 0, 1 and 2 are taken even if the program was started without them, so
 * that nothing that is opened later becomes a standard stream by accident. */

/* To be called before anything is opened. Using a stream that was closed fails as before: with
 * EBADF. */
void standard_streams_reserve(void);

#endif
