/* SPDX-License-Identifier: Apache-2.0 */
#define SD_JOURNAL_SUPPRESS_LOCATION /* each event would name this file */

#include "common/service/notifier.h"

#include <systemd/sd-journal.h>

int journal_send(const struct iovec *fields, int count)
{
    return sd_journal_sendv(fields, count);
}
