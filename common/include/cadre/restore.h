/* SPDX-License-Identifier: Apache-2.0
 * Values out of a checkpoint, into a job that begins from the start. (tf.train.Checkpoint.restore
 * and the status that it returns.)
 *
 *     cadre_restore(strategy, "pretrained", &found);        the newest whole one in that folder
 *       variables that are there      have their values when it returns
 *       variables that come later     are created with theirs
 *     cadre_restored(strategy, CADRE_RESTORED_EXISTING, NULL);   no variable was left out
 *
 * Values are matched by name: of variables, of metrics, and of registered state
 * (cadre_state_register). Where the training of the checkpoint stood is not taken over: the job
 * begins at step 0, with its datasets at their beginning. A job that is to go on where another one
 * stood is started from its checkpoint (CADRE_RESTORE, `--restore`: cadre/checkpoint.h). */
#ifndef CADRE_RESTORE_H
#define CADRE_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What was restored, and what was not found. Names are in order; they and the lists are the
 * strategy's, until the next call of one of the two functions below. */
typedef struct cadre_restore_result {
    const char *path;  /* of the manifest, or file of tensors, that was chosen; NULL: passed over */
    bool passed_over;  /* the values of the job count, and nothing was looked at */
    uint32_t restored; /* variables and registered states that have their value from it */
    uint32_t missing_count; /* those of the program that it holds nothing of, "state/<name>" */
    const char *const *missing;
    uint32_t unused_count; /* values that it holds, and that nothing of the program took */
    const char *const *unused;
} cadre_restore_result;

/* Gives variables their values from `path`: the manifest of a checkpoint (its .json file), a folder
 * (its newest whole checkpoint, with a warning when a newer one is damaged), or a safetensors file,
 * of whatever origin (cadre/export.h). The first task reads, and every byte that has a checksum is
 * looked at before a variable is touched; all others get the values from it, so replicas are equal.
 * Variables that are there get theirs before it returns, those that are created afterwards where
 * they are created, in place of their initial value; one that it does not hold keeps what it has,
 * or begins with its initial value. Of a variable that is combined when read it is the total. A
 * second call counts instead of the first for what it holds. `ret_result`: as of cadre_restored;
 * may be NULL.
 * Collective: all tasks name the same path, before the first step (FAILED_PRECONDITION after it;
 * assign then). INVALID_ARGUMENT: a value has another type or shape than the variable; here, or of
 * one that comes later where that is created. NOT_FOUND: there is no such file, or no checkpoint in
 * the folder. DATA_LOSS names what is damaged, and a checkpoint beside it that is whole. All tasks
 * get the same code, and nothing was changed; but by hand, when the file can no longer be read
 * while values are given, those that were given stay, and a job ends with that.
 * In a job that goes on from its own checkpoint, and in a task that joins later, it does nothing
 * (`passed_over`): there the values of the job count. Cross-replica context.
 * Variables on servers (cadre/served.h) take theirs likewise, with what their optimizer remembers
 * if that is there, and wherever those of the checkpoint lay. (tf.train.Checkpoint.restore,
 * also of variables that are created later.) */
CADRE_API cadre_status cadre_restore(
    cadre_strategy *strategy, const char *path, cadre_restore_result *ret_result);

/* What is wanted of a restore. */
typedef enum cadre_restore_match {
    CADRE_RESTORED_PARTIAL = 0, /* whatever it found (expect_partial) */
    CADRE_RESTORED_SOME,        /* at least one value was taken (assert_nontrivial_match) */
    CADRE_RESTORED_EXISTING,    /* each variable and registered state that there is now has a value
                                   from it (assert_existing_objects_matched) */
    CADRE_RESTORED_CONSUMED     /* that, and all that it holds was taken (assert_consumed) */
} cadre_restore_match;

/* How the newest cadre_restore matches the variables that there are now; `ret_result` may be NULL.
 * FAILED_PRECONDITION: it is not as `match` requires, and what is left is named; `ret_result` is
 * filled in all the same; or there was no cadre_restore. What was passed over is as wanted. Any
 * time; cross-replica context, no collective. (The asserts of the status that
 * tf.train.Checkpoint.restore returns.) */
CADRE_API cadre_status cadre_restored(
    cadre_strategy *strategy, cadre_restore_match match, cadre_restore_result *ret_result);

#ifdef __cplusplus
}
#endif
#endif
