/* SPDX-License-Identifier: Apache-2.0
 * The most memory that this process can use. */
#ifndef CADRE_WORKER_DEVICE_MACHINE_MEMORY_H
#define CADRE_WORKER_DEVICE_MACHINE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* The least of: the machine's memory, the limits of this process's control groups (Linux cgroup
 * v2's memory.max and v1's memory.limit_in_bytes, the groups around it included), and the limits on
 * its address space and data (RLIMIT_AS, RLIMIT_DATA); as they were at the first call. Other
 * processes use some of it. Cheap. Any thread. */
uint64_t machine_memory(void);

/* --- The control groups that this process is in and those around them, as folders: Linux cgroup
 * v2, and the memory controller of v1. --- */

/* The least of what `measure` returns for each of them; UINT64_MAX without any. `second`: of
 * version 2. */
uint64_t control_groups_min(uint64_t (*measure)(const char *folder, bool second));

/* The number behind `key` in a file `name` of texts "key number" in the folder; with "" the file's
 * first number. `otherwise`: there is none ("max", too). */
uint64_t control_groups_read(
    const char *folder, const char *name, const char *key, uint64_t otherwise);

#endif
