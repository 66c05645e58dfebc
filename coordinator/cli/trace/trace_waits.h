/* SPDX-License-Identifier: Apache-2.0
 * Who waits for whom: of each collective, of the release of each step, and of the closures of each
 * step, which process came last, and until when the others waited for it. Pure. */
#ifndef CADRE_CLI_TRACE_TRACE_WAITS_H
#define CADRE_CLI_TRACE_TRACE_WAITS_H

#include "coordinator/cli/trace/trace_store.h"

static inline bool trace_is_collective(uint32_t kind)
{
    return kind >= CADRE_TRACE_ALL_REDUCE && kind <= CADRE_TRACE_BARRIER;
}

/* Fills in until_ns and waits_for of the spans of an aligned store, and which process is the chief.
 * False: no memory. */
bool trace_waits(struct trace_store *store);

#endif
