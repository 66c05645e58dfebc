/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints, and state that is no variable. (tf.train.Checkpoint, tf.train.CheckpointManager,
 * tf.keras.callbacks.BackupAndRestore.)
 *
 * A checkpoint is checkpoint-<position>.safetensors (the variables by name, readable from any
 * language) and checkpoint-<position>.json (the manifest: the ledger's position, strings, and a
 * checksum for each block). The bytes of the first depend on the state alone. They are written
 * where the job's options say (`cadre submit --checkpoint-every`, `--checkpoint-folder`, by hand
 * CADRE_CHECKPOINT_EVERY, CADRE_CHECKPOINT_DIR; else to the output folder), and the newest few are
 * kept (CADRE_CHECKPOINTS_KEPT) once they are published. cadre_finish writes the last one; by hand
 * only where one of these variables, CADRE_OUTPUT_DIR or CADRE_RESTORE is set, or cadre_save was
 * called: else a program leaves no files. With CADRE_CHECKPOINT_DIR alone they are all there.
 *
 * Each path of checkpoints may be "s3://bucket/key" of an object store, which the program reaches
 * with what Amazon's tools would find: AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID and the
 * others of its environment (of a job: `cadre submit --env`), files in ~/.aws, or the metadata
 * service of its host. A checkpoint is seen there when it is whole, and not before. What
 * another task of a job than the first one writes has its incarnation in the name, as in
 * checkpoint-120.7.json, so that no task that was replaced writes over what counts.
 *
 * A job that is started from one (`cadre submit --restore`, `cadre run --restore`, by hand
 * CADRE_RESTORE) goes on in the middle of the epoch, with any number of tasks. It finds there all
 * variables and registered states that it makes, by name and of the same type and shape, or fails
 * and names what differs; what it does not make is passed over. They hold it from their creation
 * on, also when no step follows. What the program assigns to them before it comes to a step (or to
 * cadre_save, cadre_finish) is undone there, for it did that before the checkpoint, too. Datasets
 * are found again by name; one in the middle of an epoch must have as many steps in it as it had.
 *
 * A program may set all of this itself (cadre_checkpoint_manager); what is set from outside counts
 * before it. Values alone, into a job that begins from the start: cadre/restore.h.
 *
 * The training waits for a copy in memory only, which takes as much memory as the variables have; a
 * thread of the chief writes it. One that is due while the one before is still being written is
 * left out, with a warning; a failure to write is a warning too, and the training goes on. */
#ifndef CADRE_CHECKPOINT_H
#define CADRE_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In place of a position where there is no checkpoint. */
#define CADRE_POSITION_NONE UINT64_MAX

/* Where checkpoints go, and how many are kept. Zeroed: as without a manager, but that a program
 * which is started by hand leaves its checkpoints in the output folder. */
typedef struct cadre_checkpoint_options {
    /* Made if it is not there, or "s3://bucket/key"; NULL: the output folder. */
    const char *directory;
    uint32_t max_to_keep;  /* 1 to 1000; 0: 3 */
    uint64_t every_steps;  /* 0: at the end, and by cadre_save (checkpoint_interval) */
    /* Goes on from the newest whole one in the directory, as with CADRE_RESTORE: in the middle of
     * the epoch, with all that checkpoints hold. Where there is none it begins from the start. */
    bool restore_or_initialize;
} cadre_checkpoint_options;

/* Where the checkpoints of this program go, how many are kept, and whether it goes on from them.
 * Once, between cadre_init and the strategy (FAILED_PRECONDITION); copied. Then cadre_save and
 * cadre_finish write there, cadre_checkpoint_latest and cadre_checkpoints list what there is. By
 * hand what CADRE_CHECKPOINT_DIR, CADRE_CHECKPOINTS_KEPT, CADRE_CHECKPOINT_EVERY and
 * CADRE_RESTORE set counts before it. Without restore_or_initialize a directory that holds
 * checkpoints already is FAILED_PRECONDITION, for two runs would be one there. In programs that
 * are a cluster by hand (cadre/program.h) restore_or_initialize is FAILED_PRECONDITION: set
 * CADRE_RESTORE in all of them. In a job of a daemon, of `cadre run` too, checkpoints go where
 * the job's options say, and as many are kept: a warning says so when that is another directory.
 * `every_steps` counts where the job has no such option. A job that is started again goes on by
 * itself; a new one goes on from another's by `--restore`. (tf.train.CheckpointManager, its
 * restore_or_initialize.) */
