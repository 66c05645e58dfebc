/* SPDX-License-Identifier: Apache-2.0
 * How far the ledger was from which an answer to a client was made, where several coordinators
 * share one: its newest entry then. A client sends the newest that it was answered from, and
 * is answered from no older one, whichever coordinator it asks. */
#ifndef CADRE_MODEL_LEDGER_POSITION_H
#define CADRE_MODEL_LEDGER_POSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys of the metadata of calls of cadre.v1.Jobs. Of a request and of the end of an answer, the
 * position as a text: */
#define LEDGER_POSITION_KEY "cadre-ledger"
/* Of a request, with any value: each coordinator may answer it, if the method reads the ledger. */
#define LEDGER_STALE_KEY "cadre-stale"
/* Of the end of an answer of a coordinator that does not lead: how old it may be, in milliseconds,
 * or that this is not known. */
#define LEDGER_AGE_KEY     "cadre-age-ms"
#define LEDGER_AGE_UNKNOWN "unknown"

struct ledger_position {
    uint64_t cluster; /* low half of its id; of positions of two clusters none is newer */
    uint64_t term;    /* 0: none is known */
    uint64_t index;
};

#define LEDGER_POSITION_BYTES 64

/* "CLUSTER.TERM.INDEX", decimal. */
void ledger_position_write(
    const struct ledger_position *position, char ret_text[LEDGER_POSITION_BYTES]);
/* False: the text, which is not terminated, is none, and *ret_position is zero. */
bool ledger_position_read(const char *text, size_t length, struct ledger_position *ret_position);

/* Whether `than` lacks something of the ledger that `position` has. */
static inline bool ledger_position_is_newer(
    const struct ledger_position *position, const struct ledger_position *than)
{
    return position->term > 0 && position->cluster == than->cluster &&
           (position->term > than->term ||
               (position->term == than->term && position->index > than->index));
}

#endif
