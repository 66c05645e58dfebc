/* SPDX-License-Identifier: Apache-2.0
 * Where a task's event files go, and their names. Readers take the files of a folder in the order
 * of their names, so that has to be the order in which the steps were applied, whatever the hosts'
 * clocks say. The first file in a folder of a job's task is named by the ledger, because `cadre
 * get` puts those of all tasks together:
 *
 *     events.out.tfevents.JOB.GENERATION.HOST.TASK    ten digits, six, a name, a number
 *     events.out.tfevents.SECONDS.HOST.TASK           by hand, and behind others: ten digits
 *
 * The seconds are Unix time, and greater than those of all files that are there. */
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

/* False: the task's environment wants no event files. `run`: a folder beneath, which TensorBoard
 * shows as another run; "": none. */
bool event_target_find(
    const struct environment *environment, const char *run, struct event_target *ret_target);

/* The path of the file that a chief begins in `generation`. `newest`: the greatest number of the
 * event files in the folder; 0: it has none. */
void event_target_path(const struct event_target *target, uint64_t generation, uint64_t newest,
    char ret_path[EVENT_PATH_BYTES]);

/* That number, of a folder that is there. */
uint64_t event_target_newest(const struct event_target *target);

#endif
