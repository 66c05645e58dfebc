/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/local/folders.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/files.h"
#include "worker/host/agent/orphans.h"

/* The one byte of an orderly end. */
#define ALL_IS_WELL 'w'

/* ---- the guard ---- */

/* Closes all descriptors, so that no reader waits for the guard's end, and leaves the session and
 * the process group, so that signals to these do not end it. */
static bool detach_from_session(int *fd)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], &ignore, NULL);
    }
    (void)prctl(PR_SET_NAME, "cadre-guard", 0, 0, 0);
    if (setsid() < 0 || chdir("/") != 0 || dup2(*fd, STDIN_FILENO) < 0) {
        return false;
    }
    *fd = STDIN_FILENO;
    return close_range(STDIN_FILENO + 1, ~0U, 0) == 0;
}

/* Waits for the creator's byte (true) or its death (false). */
static bool wait_for_creator(int fd)
{
    char byte = 0;
    ssize_t got;
    do {
        got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1 && byte == ALL_IS_WELL;
}

_Noreturn static void be_guard(int fd, const char *folder)
{
    if (detach_from_session(&fd) && !wait_for_creator(fd)) {
        orphans_kill(folder, NULL);
        (void)tree_remove(folder, NULL);
    }
    _exit(0);
}

/* ---- its creator ---- */

/* Forks twice, so that the guard is no child of this process. */
static int guard_start(const char *folder, const int fds[2])
{
    pid_t between = fork();
    if (between < 0) {
        return errno;
    }
    if (between == 0) {
        close(fds[1]);
        pid_t guard = fork();
        if (guard == 0) {
            be_guard(fds[0], folder);
        }
        _exit(guard < 0 ? errno : 0);
    }
    int status = 0;
    while (waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

cadre_status guard_open(const char *folder, int *ret_fd, struct cadre_error *error)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return cadre_error_errno(error, errno, "cannot start the guard of the tasks");
    }
    int failed = guard_start(folder, fds);
    close(fds[0]);
    if (failed != 0) {
        close(fds[1]);
        return cadre_error_errno(error, failed, "cannot start the guard of the tasks");
    }
    *ret_fd = fds[1];
    return CADRE_OK;
}

void guard_close(int fd)
{
    const char byte = ALL_IS_WELL;
    if (fd >= 0) {
        (void)send(fd, &byte, 1, MSG_NOSIGNAL); /* the guard may have been killed */
        close(fd);
    }
}
