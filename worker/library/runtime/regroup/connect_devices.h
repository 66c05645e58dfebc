/* SPDX-License-Identifier: Apache-2.0
 * A generation's devices. The members' statuses contain whether all of them can be connected; then
 * they connect, and what is in their memory need not pass through the host's. */
#ifndef CADRE_RUNTIME_CONNECT_DEVICES_H
#define CADRE_RUNTIME_CONNECT_DEVICES_H

#include <stddef.h>

#include "worker/library/runtime/regroup/member_status.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Fills in the devices of this task's status. */
void connect_devices_offer(const cadre_strategy *strategy, struct member_status *member_status);

/* In a generation whose state is here and whose statuses gave strategy->regroup->device_summary:
 * connects the replicas' devices where all can be. Where there are devices and they are not
 * connected, a warning has the reason, once in a generation. Errors as of a collective. In the
 * program's thread, with no replica running. */
cadre_status connect_devices(cadre_strategy *strategy, struct cadre_error *error);

/* Why the replicas' devices are not connected in this generation, as far as this task can tell. */
void connect_devices_reason(const cadre_strategy *strategy, char *text, size_t size);

#endif
