/* SPDX-License-Identifier: Apache-2.0
 * What tasks and the host use, read from the kernel's files: of a control group, of the processes
 * of a session, of the host. A value that a file does not tell is not known, which is not 0. In any
 * thread; nothing is kept between two calls. */
#ifndef CADRE_WORKER_USAGE_H
#define CADRE_WORKER_USAGE_H

#include <sys/types.h>

#include "common/model/job.h"
#include "worker/host/isolate/cgroup.h"

/* Entries of /proc that one pass reads; a host with more has no values by session. */
#define USAGE_PROCESSES_MAX 32768

/* Read at one time. Of what has a flag, the number is 0 while it is false. */
struct usage_reading {
    uint64_t at_us; /* monotonic; 0: nothing was read yet */
    bool has_cpu;
    bool has_memory;
    bool has_memory_peak;
    uint64_t cpu_us; /* since it began */
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes;
};

/* Reads a task's group; values that its kind or this kernel does not have stay unknown. */
void usage_read_group(const struct task_cgroup *group, struct usage_reading *reading);

/* The processes of a session, together. */
struct usage_session {
    pid_t leader;
    uint32_t processes; /* that were found */
    uint64_t cpu_us;    /* of those and of children that they have waited for */
    uint64_t memory_bytes;
};

/* Reads all processes in `proc` ("/proc") once, and adds each to its session. `sessions` is
 * sorted by this. False: `proc` cannot be read, or has too many entries; then all are empty. */
bool usage_read_sessions(const char *proc, struct usage_session *sessions, size_t count);

/* Reads `proc`/stat and `proc`/meminfo: the time in which CPUs were busy, memory that is not
 * available to programs. */
void usage_read_host(const char *proc, struct usage_reading *reading);

/* What was used between the two, and is now; CPU time that fell counts as none. */
struct resource_usage usage_between(
    const struct usage_reading *before, const struct usage_reading *now);

#endif
