/* SPDX-License-Identifier: Apache-2.0
 * The options of one collective: those of the call, and the strategy's for what the call leaves
 * out. */
#ifndef CADRE_RUNTIME_COLLECTIVE_OPTIONS_H
#define CADRE_RUNTIME_COLLECTIVE_OPTIONS_H

#include "cadre/collective.h"
#include "common/base/error.h"

struct collective_settings {
    size_t bytes_per_pack;
    uint64_t timeout_us; /* 0: the job's */
};

/* Field by field: `options` (may be NULL) where it is not the default, else the strategy's.
 * INVALID_ARGUMENT for a timeout or an implementation that is not allowed. */
cadre_status collective_options_settle(const cadre_strategy *strategy,
    const cadre_collective_options *options, struct collective_settings *ret_settings,
    struct cadre_error *error);

/* How long a collective of the strategy that has no options waits; 0: as long as the job's. */
uint64_t collective_options_timeout_us(const cadre_strategy *strategy);

#endif
