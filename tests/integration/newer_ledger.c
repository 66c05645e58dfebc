/* SPDX-License-Identifier: Apache-2.0
 * The entries of a later version's log: of a format that today's coordinators do not know. */
#include "common/model/ledger_entry.h"

#undef LEDGER_FORMAT
#define LEDGER_FORMAT 2

#include "common/wire/table_ledger.c"
#include "coordinator/entries/ledger_format.c"
