/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/event_file/event_target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"

#define HOST_BYTES 65

bool event_target_find(
    const struct environment *environment, uint64_t number, struct event_target *ret_target)
{
    CADRE_ASSERT(number > 0);
    char run[32] = "";
    *ret_target = (struct event_target){.job = environment->job, .slot = environment->slot};
    if (environment->events == EVENTS_OFF ||
        (environment->events == EVENTS_BESIDE_OUTPUTS && !environment->output_asked)) {
        return false;
    }
    if (number > 1) {
        snprintf(run, sizeof run, "/%" PRIu64, number);
    }
    if (environment->events_folder[0] != '\0') {
        snprintf(
            ret_target->folder, sizeof ret_target->folder, "%s%s", environment->events_folder, run);
    } else {
        snprintf(ret_target->folder, sizeof ret_target->folder, "%s/events%s",
            environment->output_folder, run);
    }
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

void event_target_path(const struct event_target *target, uint64_t generation, uint32_t again,
    char ret_path[EVENT_PATH_BYTES])
{
    char host[HOST_BYTES];
    char taken[16] = "";
    name_host(host);
    if (again > 0) {
        snprintf(taken, sizeof taken, ".%" PRIu32, again);
    }
    if (target->job == 0) {
        snprintf(ret_path, EVENT_PATH_BYTES, "%s/events.out.tfevents.%010" PRIu64 ".%s.%ld%s",
            target->folder, clock_wall_us() / CADRE_US_PER_S, host, (long)getpid(), taken);
    } else {
        snprintf(ret_path, EVENT_PATH_BYTES,
            "%s/events.out.tfevents.%010" PRIu64 ".%06" PRIu64 ".%s.%" PRIu32 "%s", target->folder,
            target->job, generation, host, target->slot, taken);
    }
}
