/* SPDX-License-Identifier: Apache-2.0
 * What a store that is a copy of a shared log remembers of that log beside the rows; both peers
 * hold one of these. */
#ifndef CADRE_COORDINATOR_STORE_LOG_COPY_H
#define CADRE_COORDINATOR_STORE_LOG_COPY_H

#include "coordinator/store/store.h"

struct log_copy {
    struct store_position applied; /* index 0: no entry */
    struct store_cluster cluster;  /* id 0: none is known */
};

/* INTERNAL: the entry at `at` is applied already, or it has no number. */
cadre_status log_copy_check_next(
    const struct log_copy *copy, const struct store_position *at, struct cadre_error *error);

#endif
