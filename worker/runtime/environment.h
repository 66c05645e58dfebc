/* SPDX-License-Identifier: Apache-2.0
 * What a daemon tells a program in its environment. Absent variables mean a program started by
 * hand.
 *
 *     CADRE_SOCKET      path of the daemon's Unix socket for this task; absent: by hand
 *     CADRE_JOB         number of the job
 *     CADRE_SLOT        this task of the job, from 0
 *     CADRE_INCARNATION which life of the task, from 1
 *     CADRE_TASKS       tasks of the job, default 1
 *     CADRE_TASKS_MIN   the fewest that it trains with, default CADRE_TASKS
 *     CADRE_REPLICAS    local replicas; 0 or absent: the program's own choice
 *     CADRE_STRATEGY    for cadre_strategy_default: mirrored, multi_worker_mirrored; "" or absent:
 *                       by the number of tasks
 *     CADRE_MESH_HOST   address for the mesh's listener, default 127.0.0.1
 *     CADRE_OUTPUT_DIR  where the checkpoint goes, default "."
 *     CADRE_TASK_FRAME  version of the frames that the daemon speaks
 *     CADRE_RESTORE     manifest of the checkpoint to go on from; absent: from the beginning
 *     CADRE_CHECKPOINT_EVERY
 *                       steps between checkpoints; 0 or absent: only at the end and when asked
 *     CADRE_CHECKPOINT_DIR
 *                       folder for checkpoints that all hosts see; absent: the output folder
 *     CADRE_CHECKPOINTS_KEPT
 *                       how many are kept, default 3
 *
 * The last four may be set by hand too. And what a user may set always:
 *
 *     CADRE_COLLECTIVE_TIMEOUT_S  how long a collective waits for a replica that does not come, in
 *                                 seconds, default 1800; 0: for ever */
#ifndef CADRE_RUNTIME_ENVIRONMENT_H
#define CADRE_RUNTIME_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/limits.h"

#define ENVIRONMENT_SOCKET_BYTES 108 /* sun_path of struct sockaddr_un */
#define ENVIRONMENT_FOLDER_BYTES 4096

struct environment {
    bool attached; /* a daemon started this program */
    char socket_path[ENVIRONMENT_SOCKET_BYTES];
    uint64_t job;
    uint32_t slot;
    uint64_t incarnation;
    uint32_t tasks;
    uint32_t tasks_min;
    uint32_t replicas;
    char strategy[LIMIT_NAME_BYTES];
    char mesh_host[LIMIT_ADDRESS_BYTES];
    char output_folder[ENVIRONMENT_FOLDER_BYTES];
    uint64_t collective_timeout_us;                   /* 0: none */
    char restore_path[ENVIRONMENT_FOLDER_BYTES];      /* "": none */
    char checkpoint_folder[ENVIRONMENT_FOLDER_BYTES]; /* "": the output folder */
    uint64_t checkpoint_every;
    uint32_t checkpoints_kept;
};

/* INVALID_ARGUMENT names the variable, its value and what it should hold; FAILED_PRECONDITION when
 * the daemon's frames have another version. */
cadre_status environment_read(struct environment *ret_environment, struct cadre_error *error);

#endif
