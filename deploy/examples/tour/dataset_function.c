/* SPDX-License-Identifier: Apache-2.0
 * A dataset that the program makes for each worker: the function asks its context for the size of
 * a replica's batch, and takes this worker's part of the elements. */
#include <cadre/cadre.h>
#include <stdio.h>

#include "show.h"

static cadre_status make_data(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)user;
    int64_t size;
    CADRE_TRY(cadre_per_replica_batch_size(context, 8, &size));
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 2, (int64_t[]){1, 1}, (float[]){1}, &one));
    cadre_dataset *data = cadre_dataset_tensors(&one, 1);
    cadre_tensor_release(one);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, CADRE_REPEAT_FOREVER), size, false);
    *ret_data = cadre_dataset_shard(data, context->num_input_pipelines, context->input_pipeline_id);
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    /* It has no end: an epoch is as many steps as are asked for. */
    const cadre_input_options options = {.steps_per_epoch = 2};
    CADRE_CHECK(
        cadre_distribute_datasets_from_function(strategy, make_data, NULL, &options, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            show_replicas(batch, 0);
        }
    }
    return cadre_finish(strategy);
}
