/* SPDX-License-Identifier: Apache-2.0
 * What a strategy keeps from one generation to the next, and of the one that it is in. */
#ifndef CADRE_RUNTIME_REGROUP_PART_H
#define CADRE_RUNTIME_REGROUP_PART_H

#include "worker/library/runtime/regroup/member_status.h"

struct between_steps_log;

struct regroup_part {
    struct between_steps_log *between_steps;
    uint64_t between_steps_count;         /* outside collectives since the last step */
    struct device_summary device_summary; /* of all tasks of the generation */
    uint64_t warned_devices;              /* 1 + the generation of the last warning of them */
};

#endif
