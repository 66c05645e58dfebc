/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/keeper/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/clock.h"

/* Between passes: from one millisecond, doubled each time. */
#define PAUSE_MIN_US CADRE_US_PER_MS
#define PAUSE_MAX_US CADRE_US_PER_S

/* Real pipes, so that a program may open /dev/stderr; our end does not block. */
static int open_pipe(int *ret_read, int *ret_write, const struct launch *launch)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return errno;
    }
    *ret_read = fds[0];
    *ret_write = fds[1];
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 ||
        (launch->confinement.change_user &&
            fchown(fds[1], launch->confinement.uid, launch->confinement.gid) != 0)) {
        return errno;
    }
    return 0;
}

/* One terminal for both streams. It passes bytes on as they are, without "\r" before "\n", and is
 * not the task's controlling terminal: signals come from the keeper alone. ENXIO: there is none. */
static int open_terminal(struct task *task, struct launch *launch)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct termios settings;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    task->outputs[0] = master;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        return ENXIO;
    }
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    launch->outputs[0] = slave;
    if (slave < 0 || tcgetattr(slave, &settings) != 0) {
        return ENXIO;
    }
    settings.c_oflag &= ~(tcflag_t)OPOST;
    settings.c_lflag &= ~(tcflag_t)ECHO;
    launch->outputs[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    bool set = tcsetattr(slave, TCSANOW, &settings) == 0 && ioctl(slave, TIOCSWINSZ, &size) == 0 &&
               fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK) == 0 && launch->outputs[1] >= 0;
    if (!set || (launch->confinement.change_user &&
                    fchown(slave, launch->confinement.uid, launch->confinement.gid) != 0)) {
        return errno;
    }
    return 0;
}

/* The end of a pipe that nothing comes from: of a terminal, on which standard error is the same. */
static int open_ended_pipe(int *ret_read)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return errno;
    }
    close(fds[1]);
    *ret_read = fds[0];
    return 0;
}

static int open_outputs(struct task *task, struct launch *launch)
{
    int failed = 0;
    if (launch->terminal) {
        failed = open_terminal(task, launch);
        return failed == 0 ? open_ended_pipe(&task->outputs[1]) : failed;
    }
    for (int i = 0; i < 2 && failed == 0; i++) {
        failed = open_pipe(&task->outputs[i], &launch->outputs[i], launch);
    }
    return failed;
}

int task_start(struct task *task, struct launch *launch)
{
    *task = (struct task){.outputs = {-1, -1}, .group = launch->confinement.group};
    int failed = open_outputs(task, launch);
    if (failed == 0) {
        failed = launch_process(launch, &task->pid);
    }
    for (int i = 0; i < 2; i++) {
        if (launch->outputs[i] >= 0) {
            close(launch->outputs[i]);
        }
    }
    return failed;
}

void task_signal(const struct task *task, int signal)
{
    if (task->ended) {
        return;
    }
    kill(-task->pid, signal);
    if (signal == SIGKILL) {
        kill(task->pid, SIGKILL); /* in case it has left its own group */
    } else {
        kill(-task->pid, SIGCONT);
    }
}

void task_reap(struct task *task)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == task->pid && !task->ended) {
            task->ended = true;
            task->status = status;
            task->sweep_pause_us = PAUSE_MIN_US;
            kill(-task->pid, SIGKILL); /* the rest of its session's first group */
        }
    }
}

void task_sweep(struct task *task, uint64_t now_us)
{
    if (!task->ended || task->swept || now_us < task->sweep_at_us) {
        return;
    }
    /* A process that dies leaves its children to us: only a pass that finds none is the last. */
    bool left = strays_kill(NULL, NULL) > 0;
    task->swept = cgroup_kill(&task->group, 0) && !left;
    task->sweep_at_us = now_us + task->sweep_pause_us;
    if (task->sweep_pause_us < PAUSE_MAX_US) {
        task->sweep_pause_us *= 2;
    }
}
