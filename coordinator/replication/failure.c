/* SPDX-License-Identifier: Apache-2.0
 * The newest failure, for people. */
#include <string.h>

#include "coordinator/replication/replica_state.h"

void replica_note_failure(struct replica *replica, const char *text)
{
    size_t length = strlen(text);
    length = length < sizeof replica->failure ? length : sizeof replica->failure - 1;
    memcpy(replica->failure, text, length);
    replica->failure[length] = '\0';
    replica->failures++;
}
