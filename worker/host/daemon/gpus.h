/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of this host, for the log and the slots. */
#ifndef CADRE_WORKER_DAEMON_GPUS_H
#define CADRE_WORKER_DAEMON_GPUS_H

#include "common/base/error.h"

struct daemon;

/* Sets daemon->gpus and logs them; INVALID_ARGUMENT: --gpus is wrong. */
cadre_status gpus_open(struct daemon *daemon, struct cadre_error *error);

#endif
