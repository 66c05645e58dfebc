/* SPDX-License-Identifier: Apache-2.0
 * C buffers what is printed to a pipe until 4 KiB have come, so the output of a task would be seen
 * minutes after, and lost when the task is killed. program.c calls this in cadre_init. */
#include "worker/library/runtime/program/standard_output.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>

/* glibc gives a stream its buffer with the first byte that is printed: none, and one of the
 * default size in which text waits, are its own choice. A program whose buffer is empty has called
 * setvbuf or fflush, and takes care of it itself. */
static bool is_default(size_t default_bytes)
{
    if (__flbf(stdout)) {
        return false;
    }
    size_t bytes = __fbufsize(stdout);
    return bytes == 0 || (bytes == default_bytes && __fpending(stdout) > 0);
}

void standard_output_begin(void)
{
    struct stat status;
    if (fstat(fileno(stdout), &status) != 0 ||
        !(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))) {
        return;
    }
    if (getenv("_STDBUF_O") == NULL && is_default((size_t)status.st_blksize)) {
        fflush(stdout);
        setvbuf(stdout, NULL, _IOLBF, 0);
    }
}
