/* SPDX-License-Identifier: Apache-2.0
 * Input from a function of the program: it makes one vector of four numbers after the other. Each
 * is cut as a batch of four rows is. */
#include <cadre/cadre.h>
#include <stdlib.h>

#include "show.h"

/* A pass over the vectors. Every task makes the same ones: they follow from the epoch alone. */
static cadre_status begin(uint64_t epoch, void **ret_pass, void *user)
{
    (void)user;
    float *first = malloc(sizeof *first);
    if (first == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory for a pass");
    }
    *first = (float)epoch * 100;
    *ret_pass = first;
    return CADRE_OK;
}

static cadre_status next(void *pass, cadre_element *ret_out, void *user)
{
    (void)user;
    float *first = pass;
    const float vector[4] = {*first, *first + 0.25f, *first + 0.5f, *first + 0.75f};
    *first += 1;
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){4}, vector, &ret_out->tensors[0]);
}

static void end(void *pass, void *user)
{
    (void)user;
    free(pass);
}

static cadre_status identity(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    outputs[0] = cadre_tensor_retain(inputs[0]);
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    const cadre_element_spec output = {
        .count = 1, .tensors = {{.dtype = CADRE_F32, .rank = 1, .dims = {4}}}};
    const cadre_generator vectors = {.output = &output,
        .begin = begin,
        .next = next,
        .end = end,
        .cardinality = CADRE_CARDINALITY_INFINITE};
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch, *result;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    const cadre_input_options options = {.steps_per_epoch = 4};
    CADRE_CHECK(
        cadre_distribute_dataset(strategy, cadre_dataset_generator(&vectors), &options, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, identity, NULL, batch, 1, &result));
            show_replicas(result, 0);
        }
    }
    return cadre_finish(strategy);
}
