/* SPDX-License-Identifier: Apache-2.0
 * Spawns cadre-keeper with its socket and launch, and connects to one that runs. Called by the
 * agent (keeper_link.c, adopt.c). */
#include "worker/host/keeper/start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"

#define NAME "cadre-keeper"

#ifndef CADRE_LIBEXEC_DIR
#define CADRE_LIBEXEC_DIR "/usr/libexec/cadre"
#endif

char *keeper_program(void)
{
    /* From the running program's folder: that of a build, and that of an installation below any
     * prefix. */
    static const char *const folders[] = {"", "/../libexec/cadre"};
    char *path = NULL;
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash != NULL && i < CADRE_COUNT_OF(folders); i++) {
        *slash = '\0';
        if (asprintf(&path, "%s%s/" NAME, self, folders[i]) < 0) {
            return NULL;
        }
        if (access(path, X_OK) == 0) {
            return path;
        }
        free(path);
    }
    const char *folder = getenv("CADRE_LIBEXEC");
    return asprintf(&path, "%s/" NAME, folder != NULL ? folder : CADRE_LIBEXEC_DIR) >= 0 ? path
                                                                                         : NULL;
}

/* Moves a descriptor above the numbers that a keeper has its own under. */
static int start_high(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, KEEPER_START_MEMORY + 1);
}

/* The keeper gets the descriptors that are given to it and no others, and default signals. */
static int start_prepare(
    posix_spawn_file_actions_t *files, posix_spawnattr_t *how, const int fds[3])
{
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    int failed = posix_spawnattr_setflags(
        how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    failed = failed != 0 ? failed : posix_spawnattr_setsigdefault(how, &all);
    failed = failed != 0 ? failed : posix_spawnattr_setsigmask(how, &none);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && failed == 0; fd++) {
        failed = posix_spawn_file_actions_addopen(files, fd, "/dev/null", O_RDWR, 0);
    }
    int last = KEEPER_START_SOCKET;
    for (int i = 0; i < 3 && failed == 0; i++) {
        if (fds[i] >= 0) {
            last = KEEPER_START_SOCKET + i;
            failed = posix_spawn_file_actions_adddup2(files, fds[i], last);
        }
    }
    failed = failed != 0 ? failed : posix_spawn_file_actions_addclosefrom_np(files, last + 1);
    return failed != 0 ? failed : posix_spawn_file_actions_addchdir_np(files, "/");
}

static int start_spawn(const char *program, const char *mark, const int fds[3], pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char name[] = NAME;
    char *argv[] = {name, NULL};
    char *environment[] = {(char *)(uintptr_t)mark, NULL};
    int failed = posix_spawn_file_actions_init(&files);
    if (failed != 0) {
        return failed;
    }
    failed = posix_spawnattr_init(&how);
    if (failed == 0) {
        failed = start_prepare(&files, &how, fds);
        failed =
            failed != 0 ? failed : posix_spawn(ret_pid, program, &files, &how, argv, environment);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

cadre_status keeper_start(const char *program, const struct keeper_launch *launch, int memory,
    const char *mark, int *ret_socket, pid_t *ret_pid, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int packed = -1;
    CADRE_TRY(packed_launch_make(launch, &packed, error));
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return cadre_error_errno(error, errno, "no socket for a task's keeper");
    }
    CADRE_CLOSE_AT_EXIT int ours = pair[0];
    CADRE_CLOSE_AT_EXIT int theirs = pair[1];
    CADRE_CLOSE_AT_EXIT int socket_high = start_high(theirs);
    CADRE_CLOSE_AT_EXIT int packed_high = start_high(packed);
    CADRE_CLOSE_AT_EXIT int memory_high = memory >= 0 ? start_high(memory) : -1;
    int failed = socket_high < 0 || packed_high < 0 || (memory >= 0 && memory_high < 0) ? errno : 0;
    if (failed == 0) {
        failed =
            start_spawn(program, mark, (int[3]){socket_high, packed_high, memory_high}, ret_pid);
    }
    if (failed != 0) {
        return cadre_error_errno(error, failed, "cannot run %s, which starts tasks", program);
    }
    *ret_socket = ours;
    ours = -1;
    return CADRE_OK;
}

cadre_status keeper_connect(const char *path, int *ret_socket, struct cadre_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    if (strlen(path) >= sizeof address.sun_path) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "the socket path %s is too long", path);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    CADRE_CLOSE_AT_EXIT int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "no socket for a task's keeper");
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "no keeper answers at %s: %s", path, strerrordesc_np(errno));
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "the keeper at %s runs as user %u, not as this daemon's %u", path, (unsigned)peer.uid,
            (unsigned)geteuid());
    }
    *ret_socket = fd;
    fd = -1;
    return CADRE_OK;
}
