/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cadre_error error;

struct isolation *driver_open(const struct cgroup_limits *ceiling, bool groups)
{
    if (geteuid() != 0) {
        test_skip("not root: tasks of another user cannot be started");
    }
    char name[32];
    snprintf(name, sizeof name, "cadre-test-%d", (int)getpid());
    const struct isolation_options options = {.uid_first = DRIVER_UID_FIRST,
        .uid_last = DRIVER_UID_LAST,
        .claim_folder = "/run/cadre-test-uids",
        .task_uid = 65534,
        .task_gid = 65534,
        .name = name,
        .ceiling = *ceiling};
    struct isolation *isolation;
    assert_ok(isolation_open(&options, &isolation, &error), &error);
    struct task_confinement probe;
    const struct isolation_user user = {.change = true, .uid = 65534, .gid = 65534};
    const struct cgroup_limits all = {.memory_bytes = 64 << 20, .cpu_thousandths = 500, .pids = 50};
    if (groups && isolation_prepare_task(isolation, (struct task_ref){.job = {1}}, &user, &all,
                      &probe, &error) != CADRE_OK) {
        isolation_close(isolation);
        test_skip(error.text);
    }
    if (groups) {
        assert_true(cgroup_remove(&probe.group));
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return isolation;
}

void driver_start(struct isolation *isolation, uint64_t job, uint32_t slot,
    const struct cgroup_limits *limits, int (*body)(void *data), void *data,
    struct driven *ret_task)
{
    int fds[2];
    *ret_task = (struct driven){.ref = {.job = {job}, .slot = slot, .incarnation = 1}};
    assert_ok(
        isolation_enter_job(isolation, ret_task->ref.job, false, &ret_task->user, &error), &error);
    assert_ok(isolation_prepare_task(isolation, ret_task->ref, &ret_task->user, limits,
                  &ret_task->confinement, &error),
        &error);
    assert_int_equal(pipe(fds), 0);
    ret_task->pid = fork();
    if (ret_task->pid == 0) {
        const char *step = "";
        setsid();
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        if (!confine_self(&ret_task->confinement, &step)) {
            dprintf(2, "cannot %s: errno %d\n", step, errno);
            _exit(125);
        }
        _exit(body(data));
    }
    close(fds[1]);
    ret_task->output_fd = fds[0];
}

char driver_receive(const struct driven *task)
{
    char byte = 0;
    assert_int_equal(read(task->output_fd, &byte, 1), 1);
    return byte;
}

int driver_wait(const struct driven *task)
{
    int status = 0;
    assert_int_equal(waitpid(task->pid, &status, 0), task->pid);
    return status;
}

void driver_end(struct isolation *isolation, struct driven *task, struct cgroup_usage *ret_report)
{
    struct cgroup_usage report;
    assert_true(cgroup_kill(&task->confinement.group, 10000));
    cgroup_usage(&task->confinement.group, ret_report != NULL ? ret_report : &report);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    assert_true(cgroup_remove(&task->confinement.group));
    if (isolation_leave_job(isolation, task->ref.job, &task->user)) {
        isolation_empty(isolation, task->user.uid);
        assert_true(isolation_emptied(isolation, &task->user));
    }
    close(task->output_fd);
}
