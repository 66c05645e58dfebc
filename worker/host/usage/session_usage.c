/* SPDX-License-Identifier: Apache-2.0
 * What the processes of sessions use: a task leads a session of its own. A process that has left
 * its task's session is not counted; one that ended is, once its parent has waited for it. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "worker/host/usage/usage.h"

#define STAT_BYTES 1024 /* more than a line of it has */

/* Of a process: "PID (NAME) STATE ...", see proc(5). */
struct process_use {
    pid_t session;
    uint64_t ticks;
    int64_t pages;
};

static bool parse_stat(const char *text, struct process_use *ret_use)
{
    const char *after = strrchr(text, ')'); /* the name may hold spaces and brackets, too */
    uint64_t ticks[2];
    int64_t of_children[2];
    int session;
    if (after == NULL || sscanf(after,
                             ") %*c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                             " %" SCNd64 " %" SCNd64 " %*d %*d %*d %*d %*u %*u %" SCNd64,
                             &session, &ticks[0], &ticks[1], &of_children[0], &of_children[1],
                             &ret_use->pages) != 6) {
        return false;
    }
    ret_use->session = session;
    ret_use->ticks = ticks[0] + ticks[1] + (uint64_t)of_children[0] + (uint64_t)of_children[1];
    return true;
}

/* False: the process has ended meanwhile. */
static bool read_stat(int proc_fd, const char *pid, struct process_use *ret_use)
{
    char name[32];
    char text[STAT_BYTES];
    if (snprintf(name, sizeof name, "%s/stat", pid) >= (int)sizeof name) {
        return false;
    }
    CADRE_CLOSE_AT_EXIT int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    return parse_stat(text, ret_use);
}

static int by_leader(const void *left, const void *right)
{
    pid_t a = ((const struct usage_session *)left)->leader;
    pid_t b = ((const struct usage_session *)right)->leader;
    return (a > b) - (a < b);
}

static void add_process(const struct process_use *use, struct usage_session *sessions, size_t count)
{
    const struct usage_session wanted = {.leader = use->session};
    struct usage_session *session = bsearch(&wanted, sessions, count, sizeof *sessions, by_leader);
    if (session != NULL) {
        session->processes++;
        session->cpu_us += use->ticks * (CADRE_US_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
        session->memory_bytes +=
            use->pages > 0 ? (uint64_t)use->pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    }
}

static void clear_sessions(struct usage_session *sessions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sessions[i] = (struct usage_session){.leader = sessions[i].leader};
    }
}

bool usage_read_sessions(const char *proc, struct usage_session *sessions, size_t count)
{
    qsort(sessions, count, sizeof *sessions, by_leader);
    clear_sessions(sessions, count);
    DIR *folder = opendir(proc);
    if (folder == NULL) {
        return false;
    }
    size_t processes = 0;
    const struct dirent *entry;
    while (processes <= USAGE_PROCESSES_MAX && (entry = readdir(folder)) != NULL) {
        struct process_use use;
        bool is_process = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
        processes += is_process;
        if (is_process && read_stat(dirfd(folder), entry->d_name, &use)) {
            add_process(&use, sessions, count);
        }
    }
    closedir(folder);
    if (processes > USAGE_PROCESSES_MAX) {
        clear_sessions(sessions, count);
        return false;
    }
    return true;
}
