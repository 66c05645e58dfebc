/* SPDX-License-Identifier: Apache-2.0
 * The conclusion of a verification in one word: for text, JSON and the exit status. */
#ifndef CADRE_VIEW_CONCLUSION_H
#define CADRE_VIEW_CONCLUSION_H

#include "cadre/client.h"

enum conclusion {
    CONCLUSION_AUDITED,        /* of each committed step of the job */
    CONCLUSION_PARTLY_AUDITED, /* nothing differs, but some steps cannot be proved */
    CONCLUSION_NOTHING,        /* no step can be proved */
    CONCLUSION_DIFFERS /* an epoch from what its dataset defines, or the generations do not tile */
};

/* "proved", "partly proved", "nothing proved", "differs". */
const char *conclusion_name(enum conclusion conclusion);

/* From the verdicts of the epochs and whether the generations tile. */
enum conclusion conclusion_of(const cadre_verification *verification);

/* Committed steps that cannot be proved. Those before the checkpoint from which a job went on are
 * another job's and do not count. */
uint64_t steps_unknown(const cadre_verification *verification);

#endif
