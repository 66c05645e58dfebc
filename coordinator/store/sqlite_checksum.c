/* SPDX-License-Identifier: Apache-2.0
 * row_sum(...): a CRC-64 over the types, lengths and values of its arguments. Any single flipped
 * bit, and any run of damage up to 64 bits long, changes it. */
#include "coordinator/store/sqlite_statements.h"

#include <isa-l/crc64.h>

/* Before each value, so that ('a', 'bc') and ('ab', 'c') differ. */
struct value_head {
    uint8_t type;
    uint8_t size[8];
};

static uint64_t add_head(uint64_t sum, int type, uint64_t size)
{
    struct value_head head = {.type = (uint8_t)type};
    for (unsigned i = 0; i < sizeof head.size; i++) {
        head.size[i] = (uint8_t)(size >> (8 * i));
    }
    return crc64_ecma_refl(sum, (const unsigned char *)&head, sizeof head);
}

static uint64_t add_value(uint64_t sum, sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    if (type == SQLITE_INTEGER) { /* the number itself is where others have their size */
        return add_head(sum, type, (uint64_t)sqlite3_value_int64(value));
    }
    if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
        return add_head(sum, type, 0); /* no column has this type: NULL or a real is damage */
    }
    const void *bytes = type == SQLITE_TEXT ? sqlite3_value_text(value) : sqlite3_value_blob(value);
    uint64_t size = (uint64_t)sqlite3_value_bytes(value);
    sum = add_head(sum, type, size);
    return bytes != NULL ? crc64_ecma_refl(sum, bytes, size) : sum;
}

static void row_sum(sqlite3_context *context, int count, sqlite3_value **values)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++) {
        sum = add_value(sum, values[i]);
    }
    sqlite3_result_int64(context, (sqlite3_int64)sum);
}

int checksum_register(sqlite3 *database)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    return sqlite3_create_function_v2(
        database, "row_sum", -1, flags, NULL, row_sum, NULL, NULL, NULL);
}
