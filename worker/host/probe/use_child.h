/* SPDX-License-Identifier: Apache-2.0
 * The use of GPUs, by a child that lasts: `cadre-devices --use NAME...`. Each text line that it
 * gets is answered by one: what each GPU does, in the order of the names. It ends when its
 * standard input does. */
#ifndef CADRE_WORKER_PROBE_USE_CHILD_H
#define CADRE_WORKER_PROBE_USE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "common/gpus/host_gpus.h"

/* Of one GPU. A value whose flag is false is 0, and not known. */
struct gpu_sample {
    bool has_percent;
    bool has_memory;
    uint32_t percent;      /* of the time in which it ran a kernel, of whatever program */
    uint64_t memory_bytes; /* used, by whatever program and by its driver */
};

/* A GPU's is "97,75161927680" at most, and a separator. */
#define USE_ANSWER_BYTES_MAX ((size_t)LIMIT_GPUS_PER_WORKER * 24)

/* Parses an answer without its newline, any bytes: "PERCENT,BYTES" of each of `count` GPUs, with
 * one space between two, and "-" for what is not known. INVALID_ARGUMENT: it is anything else; then
 * ret_samples is undefined. */
cadre_status use_answer_read(const char *bytes, size_t size, struct gpu_sample ret_samples[],
    uint32_t count, struct cadre_error *error);

struct use_child_setup {
    const struct host_gpus *gpus; /* of which the usable ones are asked for */
    char *const *environment;
    bool change_user; /* it runs as tasks do */
    uid_t uid;
    gid_t gid;
};

struct use_child {
    pid_t pid;
    int process; /* a pidfd */
    int socket;  /* its standard input and output; does not block */
};

/* Starts one; both descriptors are the caller's to close. It leads a session of its own, and is
 * killed when the calling thread ends. An error names the program. */
cadre_status use_child_start(
    const struct use_child_setup *setup, struct use_child *ret_child, struct cadre_error *error);

#endif
