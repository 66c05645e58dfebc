/* SPDX-License-Identifier: Apache-2.0
 * Tensors of a checkpoint that are on parameter servers. They are no part of the state's space and
 * are never copied as a whole: the writer reads them piece by piece, while it writes. */
#ifndef CADRE_RUNTIME_LAYOUT_STREAMED_H
#define CADRE_RUNTIME_LAYOUT_STREAMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/state/format/safetensors.h"

struct cadre_strategy;
struct streamed;

/* Receives a tensor's bytes, in order. */
typedef cadre_status streamed_sink(
    void *user, const void *bytes, size_t size, struct cadre_error *error);

/* Any thread. Tensors are only ever added, after the others. */
struct streamed_ops {
    uint32_t (*count)(struct streamed *streamed);
    /* Tensor i < count: name, type, shape and bytes. */
    void (*describe)(struct streamed *streamed, uint32_t i, struct safetensors_entry *ret_entry);
    /* Whether it belongs to another one, as an optimizer's slot does to a variable. */
    bool (*is_part)(struct streamed *streamed, uint32_t i);
    /* Whether it would be a variable in a job without servers: an optimizer's slot. *ret_counts: of
     * several i64 numbers it would be the largest (cadre_variable.counts). */
    bool (*is_slot)(struct streamed *streamed, uint32_t i, bool *ret_counts);
    /* Writes all of its bytes to the sink, as they are meanwhile. */
    cadre_status (*read)(struct streamed *streamed, uint32_t i, streamed_sink *sink, void *user,
        struct cadre_error *error);
    /* Gives one that belongs to no other, and those that belong to it, their values of the
     * strategy's restoration. */
    cadre_status (*take)(struct streamed *streamed, const struct cadre_strategy *strategy,
        uint32_t i, struct cadre_error *error);
    /* Changes whenever one of them does. False: it is not known now. */
    bool (*stamp)(struct streamed *streamed, uint64_t *ret_stamp);
};

/* Embedded by its owner, which sets `streamed` of the strategy. */
struct streamed {
    const struct streamed_ops *ops;
};

/* How many the strategy has; 0 without any. */
uint32_t streamed_count(const struct cadre_strategy *strategy);

/* Whether one of them is in checkpoints under `name`. */
bool streamed_has_name(const struct cadre_strategy *strategy, const char *name);

/* The stamp of all. False: it is not known. Without any always the same. */
bool streamed_stamp(const struct cadre_strategy *strategy, uint64_t *ret_stamp);

#endif
