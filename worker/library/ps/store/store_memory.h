/* SPDX-License-Identifier: Apache-2.0
 * A file in memory, mapped once into address space that is reserved for its largest size: it grows
 * in place, and its contents never move while threads read them. Each page that is mapped exists: a
 * touch never ends in SIGBUS. */
#ifndef CADRE_PS_STORE_STORE_MEMORY_H
#define CADRE_PS_STORE_STORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct store_memory {
    int fd;
    bool own; /* the file is closed with this object */
    char *base;
    uint64_t reserved;
    uint64_t mapped; /* bytes of the file that are mapped */
    bool cut;        /* it holds something, but not a whole page */
    uint64_t limit;  /* 0: what is free at the time */
};

/* Maps the whole file (fd -1: an empty file of its own). DATA_LOSS: the file cannot be mapped;
 * RESOURCE_EXHAUSTED. On error there is nothing to close. */
cadre_status memory_open(
    int fd, uint64_t limit, struct store_memory *ret_memory, struct cadre_error *error);
/* Unmaps it; closes the file only when it is its own. */
void memory_close(struct store_memory *memory);

/* At least `bytes` are mapped from now on; new ones are zero. False: there is no room, and
 * *ret_left bytes are free. */
bool memory_grow(struct store_memory *memory, uint64_t bytes, uint64_t *ret_left);

/* Frees all pages: 0 bytes are mapped. */
cadre_status memory_empty(struct store_memory *memory, struct cadre_error *error);

#endif
