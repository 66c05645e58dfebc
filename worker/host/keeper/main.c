/* SPDX-License-Identifier: Apache-2.0
 * cadre-keeper: the parent of one task. It is between the task and the daemon, so that the
 * daemon may end and start again: the task's output waits in its pipes, its exit status waits
 * here, and the keeper ends the processes that it left behind. It is started by keeper_start. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/host/keeper/start.h"
#include "worker/host/keeper/task.h"
#include "worker/host/keeper/messages.h"

/* How long a keeper that is not needed any more waits for processes that cannot be killed. */
#define LAST_US (2 * CADRE_US_PER_S)

struct keeper {
    struct packed_launch packed;
    int memory;
    int signals;    /* a signalfd */
    int listener;   /* -1: only the daemon that started it is served */
    int connection; /* -1: none */
    struct task task;
    bool ended_sent;
    bool swept_sent;
    bool ending;           /* the task is not needed any more: what is left is killed */
    bool end_requested;    /* by a daemon, which removes the group */
    uint64_t last_us;      /* of `ending`: the time at which it exits all the same */
    uint64_t orphan_at_us; /* no daemon is connected: when the task is ended */
    uint64_t kill_at_us;   /* when its grace is over */
};

static uint64_t after_ms(uint64_t ms)
{
    uint64_t now_us = clock_monotonic_us();
    return ms < (CADRE_TIME_NEVER - now_us) / CADRE_US_PER_MS ? now_us + ms * CADRE_US_PER_MS
                                                              : CADRE_TIME_NEVER;
}

static void keeper_main_end(struct keeper *keeper)
{
    if (!keeper->ending) {
        keeper->ending = true;
        keeper->last_us = clock_monotonic_us() + LAST_US;
        task_signal(&keeper->task, SIGKILL);
    }
}

static void close_connection(struct keeper *keeper)
{
    close(keeper->connection);
    keeper->connection = -1;
    keeper->ended_sent = false;
    keeper->swept_sent = false;
    if (keeper->listener < 0) {
        keeper_main_end(keeper);
    } else {
        keeper->orphan_at_us = after_ms(keeper->packed.launch.orphan_ms);
    }
}

/* A message that does not fit is sent again on the next connection. */
static void send_message(struct keeper *keeper, uint32_t type, int64_t value)
{
    if (keeper_send(keeper->connection, &(struct keeper_message){.type = type, .value = value},
            NULL, 0) != 0) {
        close_connection(keeper);
    }
}

static void send_news(struct keeper *keeper)
{
    const struct task *task = &keeper->task;
    if (keeper->connection >= 0 && task->ended && !keeper->ended_sent) {
        keeper->ended_sent = true;
        send_message(keeper, KEEPER_ENDED, task->status);
    }
    if (keeper->connection >= 0 && task->swept && !keeper->swept_sent) {
        keeper->swept_sent = true;
        send_message(keeper, KEEPER_SWEPT, 0);
        if (keeper->listener < 0) {
            keeper_main_end(keeper); /* no other daemon can connect to receive it */
        }
    }
}

static void send_hello_message(struct keeper *keeper)
{
    int fds[KEEPER_FDS] = {
        keeper->task.outputs[0], keeper->task.outputs[1], KEEPER_START_LAUNCH, keeper->memory};
    keeper->orphan_at_us = CADRE_TIME_NEVER;
    size_t count = keeper->memory >= 0 ? KEEPER_FDS : KEEPER_FDS - 1;
    struct keeper_message hello = {
        .type = KEEPER_HELLO, .value = keeper->task.pid, .ended = keeper->task.ended ? 1 : 0};
    if (keeper_send(keeper->connection, &hello, fds, count) != 0) {
        close_connection(keeper);
    }
}

/* ---- messages and signals ---- */

static void handle_message(struct keeper *keeper)
{
    struct keeper_message message;
    int fds[KEEPER_FDS];
    int failed = keeper_receive(keeper->connection, &message, fds);
    for (size_t i = 0; i < KEEPER_FDS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]); /* no message to a keeper has descriptors */
        }
    }
    if (failed == EAGAIN) {
        return;
    }
    if (failed != 0) {
        close_connection(keeper);
    } else if (message.type == KEEPER_SIGNAL && message.value > 0 && message.value < NSIG) {
        task_signal(&keeper->task, (int)message.value);
    } else if (message.type == KEEPER_END) {
        keeper->end_requested = true;
        keeper_main_end(keeper);
    }
}

/* A daemon that connects while another is connected is the newer one: the older is dead or
 * hangs. */
static void accept_connection(struct keeper *keeper)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    int fd = accept4(keeper->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid != geteuid() && peer.uid != 0)) {
        close(fd);
        return;
    }
    if (keeper->connection >= 0) {
        close_connection(keeper);
    }
    keeper->connection = fd;
    send_hello_message(keeper);
}

static void handle_signals(struct keeper *keeper)
{
    struct signalfd_siginfo info;
    while (read(keeper->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTERM && keeper->kill_at_us == CADRE_TIME_NEVER) {
            task_signal(&keeper->task, SIGTERM); /* the host shuts down, or an administrator ends
                                                  * the keeper */
            keeper->kill_at_us = after_ms(keeper->packed.launch.grace_ms);
        }
    }
    task_reap(&keeper->task);
}

