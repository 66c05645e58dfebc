/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into a daemon: its wall clock is wrong by as many seconds as the file named by
 * WALL_CLOCK_FILE says, read again each time. The monotonic clock is right. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift(void)
{
    const char *path = getenv("WALL_CLOCK_FILE");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    long long seconds = 0;
    if (file != NULL) {
        if (fscanf(file, "%lld", &seconds) != 1) {
            seconds = 0;
        }
        fclose(file);
    }
    return (time_t)seconds;
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int status = (int)syscall(SYS_clock_gettime, clock, ret_now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        ret_now->tv_sec += shift();
    }
    return status;
}

int gettimeofday(struct timeval *restrict ret_now, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_now = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_now)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_now != NULL) {
        *ret_now = now.tv_sec;
    }
    return now.tv_sec;
}
