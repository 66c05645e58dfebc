/* SPDX-License-Identifier: Apache-2.0
 * The trace that a recorder writes and disk.py reads: records one after another, of all processes,
 * each appended by one write when its call has returned (RECORD_OUTPUT: before it is made). */
#ifndef CADRE_TESTS_POWERCUT_TRACE_H
#define CADRE_TESTS_POWERCUT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum record_kind {
    RECORD_CREATE = 1,  /* path: a new file; a: mode */
    RECORD_FOLDER = 2,  /* path: a new folder */
    RECORD_SYMLINK = 3, /* path; data: its target */
    RECORD_LINK = 4,    /* path: the new name; data: the old one */
    RECORD_RENAME = 5,  /* path: the new name; data: the old one */
    RECORD_UNLINK = 6,  /* path: a file or an empty folder */
    RECORD_WRITE = 7,   /* a: offset; data */
    RECORD_SIZE = 8,    /* a: the new size */
    RECORD_HOLE = 9,    /* a: offset, b: length; the size stays */
    RECORD_SYNC = 10,   /* of the file or folder; path, for people */
    RECORD_SYNC_ALL = 11,
    RECORD_OUTPUT = 12,  /* output is about to leave the process; data: its beginning, if known */
    RECORD_MARK = 13,    /* the test's own: data */
    RECORD_UNKNOWN = 14, /* something that cannot be replayed, described in data */
    RECORD_MODE = 15,    /* a: the new mode */
};

/* Then the path, then the data. Paths are below the folder that is recorded. */
struct __attribute__((packed)) record_head {
    uint32_t path_bytes;
    uint32_t data_bytes;
    uint32_t pid;
    uint32_t kind;
    uint64_t inode;
    uint64_t a;
    uint64_t b;
};

/* Below the folder that is recorded: the rest of its path, which points into `whole` (PATH_MAX
 * bytes). NULL: it is not, or nothing is recorded. errno stays. The last part may be missing. */
const char *trace_below(int folder_fd, const char *path, char *whole);

/* The same of an open file; NULL also for what is no regular file or folder. */
const char *trace_fd_below(int fd, char *whole, uint64_t *ret_inode);

/* Whether what is written to it leaves the process: a socket or a pipe, and something is recorded.
 */
bool trace_is_output(int fd);

/* Between the two no other thread's call is made or recorded. The same thread may lock again: a
 * signal handler writes to a pipe. Meanwhile the process has the trace file's lock (flock), shared:
 * who takes it alone can kill the process with each call recorded. errno stays. */
void trace_lock(void);
void trace_unlock(void);

void trace_put(enum record_kind kind, uint64_t inode, uint64_t a, uint64_t b, const char *path,
    const void *data, size_t data_bytes);

/* What lies there now, as RECORD_WRITE. */
void trace_put_content(int fd, uint64_t inode, off_t offset, size_t bytes);

#endif
