/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_daemon/vanishing_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static _Atomic(const char *) vanishing; /* NULL: none */
static atomic_uint opens_left;

void vanish_at_open(const char *path, unsigned nth)
{
    opens_left = nth;
    vanishing = path;
}

/* In place of the C library's. */
int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    const char *file = vanishing;
    if (file != NULL && strcmp(path, file) == 0 && atomic_fetch_sub(&opens_left, 1) == 1) {
        vanishing = NULL;
        unlink(path);
    }
    return openat(AT_FDCWD, path, flags, mode);
}
