/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: the chief copies its state between two steps, a thread of its own writes it, fsyncs
 * file and folder, renames, and reports it to the coordinator, which publishes it once every member
 * has come as far (protocol, rule 18). Other tasks do nothing. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

struct cadre_strategy;
struct checkpointer;

/* Makes the writer, without a thread until it is needed, with the settings of the strategy's
 * environment. */
cadre_status checkpointer_open(struct cadre_strategy *strategy,
    struct checkpointer **ret_checkpointer, struct cadre_error *error);

/* Ends the thread, after what it is writing, and frees what was registered. Before the task is
 * closed. Accepts NULL. */
void checkpointer_close(struct checkpointer *checkpointer);

/* The program is about to enter the step at the task's position, in the program's thread, with no
 * replica running: takes a copy when one is due there and this task is the chief. A failure to copy
 * or write is reported to people (a checkpoint is missing) and does not stop the training. One that
 * is due while the one before is still being written is left out. */
void checkpoint_at_step(struct cadre_strategy *strategy);

/* The first position after `position` at which a checkpoint is due without a demand; POSITION_NONE:
 * none is. */
uint64_t checkpoint_next(const struct cadre_strategy *strategy, uint64_t position);

/* Whether this task took one, or tried to, before the step at `position`. */
bool checkpoint_taken_at(const struct cadre_strategy *strategy, uint64_t position);

/* The last one, of cadre_finish, of a state whose digest is `held` (0: not compared): the chief
 * takes a copy and waits until it is published; nothing is written when it is already, by a chief
 * before this one. The tensors are in the output folder too when checkpoints go to a shared one.
 * Nothing on other tasks, and by hand where no checkpoints were set. ABORTED when the generation
 * ends before that: the caller regroups and calls again. DATA_LOSS: the bytes written are not that
 * state; it is not published, and is written again when this is called again. */
cadre_status checkpoint_save(
    struct cadre_strategy *strategy, uint64_t held, struct cadre_error *error);

/* Whether a checkpoint can be written to its folder: called by the creation of the first variable,
 * before the training. An outside collective, by which all receive the name of this run; with a
 * shared folder a token that the chief leaves there proves that all have the same folder. A warm
 * task tries for itself only, and proves it when it joins. */
cadre_status checkpoint_probe(struct cadre_strategy *strategy, struct cadre_error *error);

/* While others join: with a shared folder the task of rank `source` leaves a token there, and a
 * joiner that does not find it fails with FAILED_PRECONDITION. That ends this task alone: the
 * others go on, and the coordinator receives no failure. Every task calls it. */
cadre_status checkpoint_verify_folder(
    struct cadre_strategy *strategy, uint32_t source, struct cadre_error *error);

/* Fills the strategy's state from the manifest `path` and the file beside it: variables by name,
 * but those that hold it already (`restored`), registered states, positions. While
 * strategy_is_warm. DATA_LOSS: a block that does not match its checksum, or a tensor its hash;
 * NOT_FOUND: a variable that it does not hold; INVALID_ARGUMENT: another type or shape, or no
 * manifest. Values that the program does not have are ignored. After an error the state is
 * unchanged, but for a tensor that does not match its hash: that is found when all is taken over.
 */
cadre_status checkpoint_load(struct cadre_strategy *strategy, const char *path,
    uint64_t *ret_position, struct cadre_error *error);

/* The job stops at this task's position: when it returns the chief has written its state, and
 * reported it; others do nothing. */
cadre_status checkpoint_before_stop(struct cadre_strategy *strategy, struct cadre_error *error);

/* --- checkpoint_agreed.c: whether the copy that the chief writes is the state of all replicas; a
 * bit may flip in it between the moment when it is taken and the one when the writer hashes it ---
 */

/* The replicas' states at `position` were compared, and all have this digest: the part that is
 * written, or will be, is reported with that. Any thread in which no copy is taken. */
void checkpoint_agreed(const struct cadre_strategy *strategy, uint64_t position, uint64_t digest);

/* Under the lock: a copy is taken, of a state that has the digest `held`; 0: that is not known. */
void checkpoint_agreed_begin(struct checkpointer *checkpointer, uint64_t held);
/* Under the lock: whether the copy's digest is one that all replicas had there. */
bool checkpoint_agreed_on(const struct checkpointer *checkpointer, uint64_t digest);

#endif