CADRE_API cadre_status cadre_checkpoint_manager(const cadre_checkpoint_options *options);

/* The positions of the checkpoints of this run that are published and kept, oldest first: at most
 * `room` of them, the newest; *ret_count is how many there are. Collective: the first task looks
 * into the folder that it writes to, and all get the same. So in a job whose checkpoints go to the
 * coordinator those are left out that a first task before it wrote on another host; `cadre job`
 * lists all. In a task that joins later there are none. Cross-replica context.
 * (tf.train.CheckpointManager.checkpoints.) */
CADRE_API cadre_status cadre_checkpoints(
    cadre_strategy *strategy, uint64_t *ret_positions, uint32_t room, uint32_t *ret_count);

/* Saves now: the state after the last step. Collective over the tasks, and belongs to that step;
 * it fails on all or on none. Returns once the state is copied (and the one before is written); it
 * is written meanwhile. With `wait` it returns when the checkpoint is published: on disk, and
 * readable without the host that wrote it. Cross-replica context. A failure to write comes out here
 * when it is waited for, and of the next call else: on the chief as it was, on the others as
 * ABORTED. The training may go on after it. In a task that joins later it does nothing. In a job
 * that goes on from a checkpoint all variables and datasets are made before it.
 * (tf.train.CheckpointManager.save.) */
CADRE_API cadre_status cadre_save(cadre_strategy *strategy, bool wait);

/* The position of the newest published checkpoint of the job, as far as this task has been
 * informed; CADRE_POSITION_NONE: there is none. Any thread. (tf.train.latest_checkpoint.) */
CADRE_API uint64_t cadre_checkpoint_latest(const cadre_strategy *strategy);

/* Registers `size` bytes at `pointer`, which the program keeps, as a part of the state: a task that
 * joins later gets them, and checkpoints hold them. They are the same on all tasks; the program
 * changes them between steps only, and alike on all. They are no part of a step: one that
 * fails and is run again does not undo them. What is taken of them, for a task that joins and
 * for a checkpoint on the way, is what they are where cadre_run begins the step (a preemption:
 * in cadre_next, where a step has a batch). There they are given, too: in a task that joins,
 * and in a program that goes on from that checkpoint, they hold it when cadre_next_epoch has
 * led to the step, for the program to look at, and are set to it once more by the first
 * cadre_run (cadre_next), also when the program changed them in between. So all that a loop
 * changes counts once, before cadre_next, before cadre_run or behind it. cadre_save and
 * cadre_finish take what they are when they are called: call cadre_save behind what the last
 * step changes and before what the next one does. All tasks must hold the same bytes there
 * where cadre_run begins a step, and where the program saves or ends: they are compared
 * (CADRE_VERIFY_STATE, cadre/program.h), padding between members of a struct too, so set it to
 * zero as a whole before it is filled in. In a checkpoint they are a tensor of bytes called
 * "state/<name>". `name`: 1 to 127 bytes of printable ASCII, unique among the registered
 * (ALREADY_EXISTS; "state/<name>" is no variable's either). Collective: all tasks register the
 * same in the same order (INVALID_ARGUMENT on all otherwise), before the first step
 * (FAILED_PRECONDITION after). All state from which a task goes on is a variable or is
 * registered. After cadre_restore they hold what that file does of them, if it does.
 * (tf.train.Checkpoint's other trackables.) */
CADRE_API cadre_status cadre_state_register(
    cadre_strategy *strategy, const char *name, void *pointer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
