/* SPDX-License-Identifier: Apache-2.0 */
#include "step_pairs.h"

#include <stdlib.h>

void pairs_begin(int argc, char **argv)
{
    setenv("CADRE_STANDIN_DEVICES", "4", 1);
    step_program_begin(argc, argv);
}

cadre_status pairs_assign(cadre_strategy *strategy, int32_t devices, uint32_t replicas)
{
    const cadre_topology mesh = {.rank = 1, .shape = {devices}};
    const cadre_assignment_options options = {
        .rank = 1, .computation_shape = {PAIR}, .num_replicas = replicas};
    cadre_device_assignment *assignment;
    assert_public_ok(cadre_device_assignment_build(&mesh, &options, &assignment));
    cadre_status status = cadre_strategy_set_device_assignment(strategy, assignment);
    cadre_device_assignment_release(assignment);
    return status;
}

cadre_strategy *pairs_strategy(void)
{
    cadre_strategy *strategy = step_strategy((const char *const[]){"GPU:0", "GPU:2"}, 2);
    assert_public_ok(pairs_assign(strategy, 4, 2));
    return strategy;
}

float pairs_number(int64_t i, uint32_t id)
{
    return (float)(i % 7 - 3 + (int64_t)id);
}

cadre_status pairs_numbers(
    cadre_replica *replica, int64_t rows, int64_t columns, uint32_t id, cadre_tensor **ret_tensor)
{
    cadre_tensor *here;
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, (const int64_t[]){rows, columns}, &here));
    for (int64_t i = 0; i < rows * columns; i++) {
        ((float *)cadre_tensor_data(here))[i] = pairs_number(i, id);
    }
    cadre_status status = cadre_tensor_copy_to(replica, here, ret_tensor);
    cadre_tensor_release(here);
    return status;
}
