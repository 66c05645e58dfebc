/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/keeper/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- in the child: it is a copy of one thread, so only what is safe in a signal handler ---- */

/* Resets all signals: handlers of ours must not run in the child, and ignored signals must not
 * stay ignored. By the system call: the library's function leaves out the two that the library
 * keeps for itself, which posix_spawn() made us ignore. */
static void reset_signals(void)
{
    const unsigned long usual[8] = {0}; /* the kernel's struct sigaction: SIG_DFL, no flags */
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        syscall(SYS_rt_sigaction, number, usual, NULL, NSIG / 8); /* some cannot be changed */
    }
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* Sets descriptors 0 to 2; sources are copied to higher numbers first. The copies close with the
 * exec. */
static bool set_streams(const struct launch *launch)
{
    int sources[3] = {launch->input != 0 ? launch->input : open("/dev/null", O_RDONLY | O_CLOEXEC),
        launch->outputs[0], launch->outputs[1]};
    for (int i = 0; i < 3; i++) {
        sources[i] = sources[i] < 0 ? -1 : fcntl(sources[i], F_DUPFD_CLOEXEC, 3);
        if (sources[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(sources[i], i) < 0) {
            return false;
        }
    }
    return true;
}

/* After the change of users, which would undo it. If the parent died before it took effect,
 * getppid() differs. */
static bool die_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        return false;
    }
    if (getppid() != parent) {
        _exit(1);
    }
    return true;
}

static bool keep_inherited(int fd)
{
    return fd < 0 || fcntl(fd, F_SETFD, 0) == 0;
}

_Noreturn static void be_child(const struct launch *launch, pid_t parent, int report_fd)
{
    bool begun = setsid() >= 0 && set_streams(launch);
    bool entered = begun && chdir(launch->folder) == 0;
    if (entered && keep_inherited(launch->inherited) && confine_self(&launch->confinement, NULL) &&
        die_with(parent)) {
        reset_signals();
        execve(launch->program, launch->argv, launch->environment);
    }
    int errnum = begun && !entered ? -errno : errno;
    (void)!write(report_fd, &errnum, sizeof errnum);
    _exit(1);
}

/* ---- in the parent ---- */

/* Reads the child's errno; 0 when the exec closed the other end. */
static int read_report(int fd)
{
    int errnum = 0;
    ssize_t got;
    do {
        got = read(fd, &errnum, sizeof errnum);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof errnum ? errnum : 0;
}

static pid_t fork_without_signals(void)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    int errnum = errno;
    if (pid != 0) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = errnum;
    return pid;
}

int launch_process(const struct launch *launch, pid_t *ret_pid)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t parent = getpid();
    pid_t pid = fork_without_signals();
    if (pid == 0) {
        be_child(launch, parent, report[1]);
    }
    int errnum = pid < 0 ? errno : 0;
    close(report[1]);
    if (pid > 0) {
        errnum = read_report(report[0]);
    }
    close(report[0]);
    if (pid > 0 && errnum != 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    *ret_pid = pid;
    return errnum;
}