static void on_deadline(struct keeper *keeper)
{
    uint64_t now_us = clock_monotonic_us();
    if (now_us >= keeper->orphan_at_us) {
        keeper->orphan_at_us = CADRE_TIME_NEVER;
        task_signal(&keeper->task, SIGTERM);
        keeper->kill_at_us = after_ms(keeper->packed.launch.grace_ms);
    }
    if (now_us >= keeper->kill_at_us ||
        (keeper->kill_at_us != CADRE_TIME_NEVER && keeper->connection < 0 && keeper->task.ended)) {
        keeper->kill_at_us = CADRE_TIME_NEVER;
        if (keeper->connection < 0) {
            keeper_main_end(keeper);
        } else {
            task_signal(&keeper->task, SIGKILL);
        }
    }
    task_sweep(&keeper->task, now_us);
}

/* ---- the loop ---- */

static uint64_t min_us(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int wait_ms(const struct keeper *keeper)
{
    const struct task *task = &keeper->task;
    uint64_t at_us = min_us(keeper->orphan_at_us, keeper->kill_at_us);
    if (task->ended && !task->swept) {
        at_us = min_us(at_us, task->sweep_at_us);
    }
    if (keeper->ending) {
        at_us = min_us(at_us, keeper->last_us);
    }
    uint64_t now_us = clock_monotonic_us();
    if (at_us == CADRE_TIME_NEVER) {
        return -1;
    }
    uint64_t left_ms = at_us > now_us ? (at_us - now_us) / CADRE_US_PER_MS + 1 : 0;
    return left_ms < 3600 * 1000 ? (int)left_ms : 3600 * 1000;
}

static bool is_over(const struct keeper *keeper)
{
    return keeper->ending && (keeper->task.swept || clock_monotonic_us() >= keeper->last_us);
}

static void run_once(struct keeper *keeper)
{
    struct pollfd waits[3] = {{.fd = keeper->signals, .events = POLLIN},
        {.fd = keeper->listener, .events = POLLIN}, {.fd = keeper->connection, .events = POLLIN}};
    if (poll(waits, 3, wait_ms(keeper)) > 0) {
        if (waits[0].revents != 0) {
            handle_signals(keeper);
        }
        if (waits[2].revents != 0) {
            handle_message(keeper);
        }
        if (waits[1].revents != 0) {
            accept_connection(keeper);
        }
    }
    on_deadline(keeper);
    send_news(keeper);
}

/* The daemon has exited, and may never be started again. A process that just ended keeps its
 * group busy for a moment. */
static void remove_group(const struct keeper *keeper)
{
    const struct task_cgroup *group = &keeper->task.group;
    uint64_t end_us = clock_monotonic_us() + LAST_US;
    bool ours = keeper->connection < 0 && !keeper->end_requested && keeper->task.swept;
    while (ours && !cgroup_remove_last(group) && clock_monotonic_us() < end_us) {
        (void)poll(NULL, 0, 10);
    }
}

/* ---- the start ---- */

static int open_signals(void)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigaddset(&taken, SIGTERM);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    return sigprocmask(SIG_BLOCK, &taken, NULL) == 0
               ? signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)
               : -1;
}

static int open_listener(const char *path)
{
    int fd = private_socket_bind(path, SOCK_SEQPACKET);
    if (fd >= 0 && listen(fd, 4) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A variable of the task's: the pid of its keeper, whose SIGTERM is no notice of preemption. */
static char *daemon_variable(void)
{
    char *variable = NULL;
    return asprintf(&variable, "CADRE_DAEMON_PID=%ld", (long)getpid()) >= 0 ? variable : NULL;
}

static int start_task(struct keeper *keeper, char *variable)
{
    struct launch *launch = &keeper->packed.launch.launch;
    size_t count = 0;
    while (launch->environment[count] != NULL) {
        count++;
    }
    launch->environment[count] = variable;
    launch->inherited = keeper->memory;
    return task_start(&keeper->task, launch);
}

static int open_keeper(struct keeper *keeper, char *variable)
{
    struct cadre_error error = {0};
    for (int fd = KEEPER_START_SOCKET; fd <= KEEPER_START_MEMORY; fd++) {
        int flags = fcntl(fd, F_GETFD); /* close-on-exec from now on, because the task must not
                                         * get it */
        if (flags >= 0) {
            fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
    }
    keeper->memory = fcntl(KEEPER_START_MEMORY, F_GETFD) >= 0 ? KEEPER_START_MEMORY : -1;
    if (packed_launch_read(KEEPER_START_LAUNCH, &keeper->packed, &error) != CADRE_OK) {
        return EINVAL;
    }
    const char *path = keeper->packed.launch.listen;
    keeper->signals = open_signals();
    if (keeper->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        return errno;
    }
    if (path != NULL && (keeper->listener = open_listener(path)) < 0) {
        return errno;
    }
    return variable != NULL ? start_task(keeper, variable) : ENOMEM;
}

int main(void)
{
    struct keeper keeper = {.memory = -1,
        .signals = -1,
        .listener = -1,
        .connection = KEEPER_START_SOCKET,
        .orphan_at_us = CADRE_TIME_NEVER,
        .kill_at_us = CADRE_TIME_NEVER};
    char *variable = daemon_variable();
    struct stat status;
    if (fstat(KEEPER_START_SOCKET, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return 2; /* started by hand: there is no task to run */
    }
    int failed = open_keeper(&keeper, variable);
    if (failed != 0) {
        (void)keeper_send(keeper.connection,
            &(struct keeper_message){.type = KEEPER_FAILED, .value = failed}, NULL, 0);
    } else {
        send_hello_message(&keeper);
        while (!is_over(&keeper)) {
            run_once(&keeper);
        }
        remove_group(&keeper);
    }
    if (keeper.listener >= 0) {
        unlink(keeper.packed.launch.listen);
    }
    packed_launch_free(&keeper.packed);
    free(variable);
    /* _exit runs no exit handlers: a sanitizer's would trace this process by a child, which
     * waits for ever in a subreaper. */
    _exit(failed != 0 ? 1 : 0);
}
