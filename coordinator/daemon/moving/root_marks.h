/* SPDX-License-Identifier: Apache-2.0
 * Two small files beside blobs and jobs, which say that contents lie elsewhere: ROOT/moving while
 * they are being copied there from the root that it names, ROOT/moved once they were copied from
 * there to the one that it names, where they count from then on. A root is a folder, or a path of
 * an object store. The caller waits. */
#ifndef CADRE_COORDINATOR_DAEMON_MOVING_ROOT_MARKS_H
#define CADRE_COORDINATOR_DAEMON_MOVING_ROOT_MARKS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

#define ROOT_MARK_MOVING "moving"
#define ROOT_MARK_MOVED  "moved"
#define ROOT_TEXT_BYTES  ((size_t)4096) /* with the terminator */

/* Two names of one root: slashes at the end do not count. */
bool root_is_same(const char *a, const char *b);

/* *ret_text is "" if there is no such file. */
cadre_status root_mark_read(
    const char *root, const char *name, char ret_text[ROOT_TEXT_BYTES], struct cadre_error *error);
/* Durably. */
cadre_status root_mark_write(
    const char *root, const char *name, const char *text, struct cadre_error *error);
cadre_status root_mark_remove(const char *root, const char *name, struct cadre_error *error);

/* Whether a coordinator may work with the contents there: FAILED_PRECONDITION says what to
 * do. */
cadre_status root_marks_check(const char *root, struct cadre_error *error);

#endif
