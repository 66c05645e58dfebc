/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model/strategy_names.h"

#include <stddef.h>

#include "common/model/ps_job.h"

const char *const strategy_names[] = {"mirrored", "multi_worker_mirrored", PS_JOB_STRATEGY, NULL};
