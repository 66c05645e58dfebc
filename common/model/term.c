/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model/term.h"

enum term_verdict term_judge(const struct term *seen, const struct term *offered)
{
    if (seen->cluster == 0 || offered->cluster == 0) {
        return TERM_GOOD;
    }
    if (seen->cluster != offered->cluster) {
        return TERM_FOREIGN;
    }
    if (seen->start != offered->start) {
        return seen->start > offered->start ? TERM_OLD : TERM_GOOD;
    }
    return seen->nonce == offered->nonce ? TERM_GOOD : TERM_DUPLICATE;
}
