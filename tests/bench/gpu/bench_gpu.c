/* SPDX-License-Identifier: Apache-2.0
 * The cost of Cadre on a GPU beside bare CUDA and NCCL, in one program. Exits with 77, and prints
 * why, where there is no GPU; with --probe that is all it does. */
#include <stdio.h>
#include <string.h>

#include "tests/bench/gpu/rows.h"

int main(int argc, char **argv)
{
    const char *reason;
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (cadre_gpu_count(&reason) == 0) {
        fprintf(stderr, "%s\n", reason);
        return 77;
    }
    if (argc > 1 && strcmp(argv[1], "--probe") == 0) {
        return 0;
    }
    CADRE_CHECK(cadre_strategy_one_device("GPU:0", &strategy));
    cadre_show_progress(strategy, false);
    bench_cuda(cudaSetDevice(0), "GPU 0");
    bench_steps(strategy);
    bench_input(strategy);
    bench_carry(strategy);
    bench_measure();
    return cadre_finish(strategy);
}
