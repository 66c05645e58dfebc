/* SPDX-License-Identifier: Apache-2.0
 * The records of entries that follow each other, for one transaction of a store: most of the cost
 * of a small entry is that of its transaction. */
#ifndef CADRE_COORDINATOR_ENTRIES_ENTRY_BATCH_H
#define CADRE_COORDINATOR_ENTRIES_ENTRY_BATCH_H

#include "coordinator/entries/log_entry.h"

#define ENTRY_BATCH_MAX 64

/* {0} is an empty one. */
struct entry_batch {
    struct store_record *records; /* of all entries, in order; what they point to is the batch's */
    size_t count;
    size_t capacity;
    size_t entry_count;
    struct entry_records entries[ENTRY_BATCH_MAX];
};

/* What was added is void. */
void entry_batch_clear(struct entry_batch *batch);
/* Adds the records of the next entry. The errors are those of log_entry_read(), and OUT_OF_RANGE:
 * the batch has entries, and with this one too many entries or records; it is as before then. */
cadre_status entry_batch_add(
    struct entry_batch *batch, const void *bytes, size_t size, struct cadre_error *error);
/* The batch is {0} again. */
void entry_batch_free(struct entry_batch *batch);

#endif
