/* SPDX-License-Identifier: Apache-2.0
 * A program that is run for what it prints, by a deadline. */
#ifndef CADRE_WORKER_PROBE_CHILD_H
#define CADRE_WORKER_PROBE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

#define CHILD_OUTPUT_BYTES_MAX ((size_t)256 * 1024)

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

/* What it printed, when it ended with status 0. DEADLINE_EXCEEDED, ABORTED (killed by a signal),
 * FAILED_PRECONDITION (another status), OUT_OF_RANGE (it printed too much): with its last words,
 * one line. It and what it started are gone afterwards, unless nobody can kill it. */
cadre_status child_run(
    const struct child *child, struct child_output *ret_output, struct cadre_error *error);

#endif
