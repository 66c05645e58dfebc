/* SPDX-License-Identifier: Apache-2.0
 * Processes that a task left behind in a session of their own. As a child subreaper we become their
 * parent; the variable CADRE_TASK in their environment says whose they were. What belongs to no
 * task that runs is killed. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/agent/agent_state.h"
#include "worker/agent/environment.h"

#define ENVIRON_BYTES_MAX ((size_t)256 * 1024)
#define PASSES_MAX        64 /* against one that forks faster than it is killed */

/* The parent of a process from /proc/<pid>/stat; 0 when it is gone. */
static pid_t parent_of(pid_t pid)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    if (size <= 0) {
        return 0;
    }
    text[size] = '\0';
    const char *after =
        strrchr(text, ')'); /* the name may hold anything, also spaces and brackets */
    int parent = 0;
    char state = 0;
    return after != NULL && sscanf(after, ") %c %d", &state, &parent) == 2 ? (pid_t)parent : 0;
}

static bool is_process_of_task(const struct agent *agent, pid_t pid)
{
    for (const struct agent_task *task = agent->tasks; task != NULL; task = task->next) {
        if (task->has_process && task->pid == pid) {
            return true;
        }
    }
    return false;
}

/* Whether what that environment belongs to may go on. One that names no task might be any
 * running one's. */
static bool is_of_live_task(const struct agent *agent, const char *text, size_t size)
{
    const char *end = text + size;
    for (const char *item = text; item < end; item += strlen(item) + 1) {
        struct task_ref ref = {0};
        if (sscanf(item, ENVIRONMENT_TASK "=%" SCNu64 ".%" SCNu32 ".%" SCNu64, &ref.job.n,
                &ref.slot, &ref.incarnation) != 3) {
            continue;
        }
        for (const struct agent_task *task = agent->tasks; task != NULL; task = task->next) {
            if (task_ref_equal(task->ref, ref)) {
                return task->has_process;
            }
        }
        return false;
    }
    for (const struct agent_task *task = agent->tasks; task != NULL; task = task->next) {
        if (task->has_process) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct agent *agent, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    CADRE_FREE_AT_EXIT char *text = malloc(ENVIRON_BYTES_MAX + 1);
    if (fd < 0 || text == NULL) {
        return false;
    }
    size_t size = 0;
    ssize_t got;
    while (
        size < ENVIRON_BYTES_MAX && (got = read(fd, text + size, ENVIRON_BYTES_MAX - size)) > 0) {
        size += (size_t)got;
    }
    text[size] = '\0';
    return is_of_live_task(agent, text, size);
}

/* Kills our children that are nobody's; how many there were. */
static unsigned sweep_once(const struct agent *agent)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    pid_t self = getpid();
    unsigned killed = 0;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || parent_of(pid) != self || is_process_of_task(agent, pid)) {
            continue;
        }
        if (!is_wanted(agent, pid)) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0); /* killed: comes at once */
            killed++;
        }
    }
    return killed;
}

/* The children of a stray that was killed are our children now. */
void sweep_strays(struct agent *agent)
{
    for (unsigned pass = 0; pass < PASSES_MAX && sweep_once(agent) > 0; pass++) {
    }
}
