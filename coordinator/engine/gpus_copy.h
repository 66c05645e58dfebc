/* SPDX-License-Identifier: Apache-2.0
 * What a worker reported of its GPUs, kept for listings. */
#ifndef CADRE_COORDINATOR_ENGINE_GPUS_COPY_H
#define CADRE_COORDINATOR_ENGINE_GPUS_COPY_H

#include "common/model/gpus.h"

/* One block with all that it points to, to be freed with free(). NULL: out of memory. Texts that
 * are NULL become "". */
struct gpus *gpus_copy(const struct gpus *gpus);

#endif
