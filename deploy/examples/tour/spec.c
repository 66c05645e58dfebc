/* SPDX-License-Identifier: Apache-2.0
 * The types and shapes that a step is given are known before the first one. The step returns its
 * pair of inputs twice: several outputs are several values. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

static cadre_status pair_twice(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    for (int i = 0; i < 4; i++) {
        outputs[i] = cadre_tensor_retain(inputs[i % 2]);
    }
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch, *outputs[4];
    cadre_element_spec spec;
    cadre_tensor *one;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){1}, (float[]){1}, &one));
    cadre_dataset *data = cadre_dataset_tensors((cadre_tensor *[]){one, one}, 2);
    cadre_tensor_release(one);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, 100), 16, false);
    const cadre_input_options options = {.steps_per_epoch = 5};
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, &options, &distributed));
    CADRE_CHECK(cadre_distributed_spec(distributed, &spec));
    for (uint32_t i = 0; i < spec.count; i++) {
        printf("component %u: %s [any, %" PRId64 "]\n", i, cadre_dtype_name(spec.tensors[i].dtype),
            spec.tensors[i].dims[1]);
    }
    while (cadre_next_epoch(distributed, 5, NULL)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, pair_twice, NULL, batch, 4, outputs));
            for (int i = 0; i < 4; i++) {
                printf("%" PRId64 " ", cadre_tensor_rows(cadre_local_results(outputs[i], 0)[0]));
            }
            printf("rows\n");
        }
    }
    return cadre_finish(strategy);
}
