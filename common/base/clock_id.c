/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pure/prng.h"

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define TIME_FILE    "/proc/self/ns/time" /* a time namespace has a monotonic clock of its own */

uint64_t clock_monotonic_id(void)
{
    char text[64] = "";
    struct stat time_stat = {0};
    int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (length <= 0) {
        length = gethostname(text, sizeof text) == 0 ? (ssize_t)strnlen(text, sizeof text) : 0;
    }
    uint64_t id = prng_mix((uint64_t)length);
    for (ssize_t i = 0; i < length; i++) {
        id = prng_mix(id ^ (uint8_t)text[i]);
    }
    if (stat(TIME_FILE, &time_stat) == 0) {
        id = prng_mix(id ^ time_stat.st_ino);
    }
    return id | 1;
}
