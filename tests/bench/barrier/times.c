/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/barrier/times.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

uint64_t times_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

struct times times_open(
    const char *path, uint32_t participants, uint32_t rounds, uint32_t participant)
{
    uint64_t each = (uint64_t)rounds * 2 * sizeof(uint64_t);
    uint64_t whole = each * participants;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *mapped = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)whole) == 0) {
        mapped = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (mapped == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    close(fd);
    uint64_t *stamps = (uint64_t *)mapped + (uint64_t)participant * rounds * 2;
    memset(stamps, 0, each); /* the pages are there before the clock matters */
    return (struct times){
        .stamps = stamps, .rounds = rounds, .mapped = mapped, .mapped_bytes = whole};
}
