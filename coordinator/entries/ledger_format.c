/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/entries/log_entry.h"

uint32_t ledger_format_newest(void)
{
    return LEDGER_FORMAT;
}
