/* SPDX-License-Identifier: Apache-2.0
 * Named points where a test makes a call fail: the first run fails the first call, the next run
 * the second, until a run meets no fault any more. Always compiled in; one relaxed load where no
 * fault is armed. */
#ifndef CADRE_BASE_FAULT_H
#define CADRE_BASE_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern atomic_bool fault_armed;

/* What fault_point() calls once a fault is armed. */
bool fault_hits(const char *name);

/* True when the call at this point is to fail now, as if the system had refused it. Names are
 * "area.call", such as "file.fsync". Thread-safe. */
static inline bool fault_point(const char *name)
{
    return atomic_load_explicit(&fault_armed, memory_order_relaxed) && fault_hits(name);
}

/* For tests: the nth call (from 1) that passes a point whose name starts with `prefix` fails, once.
 * `prefix` is kept, not copied; "" matches every point. What other threads pass meanwhile may count
 * or not. */
void fault_arm(const char *prefix, uint64_t nth);

/* For tests: disarms, and returns whether the fault was met. A loop over nth ends when it was
 * not. */
bool fault_disarm(void);

#endif
