/* SPDX-License-Identifier: Apache-2.0
 * The logical devices of a strategy's replicas, and the threads that they are. */
#ifndef CADRE_RUNTIME_LOGICAL_DEVICE_H
#define CADRE_RUNTIME_LOGICAL_DEVICE_H

#include "worker/runtime/strategy.h"

/* Ends the threads of all replicas. Nothing without an assignment. */
void logical_devices_close(cadre_strategy *strategy);

#endif
