/* SPDX-License-Identifier: Apache-2.0
 * For which GPUs the kernels were compiled. */
#ifndef CADRE_WORKER_CUDA_KERNEL_CODE_H
#define CADRE_WORKER_CUDA_KERNEL_CODE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a GPU of compute capability major.minor runs one of `architectures`, words as of CMake's
 * CUDA_ARCHITECTURES with blanks between: "80-real" is machine code for 8.0 and newer 8.x,
 * "75-virtual" is PTX for 7.5 and all newer ones, "90" both. Letters bind: "90a" is 9.0 alone,
 * "100f" 10.x from 10.0. A word without a number ("all", "native") allows any. */
bool kernel_code_runs(const char *architectures, uint32_t major, uint32_t minor);

/* The lowest compute capability there is code for, as 10 * major + minor; 0: any. */
uint32_t kernel_code_least(const char *architectures);

#endif
