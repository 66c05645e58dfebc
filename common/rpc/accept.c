/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rpc/io_hooks.h"

/* how often the shortage is logged while it lasts */
#define REPORT_EVERY_US (60 * CADRE_US_PER_S)

static atomic_int spare = -1;
static atomic_ullong reported_us;
static atomic_ullong refused;

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void rpc_accept_reserve_fd(void)
{
    if (atomic_load(&spare) < 0) {
        atomic_store(&spare, open_spare());
    }
}

static int call_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return (int)syscall(SYS_accept4, fd, address, length, flags);
}

static void log_refused(void)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t last_us = atomic_load(&reported_us);
    atomic_fetch_add(&refused, 1);
    if (last_us != 0 && now_us - last_us < REPORT_EVERY_US) {
        return;
    }
    atomic_store(&reported_us, now_us);
    log_event(LOG_LEVEL_ERROR, "server",
        "no descriptor is free: new connections are refused, those that are there go on; raise "
        "RLIMIT_NOFILE (systemd: LimitNOFILE)",
        LOG_U64("refused", atomic_load(&refused)));
}

/* False: there is no spare descriptor either, or no client waits. */
static bool refuse_one(int fd)
{
    int kept = atomic_exchange(&spare, -1);
    if (kept < 0) {
        return false;
    }
    close(kept);
    int caller = call_accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (caller >= 0) {
        close(caller);
    }
    atomic_store(&spare, open_spare());
    return caller >= 0;
}

/* Replaces libc's accept4() for gRPC; it has another name here because the headers declare the
 * original with a type of theirs. */
int rpc_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) __asm__("accept4")
    __attribute__((visibility("default")));

/* EAGAIN makes gRPC wait for the next client. */
int rpc_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    int caller = call_accept4(fd, address, length, flags);
    if (caller >= 0) {
        rpc_io_hooks_watch(caller);
        return caller;
    }
    if (errno != EMFILE && errno != ENFILE) {
        return caller;
    }
    rpc_accept_reserve_fd();
    while (refuse_one(fd)) {
        log_refused();
    }
    errno = EAGAIN;
    return -1;
}
