/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/exposition.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* Of /proc/self/stat, behind the name: fields 3 on. */
#define FIELD_START_TIME 22
#define FIELD_VIRTUAL    23
#define FIELD_RESIDENT   24

struct own_numbers {
    uint64_t start_ticks;
    uint64_t virtual_bytes;
    uint64_t resident_pages;
};

static bool read_text(const char *path, char *text, size_t size)
{
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool read_own(struct own_numbers *ret)
{
    char text[1024];
    if (!read_text("/proc/self/stat", text, sizeof text) || strrchr(text, ')') == NULL) {
        return false;
    }
    *ret = (struct own_numbers){0};
    const char *at = strrchr(text, ')') + 1;
    for (int field = 3; field <= FIELD_RESIDENT; field++) {
        at += strspn(at, " ");
        uint64_t *into = field == FIELD_START_TIME ? &ret->start_ticks
                         : field == FIELD_VIRTUAL  ? &ret->virtual_bytes
                         : field == FIELD_RESIDENT ? &ret->resident_pages
                                                   : NULL;
        if (into != NULL && sscanf(at, "%" SCNu64, into) != 1) {
            return false;
        }
        at += strcspn(at, " ");
    }
    return true;
}

/* Seconds since 1970 at which the host started. */
static bool read_boot(uint64_t *ret_s)
{
    char text[64 * 1024];
    const char *found =
        read_text("/proc/stat", text, sizeof text) ? strstr(text, "\nbtime ") : NULL;
    return found != NULL && sscanf(found, "\nbtime %" SCNu64, ret_s) == 1;
}

static uint64_t count_fds(void)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    return count > 0 ? count - 1 : 0; /* without the folder's own */
}

void process_metrics(struct exposition *out, const char *program, const struct tls_material *tls)
{
    struct rusage usage;
    struct rlimit limit;
    struct own_numbers own;
    uint64_t boot_s = 0;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        exposition_one(out, "process_cpu_seconds_total", EXPOSITION_COUNTER,
            "User and system time of this process.",
            (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    }
    if (read_own(&own)) {
        exposition_one_count(out, "process_resident_memory_bytes", EXPOSITION_GAUGE,
            "Memory of this process that is in RAM.",
            own.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE));
        exposition_one_count(out, "process_virtual_memory_bytes", EXPOSITION_GAUGE,
            "Address space of this process.", own.virtual_bytes);
        if (read_boot(&boot_s)) {
            exposition_one(out, "process_start_time_seconds", EXPOSITION_GAUGE,
                "When this process was started, in seconds since 1970.",
                (double)boot_s + (double)own.start_ticks / (double)sysconf(_SC_CLK_TCK));
        }
    }
    exposition_one_count(
        out, "process_open_fds", EXPOSITION_GAUGE, "Open file descriptors.", count_fds());
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        exposition_one(out, "process_max_fds", EXPOSITION_GAUGE,
            "File descriptors that this process may open.", (double)limit.rlim_cur);
    }
    const struct exposition_label labels[] = {{"program", program}, {"version", CADRE_VERSION}};
    exposition_family(
        out, "cadre_build_info", EXPOSITION_GAUGE, "Always 1; the labels have the version.");
    exposition_count(out, labels, 2, 1);
    if (tls != NULL) {
        exposition_one_count(out, "cadre_tls_certificate_expiry_timestamp_seconds",
            EXPOSITION_GAUGE,
            "Unix time at which the certificate in use, or its CA, expires: whichever is first.",
            tls->not_after_s);
    }
}
