/* SPDX-License-Identifier: Apache-2.0
 * The control group of one task: what kills it whole, and what tells how much it used. A plain
 * value without pointers, so that it may cross a pipe, an exec or a restart of the daemon. */
#ifndef CADRE_WORKER_ISOLATE_GROUP_H
#define CADRE_WORKER_ISOLATE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

/* Of a folder below the mount of cgroups; a longer one is refused when it is made. */
#define GROUP_PATH_BYTES 512

enum group_kind {
    GROUP_NONE, /* this host has none that the daemon may write */
    GROUP_V1,   /* a hierarchy per controller */
    GROUP_V2
};

enum group_controller {
    GROUP_MEMORY,
    GROUP_PIDS,
    GROUP_CPU,
    GROUP_CPUACCT,
    GROUP_FREEZER,
    GROUP_CONTROLLERS
};

struct task_group {
    uint32_t kind; /* enum group_kind */
    /* The task's folder in each hierarchy, absolute; "": not had. With v2 the first alone. */
    char folders[GROUP_CONTROLLERS][GROUP_PATH_BYTES];
};

/* Of a task; 0: no limit. */
struct group_limits {
    uint64_t memory_bytes;
    uint32_t cpu_thousandths; /* of one CPU */
    uint32_t pids;            /* processes and threads at one time */
};

struct group_report {
    uint64_t memory_peak_bytes; /* 0: not known, as all of them */
    uint64_t memory_limit_bytes;
    uint64_t oom_kills; /* processes that the kernel ended for want of memory */
    uint64_t pids_limit;
    uint64_t pids_refused; /* forks that were over the limit */
    uint64_t cpu_us;
};

/* Kills all that is in it, however it forks meanwhile, and waits up to `wait_ms` until it is empty.
 * False: something is left (it may still be dying). Content with a group that is gone. */
bool group_kill(const struct task_group *group, unsigned wait_ms);

bool group_is_empty(const struct task_group *group);

/* Whether the process is in it; false also when that cannot be told. */
bool group_has(const struct task_group *group, pid_t pid);

/* What it used so far; before group_remove. */
void group_report(const struct task_group *group, struct group_report *ret_report);

/* Removes the empty group. False: it stays. */
bool group_remove(const struct task_group *group);

/* The same when the daemon that made it may be gone for good: its empty job's and daemon's folders
 * go too. A daemon that comes back makes what it needs again. */
bool group_remove_last(const struct task_group *group);

/* "it used more than its 512 MiB (--memory)" and the like into `text`, when that says more of the
 * end of a task than its status does; else false. `asked` is what the job named: another limit is
 * the worker's. `failed`: it ended by a signal or with another status than 0. */
bool group_explain(const struct group_report *report, const struct group_limits *asked, bool failed,
    char *text, size_t text_bytes);

#endif
