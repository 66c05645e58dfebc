/* SPDX-License-Identifier: Apache-2.0
 * A file in memory, mapped once into address space that is reserved for all it may become: it grows
 * in place, and what lies in it never moves while threads read it. Each page that is mapped exists:
 * a touch never ends in SIGBUS. */
#ifndef CADRE_PS_STORE_STORE_MEMORY_H
#define CADRE_PS_STORE_STORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct store_memory {
    int fd;
    bool own; /* the file goes with this object */
    char *base;
    uint64_t reserved;
    uint64_t mapped; /* bytes of the file that are */
    bool cut;        /* it holds something, but not a whole page */
    uint64_t limit;  /* 0: what is free at the time */
};

/* Maps all that the file holds (fd -1: an empty file of its own). DATA_LOSS: it is no file that can
 * be mapped; RESOURCE_EXHAUSTED. On error nothing is to be closed. */
cadre_status memory_open(
    int fd, uint64_t limit, struct store_memory *ret_memory, struct cadre_error *error);
void memory_close(struct store_memory *memory);

/* At least `bytes` are mapped from now on; new ones are zero. False: there is no room, *ret_left
 * bytes are. */
bool memory_grow(struct store_memory *memory, uint64_t bytes, uint64_t *ret_left);

/* Gives all pages back: 0 bytes are mapped. */
cadre_status memory_empty(struct store_memory *memory, struct cadre_error *error);

#endif
