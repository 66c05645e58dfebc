/* SPDX-License-Identifier: Apache-2.0
 * A generation's devices. That all of them can be connected all tasks have told each other in their
 * points; then they connect, and what is in their memory need not pass through the host's. */
#ifndef CADRE_RUNTIME_CONNECT_DEVICES_H
#define CADRE_RUNTIME_CONNECT_DEVICES_H

#include <stddef.h>

#include "worker/library/runtime/regroup/member_status.h"
#include "worker/library/runtime/regroup/regroup_part.h"
#include "worker/library/runtime/strategy/strategy.h"

/* This task's words of a point. */
void connect_devices_offer(const cadre_strategy *strategy, struct member_status *member_status);

/* In a generation whose state is here and whose points said strategy->regroup->device_summary:
 * connects the replicas' devices where all can be. Where there are devices and they are not
 * connected, a warning says why, once in a generation. Errors as of a collective. In the program's
 * thread, with no replica running. */
cadre_status connect_devices(cadre_strategy *strategy, struct cadre_error *error);

/* Why the replicas' devices are not connected in this generation, as far as this task knows. */
void connect_devices_reason(const cadre_strategy *strategy, char *text, size_t size);

#endif
