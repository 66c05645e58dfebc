/* SPDX-License-Identifier: Apache-2.0 */
#include "step_faults.h"

#include "tests/gpu/standin/standin.h"

void step_fault_kernel(void)
{
    standin_fail("kernel", 1, cudaErrorIllegalAddress);
}

bool step_fault_heal(void)
{
    standin_heal();
    return true;
}

void step_fault_hold(void *stream)
{
    standin_hold(stream);
}

void step_fault_release(void *stream)
{
    standin_release(stream);
}
