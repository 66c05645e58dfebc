/* SPDX-License-Identifier: Apache-2.0
 * What `cadre-devices --json` prints:
 *
 *     {"devices": [{"name", "uuid", "bus", "memory_bytes", "compute_major", "compute_minor"}],
 *      "driver", "runtime", "nccl", "reason"}
 *
 * and more, which is for people. */
#ifndef CADRE_WORKER_PROBE_REPORT_H
#define CADRE_WORKER_PROBE_REPORT_H

#include "common/base/error.h"
#include "common/gpus/host_gpus.h"

/* Parses any bytes. INVALID_ARGUMENT: the message names the fault; then *ret_gpus is undefined.
 * Texts that are too long are cut, what is not printable in them becomes "?". */
cadre_status report_read(
    const char *bytes, size_t size, struct host_gpus *ret_gpus, struct cadre_error *error);

#endif
