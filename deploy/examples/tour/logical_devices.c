/* SPDX-License-Identifier: Apache-2.0
 * Each replica owns several devices here, two on the CPU: one tensor lies on device 0, one is split
 * over both, and both have a copy of a third. */
#include <cadre/cadre.h>
#include <stdio.h>

#include "show.h"

/* Replica r owns the devices (r, 0) and (r, 1) of a mesh of as many rows as there are replicas. */
static void assign_devices(cadre_strategy *strategy)
{
    const uint32_t replicas = cadre_strategy_local_replicas(strategy);
    const cadre_topology mesh = {.rank = 2, .shape = {(int32_t)replicas, 2}};
    const cadre_assignment_options options = {
        .rank = 2, .computation_shape = {1, 2}, .num_replicas = replicas};
    cadre_device_assignment *assignment;
    CADRE_CHECK(cadre_device_assignment_build(&mesh, &options, &assignment));
    CADRE_CHECK(cadre_strategy_set_device_assignment(strategy, assignment));
    cadre_device_assignment_release(assignment);
}

/* The outputs are what device 1 has of a split and of a replicated tensor. */
static cadre_status run_on_devices(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    static const int32_t halves[] = {1, 2}; /* the rows as they are, the columns in two */
    cadre_placement whole, split, copies;
    cadre_tensor *elsewhere = NULL;
    (void)user;
    CADRE_TRY(cadre_assign_to_logical_device(replica, inputs[0], 0, &whole));
    if (cadre_placement_piece(inputs[0], &whole, 1, &elsewhere) != CADRE_NOT_FOUND) {
        return cadre_fail(CADRE_INTERNAL, "device 1 has what is assigned to device 0");
    }
    CADRE_TRY(cadre_split_to_logical_devices(replica, inputs[0], halves, 2, &split));
    CADRE_TRY(cadre_replicate_to_logical_devices(replica, inputs[0], &copies));
    CADRE_TRY(cadre_placement_piece(inputs[0], &split, 1, &outputs[0]));
    return cadre_placement_piece(inputs[0], &copies, 1, &outputs[1]);
}

int main(int argc, char **argv)
{
    static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    cadre_strategy *strategy;
    cadre_tensor *image;
    cadre_per_replica *outputs[2];
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    assign_devices(strategy);
    CADRE_CHECK(cadre_tensor_from_data(CADRE_F32, 2, (int64_t[]){2, 4}, numbers, &image));
    const cadre_argument argument = {.tensor = image};
    CADRE_CHECK(cadre_run_arguments(strategy, run_on_devices, NULL, &argument, 1, 2, outputs));
    show_replicas(outputs[0], 0);
    show_replicas(outputs[1], 0);
    cadre_tensor_release(image);
    return cadre_finish(strategy);
}
