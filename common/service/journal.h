/* SPDX-License-Identifier: Apache-2.0
 * Sends a daemon's log to the journal with its fields. */
#ifndef CADRE_SERVICE_JOURNAL_H
#define CADRE_SERVICE_JOURNAL_H

#include <sys/uio.h>

/* Sends one entry, made of "FIELD=value"; the argument of log_set_journal(). Zero, or a negative
 * errno. */
int journal_send(const struct iovec *fields, int count);

#endif
