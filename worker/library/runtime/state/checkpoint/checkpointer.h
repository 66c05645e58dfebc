/* SPDX-License-Identifier: Apache-2.0
 * The inside of the checkpointer, shared by its files. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINTER_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/task_message.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_copy.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"

#define CHECKPOINT_AGREED_MAX 4

struct checkpointer {
    struct cadre_strategy *strategy;
    const char *folder; /* the environment's */
    bool shared;
    bool asked;      /* for: by the environment, or the program has saved */
    uint64_t writer; /* in the names (checkpoint_folder.h); 0: none */
    uint64_t every;  /* 0: only on demand */
    uint32_t kept;
    char run[MANIFEST_RUN_BYTES]; /* "": not known yet */
    uint64_t restored_at;         /* POSITION_NONE: the state did not come from a checkpoint */
    uint64_t tried_at;            /* of the newest copy that was tried or left out at a step */
    uint64_t tidied;              /* published when old ones were deleted last */
    bool late_reported;           /* that one was left out */
    struct checkpoint_copy copy;  /* the writer's while `writing` */

    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    pthread_t thread;
    bool thread_runs;
    bool writing; /* the copy is to be written, or is being written */
    bool tidying; /* likewise: old ones are to be deleted */
    bool closing;
    uint64_t published;    /* what to delete is older */
    uint64_t written;      /* of `part`; POSITION_NONE: none */
    struct task_part part; /* the newest that is on disk */
    /* Used by checkpoint_agreed.c; of the copy. */
    uint64_t held; /* the digest of what was copied; 0: not known */
    uint64_t agreed[CHECKPOINT_AGREED_MAX];
    uint32_t agreed_count;      /* that were added; the newest are kept */
    struct cadre_error failure; /* of a write, that the program has not received; code OK: none */
    char part_path[CHECKPOINT_NAME_BYTES];
};

/* The name of the run: chosen now when there is none. */
cadre_status checkpointer_name_run(struct checkpointer *checkpointer, struct cadre_error *error);

#endif
