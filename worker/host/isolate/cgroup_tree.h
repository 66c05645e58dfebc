/* SPDX-License-Identifier: Apache-2.0
 * Where on this host the groups of tasks go, found once, and their making:
 *     v2  <own>/cadre-daemon     the daemon itself: a group with processes has no controllers below
 *         <own>/<name>/job-7/task-0.5
 *     v1  the same <name>/job-7/task-0.5 below the daemon's own folder in each hierarchy
 */
#ifndef CADRE_WORKER_ISOLATE_CGROUP_TREE_H
#define CADRE_WORKER_ISOLATE_CGROUP_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/ids.h"
#include "worker/host/isolate/cgroup.h"

#define CGROUP_REASON_BYTES 256

struct cgroup_tree {
    enum cgroup_kind kind;
    char folders[CGROUP_CONTROLLERS][CGROUP_PATH_BYTES]; /* <name>; as task_group's */
    bool has[CGROUP_CONTROLLERS];                        /* the controllers that can be used */
    char why[CGROUP_REASON_BYTES];                       /* why not all of it; "" */
};

struct cgroup_tree_options {
    const char *mounts;     /* /proc/self/mountinfo */
    const char *membership; /* /proc/self/cgroup */
    const char *name;
    const char *parent; /* NULL: the daemon's own */
};

/* Makes <name>, and with v2 moves this process into its leaf. Without a hierarchy the kind is
 * CGROUP_NONE with its reason; that is no error. */
void cgroup_tree_open(const struct cgroup_tree_options *options, struct cgroup_tree *ret_tree);

/* v2: enables each controller by itself, so that a refused one does not affect the others.
 * `ret_has`: what groups in it can limit; 0, or errno of the first that was refused. */
int cgroup_tree_enable(const char *folder, bool ret_has[CGROUP_CONTROLLERS]);

/* Makes the task's group with its limits; what the tree does not have is left out. */
cadre_status cgroup_tree_make(const struct cgroup_tree *tree, struct task_ref task,
    const struct cgroup_limits *limits, struct task_cgroup *ret_group, struct cadre_error *error);

/* Removes the empty group of a job. */
void cgroup_tree_remove_job(const struct cgroup_tree *tree, struct job_id job);

/* Calls `visit` for each task's group that exists; it may remove the group. */
void cgroup_tree_each(const struct cgroup_tree *tree,
    void (*visit)(struct task_ref task, const struct task_cgroup *group, void *user), void *user);

/* The small files of a control group. */

#define CGROUP_FILE_BYTES 512 /* of a path: a folder's, and the longest name of a file in it */

/* Writes a file of a group. 0 or an errno. */
int cgroup_file_write(const char *folder, const char *name, const char *text);
/* The same for a number. */
int cgroup_file_write_number(const char *folder, const char *name, uint64_t number);

/* Reads the first `text_bytes` - 1 bytes, terminated; false: there is no such file. */
bool cgroup_file_read(const char *folder, const char *name, char *text, size_t text_bytes);

/* The number that the file holds, or, with a key, the one behind it ("oom_kill 3"). 0 when it is
 * not there, or no number ("max"). */
uint64_t cgroup_file_number(const char *folder, const char *name, const char *key);

/* Whether the group has this file. */
bool cgroup_file_exists(const char *folder, const char *name);

#endif
