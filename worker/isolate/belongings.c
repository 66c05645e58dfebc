/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/isolate/belongings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};

static void clear_folder(const char *folder, uid_t uid)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        struct stat about;
        char path[512];
        bool is_entry = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
        if (is_entry && fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            about.st_uid == uid) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            (void)tree_remove(path, NULL);
        }
    }
}

/* ---- in a child that is the uid: only what is safe in a signal handler ---- */

/* What semctl's last argument is; the system's headers leave it to the program. */
union semaphore_argument {
    int value;
    struct semid_ds *about;
    struct seminfo *info;
};

static void clear_memory(uid_t uid)
{
    struct shm_info info;
    int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);
    for (int i = 0; i <= last; i++) {
        struct shmid_ds about;
        int id = shmctl(i, SHM_STAT, &about);
        if (id >= 0 && about.shm_perm.uid == uid) {
            (void)shmctl(id, IPC_RMID, NULL);
        }
    }
}

static void clear_queues(uid_t uid)
{
    struct msginfo info;
    int last = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&info);
    for (int i = 0; i <= last; i++) {
        struct msqid_ds about;
        int id = msgctl(i, MSG_STAT, &about);
        if (id >= 0 && about.msg_perm.uid == uid) {
            (void)msgctl(id, IPC_RMID, NULL);
        }
    }
}

static void clear_semaphores(uid_t uid)
{
    struct seminfo info;
    int last = semctl(0, 0, SEM_INFO, (union semaphore_argument){.info = &info});
    for (int i = 0; i <= last; i++) {
        struct semid_ds about;
        int id = semctl(i, 0, SEM_STAT, (union semaphore_argument){.about = &about});
        if (id >= 0 && about.sem_perm.uid == uid) {
            (void)semctl(id, 0, IPC_RMID);
        }
    }
}

/* By the system calls: the library's functions would have the threads of our parent follow. */
static bool become(uid_t uid)
{
    return syscall(SYS_setgroups, 0, NULL) == 0 && syscall(SYS_setresgid, uid, uid, uid) == 0 &&
           syscall(SYS_setresuid, uid, uid, uid) == 0;
}

_Noreturn static void be_owner(uid_t uid, int report_fd)
{
    if (become(uid)) {
        (void)kill(-1, SIGKILL); /* all there is of the uid, at one stroke, but this process */
        clear_memory(uid);
        clear_queues(uid);
        clear_semaphores(uid);
    }
    (void)!write(report_fd, "", 1);
    _exit(0);
}

/* ---- in the daemon ---- */

/* Whoever the uid is may kill a child that is the uid, until it is killed itself. */
#define TRIES 64

static pid_t fork_without_signals(void)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = _Fork(); /* no library's handlers: the child needs none of them */
    if (pid != 0) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return pid;
}

/* Objects of System V are not for root to remove, unless it may do everything; nor can a program
 * that forks and ends, on and on, be killed by its number. False: the child was killed. */
static bool clear_as(uid_t uid)
{
    int report[2];
    char byte;
    ssize_t got = 1;
    if (pipe2(report, O_CLOEXEC) != 0) {
        return true;
    }
    pid_t pid = fork_without_signals();
    if (pid == 0) {
        be_owner(uid, report[1]);
    }
    close(report[1]);
    if (pid > 0) {
        do {
            got = read(report[0], &byte, 1);
        } while (got < 0 && errno == EINTR);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        } /* or it was reaped by whoever reaps all children */
    }
    close(report[0]);
    return got == 1;
}

void belongings_remove(uid_t uid)
{
    for (int i = 0; uid != 0 && i < TRIES && !clear_as(uid); i++) {
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        clear_folder(folders[i], uid);
    }
}
