/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/isolate/cgroup_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

static int open_file(const char *folder, const char *name, int flags)
{
    char path[CGROUP_FILE_BYTES];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC);
}

int cgroup_file_write(const char *folder, const char *name, const char *text)
{
    CADRE_CLOSE_AT_EXIT int fd = open_file(folder, name, O_WRONLY | O_TRUNC);
    if (fd < 0) {
        return errno;
    }
    size_t size = strlen(text);
    ssize_t written = write(fd, text, size); /* the kernel takes it whole or not at all */
    return written == (ssize_t)size ? 0 : written < 0 ? errno : EIO;
}

int cgroup_file_write_number(const char *folder, const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return cgroup_file_write(folder, name, text);
}

bool cgroup_file_read(const char *folder, const char *name, char *text, size_t text_bytes)
{
    CADRE_CLOSE_AT_EXIT int fd = open_file(folder, name, O_RDONLY);
    size_t size = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && size < text_bytes - 1) {
        got = read(fd, text + size, text_bytes - 1 - size);
        size += got > 0 ? (size_t)got : 0;
    }
    text[size] = '\0';
    return got >= 0;
}

/* Behind the key at the beginning of a line; NULL: there is none. */
static const char *find_key(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *text_line = text; text_line != NULL;) {
        if (strncmp(text_line, key, length) == 0 && text_line[length] == ' ') {
            return text_line + length + 1;
        }
        text_line = strchr(text_line, '\n');
        text_line = text_line != NULL ? text_line + 1 : NULL;
    }
    return NULL;
}

uint64_t cgroup_file_number(const char *folder, const char *name, const char *key)
{
    char text[4096];
    if (folder[0] == '\0' || !cgroup_file_read(folder, name, text, sizeof text)) {
        return 0;
    }
    const char *number = key != NULL ? find_key(text, key) : text;
    return number != NULL ? strtoull(number, NULL, 10) : 0;
}

bool cgroup_file_exists(const char *folder, const char *name)
{
    char path[CGROUP_FILE_BYTES];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    return size > 0 && (size_t)size < sizeof path && access(path, F_OK) == 0;
}
