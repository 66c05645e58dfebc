/* SPDX-License-Identifier: Apache-2.0
 * Whether the kernel of this host would run a file. exec itself does not report that: what it
 * cannot run, the C library hands to the shell, which then prints errors about the file's bytes. */
#ifndef CADRE_WORKER_AGENT_EXECUTABLE_H
#define CADRE_WORKER_AGENT_EXECUTABLE_H

#include "common/base/error.h"

/* Checks the first bytes of `program` (relative to `folder` unless absolute): a script has to
 * begin with "#!", a program has to be of this host's architecture. INVALID_ARGUMENT, about
 * `name`, else. OK when the file cannot be read: then starting it fails with the reason. */
cadre_status executable_check(
    const char *folder, const char *program, const char *name, struct cadre_error *error);

#endif
