/* SPDX-License-Identifier: Apache-2.0
 * How much memory this process can hope for. */
#ifndef CADRE_WORKER_DEVICE_MACHINE_MEMORY_H
#define CADRE_WORKER_DEVICE_MACHINE_MEMORY_H

#include <stdint.h>

/* The least of: the machine's memory, the limits of this process's control groups (Linux cgroup
 * v2's memory.max and v1's memory.limit_in_bytes, the groups around it included), and the limits on
 * its address space and data (RLIMIT_AS, RLIMIT_DATA); as they were when first asked for. Others
 * use some of it. Costs nothing. Any thread. */
uint64_t machine_memory(void);

#endif
