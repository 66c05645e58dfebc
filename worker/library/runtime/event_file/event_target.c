/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/event_file/event_target.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"

#define HOST_BYTES  65
#define RUN_BYTES   32
#define FILE_PREFIX "events.out.tfevents."
#define NUMBER_MAX  UINT64_C(9999999999) /* ten digits */

bool event_target_find(
    const struct environment *environment, const char *run, struct event_target *ret_target)
{
    CADRE_ASSERT(strlen(run) < RUN_BYTES);
    *ret_target = (struct event_target){.job = environment->job, .slot = environment->slot};
    if (environment->events == EVENTS_OFF ||
        (environment->events == EVENTS_BESIDE_OUTPUTS && !environment->output_asked)) {
        return false;
    }
    bool named = environment->events_folder[0] != '\0';
    snprintf(ret_target->folder, sizeof ret_target->folder, "%s%s%s%s",
        named ? environment->events_folder : environment->output_folder, named ? "" : "/events",
        run[0] != '\0' ? "/" : "", run);
    return true;
}

/* The host's name as a part of a file's name. */
static void name_host(char ret_host[HOST_BYTES])
{
    memset(ret_host, 0, HOST_BYTES);
    if (gethostname(ret_host, HOST_BYTES - 1) != 0 || ret_host[0] == '\0') {
        snprintf(ret_host, HOST_BYTES, "host");
    }
    for (char *at = ret_host; *at != '\0'; at++) {
        *at = *at <= ' ' || *at > '~' || *at == '/' ? '-' : *at;
    }
}

void event_target_path(const struct event_target *target, uint64_t generation, uint64_t newest,
    char ret_path[EVENT_PATH_BYTES])
{
    char number[48];
    char host[HOST_BYTES];
    uint64_t now_s = clock_wall_us() / CADRE_US_PER_S;
    name_host(host);
    if (target->job != 0 && newest == 0) {
        snprintf(number, sizeof number, "%010" PRIu64 ".%06" PRIu64, target->job, generation);
    } else {
        snprintf(number, sizeof number, "%010" PRIu64, now_s > newest ? now_s : newest + 1);
    }
    snprintf(ret_path, EVENT_PATH_BYTES, "%s/" FILE_PREFIX "%s.%s.%" PRIu32, target->folder, number,
        host, target->slot);
}

uint64_t event_target_newest(const struct event_target *target)
{
    const size_t prefix = sizeof FILE_PREFIX - 1;
    uint64_t newest = 0;
    DIR *folder = opendir(target->folder);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, FILE_PREFIX, prefix) == 0) {
            unsigned long long number = strtoull(entry->d_name + prefix, NULL, 10);
            bool counts = number > newest && number < NUMBER_MAX;
            newest = counts ? number : newest;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return newest;
}
