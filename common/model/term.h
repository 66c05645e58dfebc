/* SPDX-License-Identifier: Apache-2.0
 * Which start of which coordinator sent a message: of which cluster, and which of its starts. A
 * ledger makes the cluster's number once and counts its starts; each start draws a nonce, by which
 * two that run with copies of one ledger differ. */
#ifndef CADRE_MODEL_TERM_H
#define CADRE_MODEL_TERM_H

#include <stdint.h>

struct term {
    uint64_t cluster; /* drawn when the ledger was made; 0: not given */
    uint64_t start;   /* rises with each start, from 1 */
    uint64_t nonce;   /* of this start */
};

enum term_verdict {
    TERM_GOOD,      /* the same, a later start, or one of the two is not known */
    TERM_OLD,       /* a later start of this cluster was seen */
    TERM_DUPLICATE, /* so was another one with this number */
    TERM_FOREIGN    /* of another cluster */
};

/* Of a coordinator's term, by the newest that a worker has seen. */
enum term_verdict term_judge(const struct term *seen, const struct term *offered);

#endif
