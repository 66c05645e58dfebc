/* SPDX-License-Identifier: Apache-2.0
 * What a verification comes to, in one word: for people, for programs and as an exit status. */
#ifndef CADRE_CLI_RENDER_CONCLUSION_H
#define CADRE_CLI_RENDER_CONCLUSION_H

#include "cadre/client.h"

enum conclusion {
    CONCLUSION_AUDITED,        /* of each committed step of the job */
    CONCLUSION_PARTLY_AUDITED, /* nothing differs, but of some steps nothing is known */
    CONCLUSION_NOTHING,        /* of no step anything */
    CONCLUSION_DIFFERS /* an epoch from what its dataset defines, or the generations do not tile */
};

/* "proved", "partly proved", "nothing proved", "differs". */
const char *conclusion_name(enum conclusion conclusion);

enum conclusion conclusion_of(const cadre_verification *verification);

/* Committed steps of which nothing is known. Those before the checkpoint from which a job went on
 * are another job's. */
uint64_t steps_unknown(const cadre_verification *verification);

#endif
