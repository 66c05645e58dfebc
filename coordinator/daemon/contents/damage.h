/* SPDX-License-Identifier: Apache-2.0
 * Contents at the coordinator that turn out to be damaged. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_DAMAGE_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_DAMAGE_H

#include "coordinator/daemon/base/daemon.h"

/* The content of this hash was read and is another one, or cannot be read. It is removed, and jobs
 * whose checkpoints need it go on from older ones. `why` is for people. */
void damage_handle(
    struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES], const char *why);

#endif
