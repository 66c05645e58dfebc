/* SPDX-License-Identifier: Apache-2.0
 * A collective of a plain program: its arguments, checked and carried out. */
#ifndef CADRE_RUNTIME_PLAIN_CALL_H
#define CADRE_RUNTIME_PLAIN_CALL_H

#include "worker/library/runtime/plain/plain.h"

enum plain_kind {
    PLAIN_BARRIER = 1,
    PLAIN_BROADCAST,
    PLAIN_ALL_REDUCE,
    PLAIN_ALL_GATHER,
    PLAIN_REDUCE_SCATTER
};

/* What must be equal on all tasks, and what is this task's. */
struct plain_call {
    enum plain_kind kind;
    const char *function;
    size_t count;
    cadre_dtype dtype; /* CADRE_DTYPE_NONE: there are no elements */
    cadre_reduce_op op;
    uint32_t root;
    const void *from;
    void *into;
    const char *into_name; /* as the function calls it; unset: "into" */
    size_t bytes;          /* of `count` elements; computed by check */
};

/* The call of a public function among the tasks of a group that was entered, or could not be
 * (`entered`); leaves it, and returns as the function does. */
cadre_status plain_call_make(cadre_status entered, struct cadre_plain_group *group,
    struct plain_call *call, struct cadre_error *error);

/* INVALID_ARGUMENT: elements of that type cannot be sent, or no memory holds `count` times `times`
 * of them; else *ret_bytes are those of `count`. */
cadre_status plain_check_elements(const char *function, size_t count, cadre_dtype dtype,
    uint32_t times, size_t *ret_bytes, struct cadre_error *error);

/* Whether `bytes` at `a` and `other` bytes at `b`, neither NULL, have a byte in common. */
bool plain_overlap(const void *a, size_t bytes, const void *b, size_t other);

#endif
