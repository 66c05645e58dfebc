/* SPDX-License-Identifier: Apache-2.0
 * With which step the generations of a job began whose program numbers its steps itself: the ledger
 * counts its saves. No I/O and no allocation. */
#ifndef CADRE_COORDINATOR_SERIES_SERIES_STARTS_H
#define CADRE_COORDINATOR_SERIES_SERIES_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/limits.h"

struct series_start {
    uint64_t generation;
    uint64_t step; /* of its first value */
};

/* Zeroed: none. */
struct series_starts {
    size_t count;
    struct series_start items[LIMIT_METRIC_GENERATIONS]; /* by rising generations */
};

/* The first value of a generation; where there are too many the oldest is dropped. False, and
 * nothing changes: it is not newer than the newest. */
bool series_starts_note(struct series_starts *starts, uint64_t generation, uint64_t step);

/* The step that was done when the generation began. One that reported nothing began where the next
 * one did, or, without one, behind `newest`, the newest step that has a value. */
uint64_t series_starts_find(
    const struct series_starts *starts, uint64_t generation, uint64_t newest);

#endif
