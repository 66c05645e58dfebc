/* SPDX-License-Identifier: Apache-2.0
 * The most memory that this process can use. */
#ifndef CADRE_WORKER_DEVICE_MACHINE_MEMORY_H
#define CADRE_WORKER_DEVICE_MACHINE_MEMORY_H

#include <stdint.h>

/* The least of: the machine's memory, the limits of this process's control groups (Linux cgroup
 * v2's memory.max and v1's memory.limit_in_bytes, the groups around it included), and the limits on
 * its address space and data (RLIMIT_AS, RLIMIT_DATA); as they were at the first call. Other
 * processes use some of it. Cheap. Any thread. */
uint64_t machine_memory(void);

#endif
