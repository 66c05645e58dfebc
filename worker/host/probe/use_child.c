/* SPDX-License-Identifier: Apache-2.0
 * Starts cadre-devices --use with a socket as its standard input and output. Its standard error is
 * dropped: what it says there, `cadre-devices --use` by hand says too. */
#include "worker/host/probe/use_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/host/keeper/launch.h"
#include "worker/host/probe/child.h"

#define UNNAMED "-" /* a GPU that has no UUID: no library knows it */

/* A MIG instance has a name of its own in CUDA_VISIBLE_DEVICES. */
static const char *name_of(const struct host_gpu *gpu)
{
    bool instance = strncmp(gpu->visible, "MIG-", 4) == 0;
    const char *name = instance ? gpu->visible : gpu->uuid;
    return name[0] != '\0' ? name : UNNAMED;
}

static int launch_with(const struct use_child_setup *setup, const char *program, int socket,
    int errors, pid_t *ret_pid)
{
    static char use[] = "--use";
    static char end_of_options[] = "--";
    char *argv[LIMIT_GPUS_PER_WORKER + 4] = {(char *)(uintptr_t)program, use, end_of_options};
    for (uint32_t i = 0; i < setup->gpus->usable; i++) {
        argv[3 + i] = (char *)(uintptr_t)name_of(&setup->gpus->devices[i]);
    }
    const struct launch launch = {.program = program,
        .argv = argv,
        .environment = (char **)(uintptr_t)setup->environment,
        .folder = "/",
        .input = socket,
        .outputs = {socket, errors},
        .inherited = -1,
        .confinement = {.change_user = setup->change_user, .uid = setup->uid, .gid = setup->gid}};
    return launch_process(&launch, ret_pid);
}

/* The pidfd of a process that was just started; else its end, and -1 with errno. */
static int open_process(pid_t pid)
{
    int process = pidfd_open(pid, 0);
    if (process < 0) {
        int errnum = errno;
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        errno = errnum;
    }
    return process;
}

cadre_status use_child_start(
    const struct use_child_setup *setup, struct use_child *ret_child, struct cadre_error *error)
{
    char program[CHILD_PATH_BYTES] = "";
    if (!child_find_program(program)) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "cadre-devices was not found");
    }
    CADRE_CLOSE_AT_EXIT int errors = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int sockets[2];
    if (errors < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        return cadre_error_errno(error, errno, "no socket to %.200s", program);
    }
    CADRE_CLOSE_AT_EXIT int own = sockets[0];
    CADRE_CLOSE_AT_EXIT int theirs = sockets[1];
    pid_t pid = 0;
    int errnum = launch_with(setup, program, theirs, errors, &pid);
    int process = errnum == 0 ? open_process(pid) : -1;
    errnum = errnum == 0 && process < 0 ? errno : errnum;
    if (errnum != 0) {
        return cadre_error_errno(error, errnum < 0 ? -errnum : errnum, "%.200s --use", program);
    }
    (void)fcntl(own, F_SETFL, O_NONBLOCK);
    *ret_child = (struct use_child){.pid = pid, .process = process, .socket = own};
    own = -1;
    return CADRE_OK;
}
