/* SPDX-License-Identifier: Apache-2.0
 * A commit as bytes, and back: a coordinator that applies them to a store of its own, with
 * store_ops.apply, ends with the same rows. The bytes are one LedgerEntry (ledger.proto); their
 * caller splits what is too large for one value of its log. */
#ifndef CADRE_COORDINATOR_ENTRIES_LOG_ENTRY_H
#define CADRE_COORDINATOR_ENTRIES_LOG_ENTRY_H

#include "common/wire/wire.h"
#include "coordinator/store/store.h"

/* The records of an entry that was read; {0} before the first. Used for one entry after another. */
struct entry_records {
    struct store_record *records; /* what they point to is the entry's */
    size_t count;
    struct store_placement *placements; /* of all of them */
    struct wire_arena *arena;           /* all else */
};

/* Newest format of entries that this version reads. What it writes is of the format in force. */
uint32_t ledger_format_newest(void);

/* Appends the encoding of the records to `buffer`, in this format, from 1 to the newest. Without
 * `core_record.sync`: when an entry is on the disk is its reader's decision. RESOURCE_EXHAUSTED: no
 * memory, or more than LIMIT_LEDGER_ENTRY_BYTES; the buffer is then as before. Texts for people
 * lose bad bytes, so a coordinator that writes a log applies what it reads of it to its own store,
 * too. */
cadre_status log_entry_write(uint32_t format, const struct store_record *records, size_t count,
    struct wire_buffer *buffer, struct cadre_error *error);

/* What was read before is void. INVALID_ARGUMENT: these bytes are no entry, or one with a kind of
 * record, or of a format, that this version does not know: none of it may be applied, because
 * records that are left out are missing in the ledger. RESOURCE_EXHAUSTED: no memory. */
cadre_status log_entry_read(
    struct entry_records *entry, const void *bytes, size_t size, struct cadre_error *error);
/* The entry is {0} again. */
void log_entry_free(struct entry_records *entry);

#endif
