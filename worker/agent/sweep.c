/* SPDX-License-Identifier: Apache-2.0
 * Processes that a task left behind in a session of their own. As a child subreaper we become their
 * parent; their session, or the variable CADRE_TASK in their environment, says whose they were.
 * What belongs to no task that runs is killed, in passes: who dies leaves us its own children. */
#include <dirent.h>
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
#include "worker/agent/process_variable.h"

/* Between passes: from one millisecond, doubled each time. */
#define PAUSE_MS_MAX 1024

struct process_stat {
    char state;
    int parent;
    int session;
};

/* From /proc/<pid>/stat; false when it is gone. */
static bool read_stat(pid_t pid, struct process_stat *ret_stat)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    const char *after = strrchr(text, ')'); /* the name may hold spaces and brackets, too */
    int group;
    return after != NULL && sscanf(after, ") %c %d %d %d", &ret_stat->state, &ret_stat->parent,
                                &group, &ret_stat->session) == 4;
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

static bool any_task_runs(const struct agent *agent)
{
    for (const struct agent_task *task = agent->tasks; task != NULL; task = task->next) {
        if (task->has_process) {
            return true;
        }
    }
    return false;
}

/* The task that the process says it belongs to; false: none. */
static bool read_name(pid_t pid, struct task_ref *ret_ref)
{
    char value[96];
    return process_variable(pid, ENVIRONMENT_TASK, value, sizeof value) &&
           sscanf(value, "%" SCNu64 ".%" SCNu32 ".%" SCNu64, &ret_ref->job.n, &ret_ref->slot,
               &ret_ref->incarnation) == 3;
}

/* One whose owner cannot be told is spared while any task runs that it might belong to. */
static bool is_wanted(struct agent *agent, pid_t pid, const struct process_stat *stat)
{
    struct task_ref ref = {0};
    if (!any_task_runs(agent)) {
        return false;
    }
    if (is_process_of_task(agent, (pid_t)stat->session)) {
        return true; /* a task leads its session */
    }
    if (!read_name(pid, &ref)) {
        return true;
    }
    const struct agent_task *task = agent_task_find(agent, ref);
    return task != NULL && task->has_process;
}

/* How many had to be killed: their children, if any, are for the next pass. */
static unsigned sweep_pass(struct agent *agent)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    int self = (int)getpid();
    unsigned killed = 0;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct process_stat stat;
        if (pid <= 0 || !read_stat(pid, &stat) || stat.parent != self ||
            is_process_of_task(agent, pid)) {
            continue;
        }
        if (stat.state == 'Z') {
            waitpid(pid, NULL, WNOHANG);
        } else if (!is_wanted(agent, pid, &stat)) {
            kill(pid, SIGKILL);
            killed++;
        }
    }
    return killed;
}

static void on_pause(uv_timer_t *timer);

/* False: nothing is left to wait for. */
static bool go_on(struct agent *agent)
{
    bool tired = agent->closing && agent->sweep_pause_ms > PAUSE_MS_MAX;
    if (sweep_pass(agent) == 0 || tired) {
        return false;
    }
    uv_timer_start(&agent->sweep, on_pause, agent->sweep_pause_ms, 0);
    if (agent->sweep_pause_ms <= PAUSE_MS_MAX) {
        agent->sweep_pause_ms *= 2;
    }
    return true;
}

static void on_pause(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    if (!go_on(agent)) {
        agent->sweeping = false;
        agent_swept(agent);
    }
}

void sweep_strays(struct agent *agent)
{
    agent->sweep_pause_ms = 1;
    agent->sweeping = go_on(agent);
}

void sweep_dead(struct agent *agent)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
           !is_process_of_task(agent, info.si_pid)) {
        waitpid(info.si_pid, NULL, WNOHANG);
        info.si_pid = 0;
    }
}
