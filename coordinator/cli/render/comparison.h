/* SPDX-License-Identifier: Apache-2.0
 * Two jobs of one program compared by what the ledger has of both: whether they consumed the same
 * and their states were the same, and where first not.
 *
 * The ledger knows the feed of an epoch as a sum over its committed steps, so two epochs are
 * compared when as many of their steps are committed. Of one that a job did only in part nothing is
 * known beside a whole one: there ends what both have. States are compared by their digests, at
 * the positions that both verified. */
#ifndef CADRE_CLI_RENDER_COMPARISON_H
#define CADRE_CLI_RENDER_COMPARISON_H

#include "cadre/client.h"

#define COMPARISON_TEXT_BYTES 512

enum comparison_outcome {
    COMPARISON_EQUAL,   /* as far as both go */
    COMPARISON_DIFFERS, /* from a place on */
    COMPARISON_NOTHING  /* there is no epoch of which the ledger has the same steps of both, and no
                           position that both verified */
};

/* Kinds of records that differ. Who adds a list of another kind by position offers its first
 * difference to comparison.c: offer() beside compare_consumed() and compare_states(). */
enum difference {
    DIFFERENCE_NONE,
    DIFFERENCE_DATASET,  /* of one number they have different names */
    DIFFERENCE_BEGIN,    /* the epoch begins at another step of the job */
    DIFFERENCE_LENGTH,   /* it has fewer steps in one of them */
    DIFFERENCE_CONSUMED, /* in its steps other samples were consumed */
    DIFFERENCE_STATE     /* after so many steps the states were others */
};

/* The first place, by position, where they are not the same. */
struct comparison_point {
    enum difference difference;
    uint64_t position; /* before it nothing differs, as far as the ledger can tell */
    uint32_t stream;   /* of states these five are 0, and the name is "" */
    const char *name;  /* of the dataset, as the first job has it */
    uint64_t epoch;    /* from 0 */
    uint64_t step;     /* of the epoch, from 0: it is this one, ... */
    uint64_t steps;    /* or one of so many from it on */
    char text[COMPARISON_TEXT_BYTES];
};

struct comparison {
    const cadre_verification *jobs[2];
    enum comparison_outcome outcome;
    uint64_t epochs; /* that are equal, and before the place where they differ */
    uint64_t steps;  /* in these */
    uint64_t begin;  /* the steps of the jobs in which those are: from here ... */
    uint64_t end;    /* ... to below here */
    uint64_t states; /* positions that both verified with equal digests, and before that place */
    uint64_t state;  /* the newest of them */
    struct comparison_point point;
};

/* "equal", "differs", "nothing in common". */
const char *comparison_outcome_name(enum comparison_outcome outcome);
/* "dataset", "begin", "length", "fed", "state"; "none". */
const char *difference_name(enum difference difference);

/* `a` and `b` outlive it. */
void comparison_make(
    const cadre_verification *a, const cadre_verification *b, struct comparison *ret_comparison);

#endif
