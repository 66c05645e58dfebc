/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/speed.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

#define MOST      32.0
#define SAMPLE_US (CADRE_US_PER_S / 2) /* of waiting, between two looks at the load */
#define LOOP_US   (10 * CADRE_US_PER_MS)

static double looped = 1.0;

/* Threads that run or want to, this one too. */
static double runnable(void)
{
    char line[4096];
    unsigned count = 1;
    FILE *file = fopen("/proc/stat", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "procs_running %u", &count) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static uint64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * CADRE_US_PER_S + (uint64_t)now.tv_nsec / 1000;
}

/* Wall time over CPU time of a loop that does nothing else. Before main(): later it would hold up
 * what a test measures. */
static void __attribute__((constructor)) loop(void)
{
    uint64_t wall_us = clock_monotonic_us();
    uint64_t begin_us = cpu_us();
    uint64_t spent_us = 0;
    while ((spent_us = cpu_us() - begin_us) < LOOP_US) {
    }
    looped = (double)(clock_monotonic_us() - wall_us) / (double)spent_us;
}

double speed_slowness(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    double slowness = runnable() / (double)(processors > 0 ? processors : 1);
    slowness = slowness > looped ? slowness : looped;
    slowness = slowness > 1.0 ? slowness : 1.0;
    return slowness < MOST ? slowness : MOST;
}

uint64_t speed_scaled_us(uint64_t us)
{
    return (uint64_t)((double)us * speed_slowness());
}

struct patience patience_begin(uint64_t us)
{
    return (struct patience){
        .left_us = (double)us, .slowness = 1.0, .last_us = clock_monotonic_us()};
}

bool patience_is_over(struct patience *patience)
{
    uint64_t now_us = clock_monotonic_us();
    patience->left_us -= (double)(now_us - patience->last_us) / patience->slowness;
    patience->last_us = now_us;
    if (now_us - patience->sampled_us > SAMPLE_US && patience->left_us > 0) {
        patience->slowness = speed_slowness();
        patience->sampled_us = clock_monotonic_us();
    }
    return patience->left_us <= 0;
}
