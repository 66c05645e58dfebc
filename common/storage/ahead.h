/* SPDX-License-Identifier: Apache-2.0
 * A large object read from its start to its end: the next pieces are on their way, over several
 * connections, while the caller works on one. 32 MiB at most. Of a file nothing is read ahead,
 * because the kernel does that. One thread at a time. */
#ifndef CADRE_COMMON_STORAGE_AHEAD_H
#define CADRE_COMMON_STORAGE_AHEAD_H

#include "common/storage/storage.h"

struct storage_ahead;

/* No network yet. The object stays the caller's, and open until after the close. */
cadre_status storage_ahead_open(const struct storage_object *object,
    struct storage_ahead **ret_ahead, struct cadre_error *error);

/* As storage_read. Any offset; one that is far from the last is read alone. What failed fails
 * again.
 */
cadre_status storage_ahead_read(struct storage_ahead *ahead, uint64_t offset, void *to,
    size_t bytes, struct cadre_error *error);

/* Waits for what is on its way. NULL is allowed. */
void storage_ahead_close(struct storage_ahead *ahead);

#endif
