/* SPDX-License-Identifier: Apache-2.0
 * What a dataset function returns goes to the replicas as it is: nothing is cut, sharded or put
 * together. This one batches twice, so 64 rows are few elements, and some replicas get none. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

static cadre_status make_data(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)user;
    int64_t size;
    CADRE_TRY(cadre_per_replica_batch_size(context, 16, &size));
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){1}, (float[]){1}, &one));
    cadre_dataset *data = cadre_dataset_tensors((cadre_tensor *[]){one, one}, 2);
    cadre_tensor_release(one);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, 64), 16, false);
    data = cadre_dataset_shard(data, context->num_input_pipelines, context->input_pipeline_id);
    data = cadre_dataset_batch(data, size, false);
    *ret_data = cadre_dataset_prefetch(data, 2);
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_distribute_datasets_from_function(strategy, make_data, NULL, NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            for (uint32_t r = 0; r < cadre_per_replica_count(batch); r++) {
                const cadre_tensor *rows = cadre_local_results(batch, 0)[r];
                printf("%s%" PRId64 " x %" PRId64 " rows", r > 0 ? ", " : "",
                    cadre_tensor_dim(rows, 0), cadre_tensor_dim(rows, 1));
            }
            printf("\n");
        }
    }
    return cadre_finish(strategy);
}
