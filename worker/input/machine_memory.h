/* SPDX-License-Identifier: Apache-2.0
 * See worker/device/machine_memory.h. */
#include "worker/device/machine_memory.h"
