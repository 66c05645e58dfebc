/* SPDX-License-Identifier: Apache-2.0
 * What a strategy keeps from one generation to the next, and of the one that it is in. */
#ifndef CADRE_RUNTIME_REGROUP_PART_H
#define CADRE_RUNTIME_REGROUP_PART_H

#include "worker/library/runtime/regroup/points.h"

struct outside_log;

struct regroup_part {
    struct outside_log *outside;
    uint64_t outside_count;           /* outside collectives since the last step */
    struct told_devices told_devices; /* of all tasks of the generation */
    uint64_t warned_devices; /* 1 + the generation of the last warning of them */
};

#endif
