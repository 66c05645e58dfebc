/* SPDX-License-Identifier: Apache-2.0
 * Preprocessing in the pipeline: texts become the numbers that a vocabulary gives them; 0 stands
 * for all that it does not hold. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status make_data(
    const cadre_input_context *context, cadre_dataset **ret_data, void *lookup)
{
    static const cadre_string texts[] = {{"a", 1}, {"c", 1}, {"e", 1}};
    int64_t size;
    CADRE_TRY(cadre_per_replica_batch_size(context, 4, &size));
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_from_data(CADRE_STRING, 1, (int64_t[]){3}, texts, &tensor));
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, CADRE_REPEAT_FOREVER), size, false);
    data = cadre_dataset_shard(data, context->num_input_pipelines, context->input_pipeline_id);
    *ret_data = cadre_dataset_map(data, cadre_lookup_map, lookup, NULL);
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    static const char *const vocabulary[] = {"a", "b", "c", "d", "f"};
    cadre_strategy *strategy;
    cadre_lookup *lookup;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_lookup_strings(vocabulary, 5, NULL, &lookup));
    const cadre_input_options options = {.steps_per_epoch = 3};
    CADRE_CHECK(
        cadre_distribute_datasets_from_function(strategy, make_data, lookup, &options, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            show_replicas(batch, 0);
        }
    }
    int status = cadre_finish(strategy);
    cadre_lookup_release(lookup); /* after the strategy, whose pipelines use it */
    return status;
}
