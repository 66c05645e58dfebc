/* SPDX-License-Identifier: Apache-2.0
 * Where a task's event files go, and their names. Readers take the files of a folder in the order
 * of their names, so that order is the order in which the steps were applied, whatever the hosts'
 * clocks say:
 *
 *     events.out.tfevents.JOB.GENERATION.HOST.TASK      ten digits, six, a name, a number
 *     events.out.tfevents.SECONDS.HOST.PROCESS          by hand: Unix time
 *
 * A name that is taken gets ".1", ".2", ... behind it. */
#ifndef CADRE_RUNTIME_EVENT_FILE_EVENT_TARGET_H
#define CADRE_RUNTIME_EVENT_FILE_EVENT_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/runtime/api/environment.h"

#define EVENT_FOLDER_BYTES (ENVIRONMENT_FOLDER_BYTES + 64)
#define EVENT_PATH_BYTES   (EVENT_FOLDER_BYTES + 256)

struct event_target {
    char folder[EVENT_FOLDER_BYTES];
    uint64_t job; /* 0: by hand */
    uint32_t slot;
};

/* False: the task's environment wants no event files. `number`, from 1, is that of the strategy in
 * its process: all but the first have a folder of their own beneath, which TensorBoard shows as
 * another run. */
bool event_target_find(
    const struct environment *environment, uint64_t number, struct event_target *ret_target);

/* The path of the file that a chief begins in `generation`, `again` times after the first name was
 * taken. */
void event_target_path(const struct event_target *target, uint64_t generation, uint32_t again,
    char ret_path[EVENT_PATH_BYTES]);

#endif
