/* SPDX-License-Identifier: Apache-2.0
 * The check of contents at Submit, and the collection of unused contents. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_FILE_STORE_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_FILE_STORE_H

#include "common/base/sha256.h"
#include "coordinator/daemon/base/daemon.h"

/* OK when the content of `file` is here with the right size; else FAILED_PRECONDITION that names
 * the file. */
cadre_status file_store_check(
    const struct daemon *daemon, const struct job_file *file, struct cadre_error *error);

/* Removes contents that are not referenced and were not requested in a while; seldom, because it
 * looks at every content. */
void file_store_collect_garbage(struct daemon *daemon);

#endif
