/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints, and state that is no variable. (tf.train.Checkpoint, tf.train.CheckpointManager,
 * tf.keras.callbacks.BackupAndRestore.)
 *
 * A checkpoint is checkpoint-<position>.safetensors (the variables by name, readable from any
 * language) and checkpoint-<position>.json (the manifest: where the ledger stands, and a checksum
 * for each block). A job that is started from one goes on in the middle of the epoch, with any
 * number of tasks. They are written where the job was told to (`cadre submit --checkpoint-every`,
 * `--checkpoint-folder`, by hand CADRE_CHECKPOINT_EVERY, CADRE_CHECKPOINT_DIR), and the newest few
 * are kept. cadre_finish writes the last one. */
#ifndef CADRE_CHECKPOINT_H
#define CADRE_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_POSITION_NONE UINT64_MAX

/* Saves now: the state after the last step. Collective over the tasks, and belongs to that step.
 * Returns once the state is copied; it is written meanwhile. With `wait` it returns when the
 * checkpoint is published: on disk, and readable without the host that wrote it. Cross-replica
 * context. A failure to write comes out here when it is waited for (and of the next call else);
 * the training may go on. (tf.train.CheckpointManager.save.) */
CADRE_API cadre_status cadre_save(cadre_strategy *strategy, bool wait);

/* The position of the newest published checkpoint of the job, as far as this task knows;
 * CADRE_POSITION_NONE: there is none. Any thread. (tf.train.latest_checkpoint.) */
CADRE_API uint64_t cadre_checkpoint_latest(const cadre_strategy *strategy);

/* `size` bytes at `pointer`, which the program keeps, belong to the state: a task that joins later
 * gets them, and checkpoints hold them. They are the same on all tasks; the program changes them
 * between steps only, and alike on all. They are no part of a step: one that fails and is run again
 * does not undo them. `name`: 1 to 127 bytes of printable ASCII, unique among the registered. All
 * tasks register the same in the same order, before the first step (FAILED_PRECONDITION after).
 * What a task needs to go on is a variable or is registered. (tf.train.Checkpoint's other
 * trackables.) */
CADRE_API cadre_status cadre_state_register(
    cadre_strategy *strategy, const char *name, void *pointer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
