/* SPDX-License-Identifier: Apache-2.0
 * How much memory is free for this process at the moment. */
#ifndef CADRE_PS_STORE_STORE_FREE_MEMORY_H
#define CADRE_PS_STORE_STORE_FREE_MEMORY_H

#include <stdint.h>

/* The smaller of: what the machine has available, and what the process's control groups (cgroup v2
 * and v1, with all groups around it) have left. Pages that only cache files count as free. */
uint64_t store_free_memory(void);

#endif
