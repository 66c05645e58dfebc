/* SPDX-License-Identifier: Apache-2.0
 * How a daemon's log gets to the journal with its fields. */
#ifndef CADRE_SERVICE_JOURNAL_H
#define CADRE_SERVICE_JOURNAL_H

#include <sys/uio.h>

/* Sends one entry, made of "FIELD=value": what log_set_journal() wants. Zero, or a negative errno.
 */
int journal_send(const struct iovec *fields, int count);

#endif
