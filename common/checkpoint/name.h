/* SPDX-License-Identifier: Apache-2.0
 * Names of a checkpoint's files: "checkpoint-<position>.safetensors" and, written after it,
 * "checkpoint-<position>.json".
 *
 * In an object store nothing keeps a writer that was replaced, and does not know of it yet, from
 * writing what the next one has written and the ledger names. So names have their writer there,
 * unless it is the first one of its job: "checkpoint-<position>.<incarnation>.json". Pure. */
#ifndef CADRE_CHECKPOINT_NAME_H
#define CADRE_CHECKPOINT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_NAME_BYTES   72
#define CHECKPOINT_NAME_HEAD    "checkpoint-"
#define CHECKPOINT_TENSORS_NAME "safetensors"
#define CHECKPOINT_TEXT_NAME    "json"

/* What a name says. */
struct checkpoint_named {
    uint64_t position;
    uint64_t writer; /* 0: none */
};

/* Who is in the names of what a task of this incarnation (0: it is of no job) writes to an object
 * store; 0: no one. */
uint64_t checkpoint_name_writer(uint64_t incarnation);

/* `kind`: CHECKPOINT_TENSORS_NAME or CHECKPOINT_TEXT_NAME. */
void checkpoint_name_write(
    uint64_t position, uint64_t writer, const char *kind, char ret_name[CHECKPOINT_NAME_BYTES]);

/* What all names of this position begin with, and no others do. */
void checkpoint_name_start(uint64_t position, char ret_start[CHECKPOINT_NAME_BYTES]);

/* Whether `name` is one of this kind, with `tail_bytes` more behind it. */
bool checkpoint_name_read(
    const char *name, const char *kind, size_t tail_bytes, struct checkpoint_named *ret_named);

/* For qsort() and bsearch(): the highest position first, of one position the latest writer. */
int checkpoint_newest_first(const void *a, const void *b);

#endif
