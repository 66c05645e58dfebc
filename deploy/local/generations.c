/* SPDX-License-Identifier: Apache-2.0
 * The generations of the job, for those who keep what its tasks report. */
#include <stdlib.h>

#include "common/model/client_message.h"
#include "deploy/local/local_state.h"

struct verify_generation *local_generations(struct local *local, size_t *ret_count)
{
    struct cadre_error error;
    struct verify_generation *generations = calloc(LIMIT_METRIC_GENERATIONS, sizeof *generations);
    if (generations != NULL && engine_generations(local->engine, local->job, 0, generations,
                                   LIMIT_METRIC_GENERATIONS, ret_count, &error) != CADRE_OK) {
        free(generations);
        generations = NULL;
    }
    return generations;
}
