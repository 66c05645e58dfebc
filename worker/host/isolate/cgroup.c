/* SPDX-License-Identifier: Apache-2.0
 * Kills all processes of a group. v2 has a file for it; with v1 the group is frozen first, so
 * that nothing forks between the listing and the killing; without either it is killed again and
 * again. */
#include "worker/host/isolate/cgroup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/host/isolate/cgroup_tree.h"

#define PAUSE_MS 1

/* How long a group may take to be frozen; one that is busy in the kernel takes longer, and is
 * killed as it is. */
#define FREEZE_US UINT64_C(50000)

/* Calls `visit` for each process that the folder lists; false as soon as it does. */
static bool each_process(const char *folder, bool (*visit)(pid_t pid, void *user), void *user)
{
    char path[CGROUP_FILE_BYTES];
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    FILE *file = fopen(path, "re");
    bool all = true;
    int pid;
    while (file != NULL && all && fscanf(file, "%d", &pid) == 1) {
        all = visit((pid_t)pid, user);
    }
    if (file != NULL) {
        fclose(file);
    }
    return all;
}

static bool stop_at_any(pid_t pid, void *user)
{
    (void)pid;
    (void)user;
    return false;
}

static bool stop_at(pid_t pid, void *user)
{
    return pid != *(const pid_t *)user;
}

/* Never this process, and no process of another pid namespace (0). */
static bool kill_one(pid_t pid, void *user)
{
    (void)user;
    if (pid > 0 && pid != getpid()) {
        kill(pid, SIGKILL);
    }
    return true;
}

bool cgroup_is_empty(const struct task_cgroup *group)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (group->folders[i][0] != '\0' && !each_process(group->folders[i], stop_at_any, NULL)) {
            return false;
        }
    }
    return true;
}

bool cgroup_has(const struct task_cgroup *group, pid_t pid)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (group->folders[i][0] != '\0') { /* it is in all or in none */
            return !each_process(group->folders[i], stop_at, &pid);
        }
    }
    return false;
}

static void pause_once(void)
{
    (void)poll(NULL, 0, PAUSE_MS);
}

static void cgroup_freeze(const char *folder)
{
    char state[32] = "";
    uint64_t end_us = clock_monotonic_us() + FREEZE_US;
    if (cgroup_file_write(folder, "freezer.state", "FROZEN") != 0) {
        return;
    }
    while (cgroup_file_read(folder, "freezer.state", state, sizeof state) &&
           strncmp(state, "FROZEN", 6) != 0 && clock_monotonic_us() < end_us) {
        pause_once();
    }
}

static void kill_listed(const struct task_cgroup *group)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (group->folders[i][0] != '\0') {
            each_process(group->folders[i], kill_one, NULL);
        }
    }
}

static void kill_once(const struct task_cgroup *group)
{
    const char *freezer = group->folders[CGROUP_FREEZER];
    if (group->kind == CGROUP_V2 && cgroup_file_write(group->folders[0], "cgroup.kill", "1") == 0) {
        return;
    }
    if (freezer[0] == '\0') {
        kill_listed(group);
        return;
    }
    cgroup_freeze(freezer);
    kill_listed(group);
    (void)cgroup_file_write(freezer, "freezer.state", "THAWED");
}

bool cgroup_kill(const struct task_cgroup *group, unsigned wait_ms)
{
    uint64_t end_us = clock_monotonic_us() + (uint64_t)wait_ms * CADRE_US_PER_MS;
    while (!cgroup_is_empty(group)) {
        kill_once(group);
        if (clock_monotonic_us() >= end_us) {
            return cgroup_is_empty(group);
        }
        pause_once();
    }
    return true;
}

bool cgroup_remove(const struct task_cgroup *group)
{
    bool gone = true;
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (group->folders[i][0] != '\0' && rmdir(group->folders[i]) != 0 && errno != ENOENT) {
            gone = false;
        }
    }
    return gone;
}

bool cgroup_remove_last(const struct task_cgroup *group)
{
    bool gone = cgroup_remove(group);
    for (int i = 0; i < CGROUP_CONTROLLERS && gone; i++) {
        char folder[CGROUP_PATH_BYTES];
        memcpy(folder, group->folders[i], sizeof folder);
        for (int above = 0; above < 2; above++) { /* the job's, the daemon's */
            char *slash = strrchr(folder, '/');
            if (slash != NULL && slash != folder) {
                *slash = '\0';
                (void)rmdir(folder); /* fails while other groups are in it */
            }
        }
    }
    return gone;
}
