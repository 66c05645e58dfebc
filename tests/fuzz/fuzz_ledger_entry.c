/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as an entry of a log of ledgers. What is accepted is written again as
 * bytes that are read and written as the same, and a store takes all of it or nothing. */
#include <string.h>

#include "common/pure/assert.h"
#include "coordinator/entries/log_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct entry_records entry;
static struct entry_records again;
static struct wire_buffer first;
static struct wire_buffer second;

static void apply(void)
{
    struct cadre_error error;
    struct store *store = NULL;
    CADRE_ASSERT(store_memory_open(&store, &error) == CADRE_OK);
    cadre_status status = store->ops->commit(store, entry.records, entry.count, true, &error);
    CADRE_ASSERT(status == CADRE_OK || error.text[0] != '\0');
    store->ops->close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cadre_error error;
    if (log_entry_read(&entry, data, size, &error) != CADRE_OK) {
        CADRE_ASSERT(error.text[0] != '\0');
        return 0;
    }
    wire_buffer_clear(&first);
    wire_buffer_clear(&second);
    CADRE_ASSERT(log_entry_write(ledger_format_newest(), entry.records, entry.count, &first,
                     &error) == CADRE_OK);
    CADRE_ASSERT(log_entry_read(&again, first.bytes, first.size, &error) == CADRE_OK);
    CADRE_ASSERT(log_entry_write(ledger_format_newest(), again.records, again.count, &second,
                     &error) == CADRE_OK);
    CADRE_ASSERT(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0);
    apply();
    return 0;
}
