/* SPDX-License-Identifier: Apache-2.0
 * Finds the file of a program's name as a shell does. */
#ifndef CADRE_WORKER_LOCAL_PROGRAM_PATH_H
#define CADRE_WORKER_LOCAL_PROGRAM_PATH_H

#include "common/base/error.h"

/* With a slash: that path; else the first executable of that name in PATH. *ret_path is absolute
 * and the caller's to free. NOT_FOUND; PERMISSION_DENIED when it is not executable;
 * INVALID_ARGUMENT when it is no regular file. */
cadre_status program_path(const char *program, char **ret_path, struct cadre_error *error);

#endif
