/* SPDX-License-Identifier: Apache-2.0
 * The memory of parameter servers' variables, which is the daemon's, so that the next attempt of
 * a server that died on this host finds it again. It is passed on from one attempt to the next
 * only: when the slot ran elsewhere meanwhile, the memory here is out of date. */
#include "worker/host/agent/ps_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/cleanup.h"

struct ps_memory {
    struct ps_memory *next; /* older ones */
    struct task_ref last;   /* the newest attempt that it is for */
    int fd;                 /* -1: no attempt was started yet */
};

bool ps_memory_is_for(const struct agent_start *start)
{
    return ps_job_role(&start->spec.ps_job, start->task.slot) == ROLE_SERVER;
}

static struct ps_memory **ps_memory_find(struct agent *agent, struct task_ref ref)
{
    struct ps_memory **at = &agent->memories;
    while (*at != NULL && ((*at)->last.job.n != ref.job.n || (*at)->last.slot != ref.slot)) {
        at = &(*at)->next;
    }
    return at;
}

static void ps_memory_drop(struct ps_memory **at)
{
    struct ps_memory *memory = *at;
    *at = memory->next;
    if (memory->fd >= 0) {
        close(memory->fd);
    }
    free(memory);
}

/* When there are too many, frees the oldest of a job without a task here: the coordinator has
 * sent nothing about those jobs for long. */
static void make_room(struct agent *agent)
{
    uint32_t count = 0;
    struct ps_memory **oldest = NULL;
    for (struct ps_memory **at = &agent->memories; *at != NULL; at = &(*at)->next) {
        oldest = agent_task_find(agent, (*at)->last) == NULL ? at : oldest;
        count++;
    }
    if (count >= AGENT_ENTRIES(agent->setup.core.slots) && oldest != NULL) {
        ps_memory_drop(oldest);
    }
}

bool ps_memory_reserve(struct agent *agent, const struct agent_start *start)
{
    struct ps_memory **at = ps_memory_find(agent, start->task);
    if (*at != NULL && start->predecessor != 0 && (*at)->last.incarnation == start->predecessor) {
        (*at)->last = start->task;
        return true;
    }
    if (*at != NULL) {
        ps_memory_drop(at);
    }
    make_room(agent);
    struct ps_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return false;
    }
    *memory = (struct ps_memory){.next = agent->memories, .last = start->task, .fd = -1};
    agent->memories = memory;
    return true;
}

/* A memfd with a number above those of a task's standard streams. */
static int new_memory(void)
{
    CADRE_CLOSE_AT_EXIT int made = memfd_create("cadre-server", MFD_CLOEXEC);
    return made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

cadre_status ps_memory_open(
    struct agent *agent, struct task_ref task, int *ret_fd, struct cadre_error *error)
{
    struct ps_memory *memory = *ps_memory_find(agent, task);
    if (memory == NULL || memory->last.incarnation != task.incarnation) {
        return cadre_error_set(
            error, CADRE_ABORTED, "the memory of this server was freed before it was started");
    }
    if (memory->fd < 0) {
        memory->fd = new_memory();
    }
    if (memory->fd < 0) {
        return cadre_error_errno(error, errno, "no memory for a parameter server");
    }
    *ret_fd = memory->fd;
    return CADRE_OK;
}

cadre_status ps_memory_adopt(
    struct agent *agent, struct task_ref task, int *fd, struct cadre_error *error)
{
    struct ps_memory **at = ps_memory_find(agent, task);
    if (*at != NULL && (*at)->last.incarnation > task.incarnation) {
        return CADRE_OK; /* the slot's next attempt has it already */
    }
    if (*at != NULL) {
        ps_memory_drop(at);
    }
    struct ps_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for another parameter server");
    }
    *memory = (struct ps_memory){.next = agent->memories, .last = task, .fd = *fd};
    agent->memories = memory;
    *fd = -1;
    return CADRE_OK;
}

void ps_memory_forget(struct agent *agent, struct job_id job)
{
    for (struct ps_memory **at = &agent->memories; *at != NULL;) {
        if ((*at)->last.job.n == job.n) {
            ps_memory_drop(at);
        } else {
            at = &(*at)->next;
        }
    }
}

void ps_memory_close(struct agent *agent)
{
    while (agent->memories != NULL) {
        ps_memory_drop(&agent->memories);
    }
}

size_t ps_memory_jobs(const struct agent *agent, struct job_id *ret_jobs, size_t room)
{
    size_t count = 0;
    for (const struct ps_memory *at = agent->memories; at != NULL && count < room; at = at->next) {
        size_t i = 0;
        while (i < count && ret_jobs[i].n != at->last.job.n) {
            i++;
        }
        if (i == count) {
            ret_jobs[count++] = at->last.job;
        }
    }
    return count;
}
