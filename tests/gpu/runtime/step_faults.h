/* SPDX-License-Identifier: Apache-2.0
 * Faults of a device for the tests of the step: a kernel that fails, a stream that hangs. On the
 * stand-in by its own means, on a GPU for real. */
#ifndef CADRE_TESTS_GPU_STEP_FAULTS_H
#define CADRE_TESTS_GPU_STEP_FAULTS_H

#include <stdbool.h>

/* The next kernel of step_kernels.h on a device uses an illegal address. */
void step_fault_kernel(void);
/* The device is as good as new; false: nothing can do that, it is lost to this process. */
bool step_fault_heal(void);

/* Nothing more is begun on the stream until it is released. */
void step_fault_hold(void *stream);
void step_fault_release(void *stream);

#endif
