/* SPDX-License-Identifier: Apache-2.0
 * Damaged contents at the coordinator. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_DAMAGE_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_DAMAGE_H

#include "coordinator/daemon/base/daemon.h"

/* The file of this hash has other bytes, or cannot be read: removes it; jobs whose checkpoints
 * reference it go on from older ones. `why` is logged. */
void damage_handle(
    struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES], const char *why);

#endif
