/* SPDX-License-Identifier: Apache-2.0
 * Runs a program for its output, with a deadline. */
#ifndef CADRE_WORKER_PROBE_CHILD_H
#define CADRE_WORKER_PROBE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "common/gpus/host_gpus.h"

#define CHILD_OUTPUT_BYTES_MAX ((size_t)256 * 1024)
#define CHILD_PATH_BYTES       4096

/* Which program answers: CADRE_DEVICES_PROGRAM, else cadre-devices beside the one that runs. False:
 * the path is too long, or not known. */
bool child_find_program(char ret_path[CHILD_PATH_BYTES]);

struct child {
    const char *program; /* with a slash in it; run with the one argument --json */
    char *const *environment;
    uint64_t timeout_us;
    bool change_user;
    uid_t uid;
    gid_t gid;
};

struct child_output {
    char *bytes; /* the caller's to free(), also after an error */
    size_t size;
};

/* Runs the program; its output, when it ended with status 0. DEADLINE_EXCEEDED, ABORTED (killed
 * by a signal), FAILED_PRECONDITION (another status), OUT_OF_RANGE (it printed too much): with
 * the last text line of its standard error. It and its children have ended afterwards, unless
 * the kernel does not kill them. */
cadre_status child_run(
    const struct child *child, struct child_output *ret_output, struct cadre_error *error);

/* What `cadre-devices --json` prints:
 *     {"devices": [{"name", "uuid", "bus", "memory_bytes", "compute_major", "compute_minor"}],
 *      "driver", "runtime", "nccl", "reason"}
 * and more, which is for people. */

/* Parses any bytes. INVALID_ARGUMENT: the message names the fault; then *ret_gpus is undefined.
 * Texts that are too long are cut, what is not printable in them becomes "?". */
cadre_status report_read(
    const char *bytes, size_t size, struct host_gpus *ret_gpus, struct cadre_error *error);

#endif
