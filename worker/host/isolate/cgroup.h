/* SPDX-License-Identifier: Apache-2.0
 * The control group of one task: kills all its processes, and measures what it used. A plain
 * value without pointers, so that it may cross a pipe, an exec or a restart of the daemon. */
#ifndef CADRE_WORKER_ISOLATE_CGROUP_H
#define CADRE_WORKER_ISOLATE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

/* Of a folder beneath the mount of cgroups; a longer one is refused when it is made. */
#define CGROUP_PATH_BYTES 512

enum cgroup_kind {
    CGROUP_NONE, /* this host has none that the daemon may write */
    CGROUP_V1,   /* a hierarchy per controller */
    CGROUP_V2
};

enum cgroup_controller {
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_CPU,
    CGROUP_CPUACCT,
    CGROUP_FREEZER,
    CGROUP_CONTROLLERS
};

struct task_cgroup {
    uint32_t kind; /* enum cgroup_kind */
    /* The task's folder in each hierarchy, absolute; "": none. With v2 the first alone. */
    char folders[CGROUP_CONTROLLERS][CGROUP_PATH_BYTES];
};

/* Of a task; 0: no limit. */
struct cgroup_limits {
    uint64_t memory_bytes;
    uint32_t cpu_thousandths; /* of one CPU */
    uint32_t pids;            /* processes and threads at one time */
};

struct cgroup_usage {
    uint64_t memory_peak_bytes; /* 0: not known, as all of them */
    uint64_t memory_limit_bytes;
    uint64_t oom_kills; /* processes that the kernel ended for want of memory */
    uint64_t pids_limit;
    uint64_t pids_refused; /* forks that were over the limit */
    uint64_t cpu_us;
};

/* Kills all processes in it, however they fork meanwhile, and waits up to `wait_ms` until it is
 * empty. False: a process is left (it may still be dying). True also for a group that was
 * removed. */
bool cgroup_kill(const struct task_cgroup *group, unsigned wait_ms);

/* Whether no process is in it. */
bool cgroup_is_empty(const struct task_cgroup *group);

/* Whether the process is in it; false also when that cannot be read. */
bool cgroup_has(const struct task_cgroup *group, pid_t pid);

/* Reads what it used so far; before cgroup_remove. */
void cgroup_usage(const struct task_cgroup *group, struct cgroup_usage *ret_report);

/* Removes the empty group. False: it stays. */
bool cgroup_remove(const struct task_cgroup *group);

/* The same when the daemon that made it may not start again: the job's and the daemon's folders
 * are removed, too, where they are empty. A daemon that starts again makes them again. */
bool cgroup_remove_last(const struct task_cgroup *group);

/* Writes "it used more than its 512 MiB (--memory)" and the like into `text`, when that explains
 * the end of a task better than its status; else false. `asked` has the limits of the job:
 * another limit is the worker's. `failed`: it ended by a signal or with another status than 0. */
bool cgroup_explain(const struct cgroup_usage *report, const struct cgroup_limits *asked,
    bool failed, char *text, size_t text_bytes);

#endif
