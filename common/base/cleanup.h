/* SPDX-License-Identifier: Apache-2.0
 * Scope-bound release of locals; not for libuv handles or gRPC calls, which end in a callback. */
#ifndef CADRE_BASE_CLEANUP_H
#define CADRE_BASE_CLEANUP_H

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#define CADRE_CLEANUP(function) __attribute__((cleanup(function)))

static inline void cadre_cleanup_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

static inline void cadre_cleanup_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

static inline void cadre_cleanup_dir(DIR **dir)
{
    if (*dir != NULL) {
        closedir(*dir);
    }
}

#define CADRE_FREE_AT_EXIT  CADRE_CLEANUP(cadre_cleanup_free)
#define CADRE_CLOSE_AT_EXIT CADRE_CLEANUP(cadre_cleanup_fd)

#endif
