/* SPDX-License-Identifier: Apache-2.0
 * Replaces epoll_wait() for gRPC. Its events name objects of its own, ours a watch, by its address
 * and a bit that no address has; one that another thread has closed meanwhile is not on the list
 * any more. */
#include "common/rpc/watch.h"

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "common/rpc/io_hooks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#define OF_WATCH (UINT64_C(1) << 63)

struct rpc_watch {
    struct rpc_watch *next;
    int fd;
    rpc_loop_fn *ready;
    void *user;
    int set;         /* gRPC's, or our own with a thread */
    bool has_thread; /* else it is on the list */
    pthread_t thread;
    int quit_fd; /* ends the thread */
};

/* ---- gRPC's set ---- */

static atomic_int grpc_set = -1;
static _Thread_local bool finding;

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards the list, and is held in ready() */
static struct rpc_watch *watches;

int rpc_epoll_wait(int epoll_set, struct epoll_event *events, int room, int timeout_ms) __asm__(
    "epoll_wait") __attribute__((visibility("default")));

void rpc_watch_find_set(void)
{
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    finding = true;
    (void)grpc_completion_queue_next(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), NULL);
    finding = false;
    grpc_completion_queue_shutdown(queue);
    (void)grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_completion_queue_destroy(queue);
    rpc_io_hooks_use(atomic_load(&grpc_set));
}

static uint64_t name_of(const struct rpc_watch *watch)
{
    return (uint64_t)(uintptr_t)watch | OF_WATCH;
}

static void report_watch(uint64_t name)
{
    struct rpc_watch *watch = watches;
    while (watch != NULL && name_of(watch) != name) {
        watch = watch->next;
    }
    if (watch != NULL) {
        watch->ready(watch->user);
    }
}

/* Takes ours out of the events. */
static int report_watches(struct epoll_event *events, int count)
{
    int left = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        if ((events[i].data.u64 & OF_WATCH) != 0) {
            report_watch(events[i].data.u64);
        } else {
            events[left++] = events[i];
        }
    }
    pthread_mutex_unlock(&lock);
    return left;
}

int rpc_epoll_wait(int epoll_set, struct epoll_event *events, int room, int timeout_ms)
{
    int count = (int)syscall(SYS_epoll_pwait, epoll_set, events, room, timeout_ms, NULL, 0);
    if (finding) {
        atomic_store(&grpc_set, epoll_set);
    }
    return count > 0 && epoll_set == atomic_load(&grpc_set) ? report_watches(events, count) : count;
}

static int watch_control(struct rpc_watch *watch, int how)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = name_of(watch)};
    return epoll_ctl(watch->set, how, watch->fd, &event) == 0 ? 0 : errno;
}

/* ---- a thread ---- */

#define QUIT 0

/* Between the event and arming again this thread sleeps: libuv's events wake it once, however
 * long handling them takes. */
static void *wait_for_watch(void *user)
{
    struct rpc_watch *watch = user;
    for (;;) {
        struct epoll_event event;
        int count = epoll_wait(watch->set, &event, 1, -1);
        if (count < 0) {
            CADRE_ASSERT(errno == EINTR);
        } else if (event.data.u64 == QUIT) {
            return NULL;
        } else {
            watch->ready(watch->user);
        }
    }
}

static int open_own_set(struct rpc_watch *watch)
{
    struct epoll_event quit = {.events = EPOLLIN, .data.u64 = QUIT};
    watch->set = epoll_create1(EPOLL_CLOEXEC);
    watch->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->set < 0 || watch->quit_fd < 0 ||
        epoll_ctl(watch->set, EPOLL_CTL_ADD, watch->quit_fd, &quit) != 0) {
        return errno;
    }
    int failed = thread_start(&watch->thread, wait_for_watch, watch);
    watch->has_thread = failed == 0;
    return failed;
}

static void close_own_set(struct rpc_watch *watch)
{
    if (watch->has_thread) {
        uint64_t quit = 1;
        ssize_t written = write(watch->quit_fd, &quit, sizeof quit);
        CADRE_ASSERT(written == (ssize_t)sizeof quit);
        pthread_join(watch->thread, NULL);
    }
    if (watch->quit_fd >= 0) {
        close(watch->quit_fd);
    }
    if (watch->set >= 0) {
        close(watch->set);
    }
}

/* ---- both ---- */

static void join_list(struct rpc_watch *watch)
{
    pthread_mutex_lock(&lock);
    watch->next = watches;
    watches = watch;
    pthread_mutex_unlock(&lock);
}

static void leave_list(struct rpc_watch *watch)
{
    pthread_mutex_lock(&lock);
    struct rpc_watch **at = &watches;
    while (*at != watch) {
        at = &(*at)->next;
    }
    *at = watch->next;
    pthread_mutex_unlock(&lock);
}

cadre_status rpc_watch_open(
    int fd, rpc_loop_fn *ready, void *user, struct rpc_watch **ret_watch, struct cadre_error *error)
{
    struct rpc_watch *watch = gpr_zalloc(sizeof *watch);
    *watch = (struct rpc_watch){.fd = fd, .ready = ready, .user = user, .quit_fd = -1};
    watch->set = atomic_load(&grpc_set);
    bool is_own = watch->set < 0;
    int failed = is_own ? open_own_set(watch) : 0;
    if (failed == 0 && !is_own) {
        join_list(watch);
    }
    if (failed == 0) {
        failed = watch_control(watch, EPOLL_CTL_ADD);
    }
    if (failed == 0) {
        *ret_watch = watch;
        return CADRE_OK;
    }
    if (is_own) {
        close_own_set(watch);
    } else {
        leave_list(watch);
    }
    gpr_free(watch);
    return cadre_error_errno(error, failed, "event loop: it cannot wait for libuv");
}

void rpc_watch_arm(struct rpc_watch *watch)
{
    int failed = watch_control(watch, EPOLL_CTL_MOD);
    CADRE_ASSERT(failed == 0);
}

void rpc_watch_close(struct rpc_watch *watch)
{
    if (watch->has_thread) {
        close_own_set(watch);
    } else {
        leave_list(watch);
        (void)watch_control(watch, EPOLL_CTL_DEL);
    }
    gpr_free(watch);
}
