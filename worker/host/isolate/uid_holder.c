/* SPDX-License-Identifier: Apache-2.0
 * The process that holds a uid (uid_cleanup.h): its start, its answers over a socket, and the
 * kills and removals that it does as the uid. Called by uid_cleanup.c and uids.c. */
#include "worker/host/isolate/uid_cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum order { ORDER_ASK, ORDER_KILL, ORDER_CLEAR };

/* ---- in the child, which is the uid: only what is safe in a signal handler ---- */

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

/* By the system calls: the library's functions would change the user of the parent's threads,
 * too. */
static bool uid_holder_become(uid_t uid)
{
    return syscall(SYS_setgroups, 0, NULL) == 0 && syscall(SYS_setresgid, uid, uid, uid) == 0 &&
           syscall(SYS_setresuid, uid, uid, uid) == 0;
}

/* The kernel counts this process and the one that it forks: a third is another program's. Where
 * a kernel does not count, as some emulated ones, every holder counts as alone. */
static uint8_t uid_holder_count(void)
{
    int status = 0;
    pid_t pid = _Fork();
    if (pid == 0) {
        _exit(0);
    }
    if (pid < 0) {
        return errno == EAGAIN ? UID_HOLDER_NOT_ALONE : UID_HOLDER_ALONE;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return UID_HOLDER_ALONE;
}

static void close_but(int fd)
{
    if (fd > 0) {
        (void)syscall(SYS_close_range, 0U, (unsigned)fd - 1, 0U);
    }
    (void)syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0U);
}

_Noreturn static void be_holder(uid_t uid, int fd)
{
    const struct rlimit two = {.rlim_cur = 2, .rlim_max = 2};
    uint8_t order = ORDER_ASK;
    close_but(fd);
    (void)prctl(PR_SET_NAME, "cadre-uid", 0, 0, 0);
    bool became = setrlimit(RLIMIT_NPROC, &two) == 0 && uid_holder_become(uid);
    do {
        if (order == ORDER_KILL) {
            (void)kill(-1, SIGKILL); /* not this process */
        } else if (order == ORDER_CLEAR) {
            clear_memory(uid);
            clear_queues(uid);
            clear_semaphores(uid);
        }
        uint8_t answer = became ? uid_holder_count() : UID_HOLDER_GONE;
        if (send(fd, &answer, 1, MSG_NOSIGNAL) != 1) {
            break;
        }
    } while (became && recv(fd, &order, 1, 0) == 1);
    _exit(0);
}

/* ---- in the daemon ---- */

static pid_t fork_without_signals(void)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = _Fork(); /* no fork handlers of libraries: the child needs none of them */
    if (pid != 0) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return pid;
}

static enum uid_holder_status receive_answer(const struct uid_holder *holder)
{
    uint8_t answer = UID_HOLDER_GONE;
    ssize_t got;
    do {
        got = recv(holder->fd, &answer, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1 ? (enum uid_holder_status)answer : UID_HOLDER_GONE;
}

static enum uid_holder_status uid_holder_request(const struct uid_holder *holder, enum order order)
{
    uint8_t byte = (uint8_t)order;
    if (holder->pid == 0 || send(holder->fd, &byte, 1, MSG_NOSIGNAL) != 1) {
        return UID_HOLDER_GONE;
    }
    return receive_answer(holder);
}

enum uid_holder_status uid_holder_open(uid_t uid, struct uid_holder *ret_holder)
{
    int ends[2];
    *ret_holder = (struct uid_holder){0};
    if (uid == 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return UID_HOLDER_GONE;
    }
    pid_t pid = fork_without_signals();
    if (pid == 0) {
        be_holder(uid, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return UID_HOLDER_GONE;
    }
    *ret_holder = (struct uid_holder){.pid = pid, .fd = ends[0]};
    enum uid_holder_status answer = receive_answer(ret_holder);
    if (answer == UID_HOLDER_GONE) {
        uid_holder_close(ret_holder);
    }
    return answer;
}

void uid_holder_close(struct uid_holder *holder)
{
    if (holder->pid != 0) {
        close(holder->fd);
        while (waitpid(holder->pid, NULL, 0) < 0 && errno == EINTR) {
        } /* or the agent, which reaps all children, has reaped it */
    }
    *holder = (struct uid_holder){0};
}

enum uid_holder_status uid_holder_check(const struct uid_holder *holder)
{
    return uid_holder_request(holder, ORDER_ASK);
}

enum uid_holder_status uid_holder_kill(const struct uid_holder *holder)
{
    return uid_holder_request(holder, ORDER_KILL);
}

enum uid_holder_status uid_holder_clear(const struct uid_holder *holder)
{
    return uid_holder_request(holder, ORDER_CLEAR);
}
