/* SPDX-License-Identifier: Apache-2.0
 * The state of a task at a position, for state sync and checkpoints: tensors of fixed size in one
 * canonical order, and a small text beside them (manifest.h) with all that has no fixed size.
 *
 * The tensors are one space of bytes: the mirrored value of each variable in order of name (of one
 * that is combined when read: its total), then each registered state in order of registration.
 * A sender reads ranges of it, a receiver writes them into every local component. Variables of
 * strings are in the text: here they have no bytes. */
#ifndef CADRE_RUNTIME_LAYOUT_STATE_H
#define CADRE_RUNTIME_LAYOUT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "common/model/limits.h"
#include "worker/library/runtime/strategy/strategy.h"

struct cadre_strategy;
struct cadre_variable;
struct device;

/* A tensor of the space. */
struct state_tensor {
    char name[LIMIT_NAME_BYTES + 16]; /* of a registered one: "state/" and its name */
    cadre_dtype dtype;                /* of a registered one: CADRE_U8 */
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    const void *data;      /* the first local replica's; NULL: of strings */
    struct device *device; /* in whose memory that is; NULL: the host's */
    size_t bytes;
    bool counts; /* in a file it is i64 [n], and the largest counts; n may be another than 1 */
};

/* The tensor of a variable, which the strategy need not have yet. */
struct state_tensor state_tensor_of(const struct cadre_variable *variable);

/* Tensor i, from 0 until false. */
bool state_tensor_at(
    const struct cadre_strategy *strategy, uint32_t i, struct state_tensor *ret_tensor);

/* Bytes of the whole space. */
size_t state_bytes(const struct cadre_strategy *strategy);

/* A hash of all names, types and shapes, of variables, registered states and distributed datasets:
 * equal on all tasks of a job, or their states do not fit. */
uint64_t state_layout(const struct cadre_strategy *strategy);

/* Copies a range of the space. Between steps, in one thread. Fails only when a device fails whose
 * memory a variable is in. */
cadre_status state_read(const struct cadre_strategy *strategy, size_t offset, void *into,
    size_t byte_count, struct cadre_error *error);

/* Begins to receive: with `keep`, the old values are kept so that a sender that dies half way costs
 * nothing (protocol, rule 11); RESOURCE_EXHAUSTED. Then ranges are written in any order; then
 * commit, or undo. Registered states are written only with `registered`, because a task that was in
 * the generation before has its own. */
cadre_status state_receive(
    struct cadre_strategy *strategy, bool keep, bool registered, struct cadre_error *error);
/* Writes a range of the space into all local components. */
cadre_status state_write(struct cadre_strategy *strategy, size_t offset, const void *from,
    size_t byte_count, struct cadre_error *error);
/* The received state counts: frees the old values. */
void state_commit(struct cadre_strategy *strategy);
/* Puts the old values back. */
void state_undo(struct cadre_strategy *strategy);

/* The received state is a checkpoint's: at the commit the replicas' components of variables that
 * are combined when read become what adds up to the total, instead of beginning again. */
void state_restored(void);

/* --- state_layout.c: names the difference of two layouts --- */

/* The first difference between this task's layout (state_layout) and that of the task of rank
 * `source`, which all tasks receive: INVALID_ARGUMENT, or another error. CADRE_OK: all that differ
 * lack only what steps have created there, and will make it. `differs`: this task's layout does. A
 * part of a strategy_function: every local replica of every task calls it, with the same source. */
cadre_status state_layout_compare(cadre_strategy *strategy, uint32_t local, uint32_t source,
    bool differs, struct cadre_error *error);

/* Fills `error`: the first text line that differs, but for variables that are missing here. `rank`
 * has `own`, `source` has `theirs`. */
cadre_status state_layout_difference(
    uint32_t rank, const char *own, uint32_t source, const char *theirs, struct cadre_error *error);

#endif
