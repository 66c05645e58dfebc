/* SPDX-License-Identifier: Apache-2.0
 * Compares two jobs of one program by the ledger's records: whether they consumed the same
 * samples and had the same states, and the first difference. The ledger has the consumption of
 * an epoch as a sum over its committed steps, so two epochs are compared when as many of their
 * steps are committed. An epoch that one job did only in part cannot be compared with a whole
 * one: the comparison ends there. States are compared by their digests, at the positions that
 * both verified. */
#ifndef CADRE_CLI_RENDER_COMPARISON_H
#define CADRE_CLI_RENDER_COMPARISON_H

#include "cadre/client.h"

#define COMPARISON_TEXT_BYTES 512

enum comparison_outcome {
    COMPARISON_EQUAL,   /* as far as both go */
    COMPARISON_DIFFERS, /* from a position on */
    COMPARISON_NOTHING  /* there is no epoch with the same committed steps in both, and no
                           position that both verified */
};

/* Kinds of differences. Each kind's function in comparison.c offers its first one by position. */
enum difference {
    DIFFERENCE_NONE,
    DIFFERENCE_DATASET,  /* datasets of one number have different names */
    DIFFERENCE_BEGIN,    /* the epoch begins at another step of the job */
    DIFFERENCE_LENGTH,   /* the epoch has fewer steps in one of them */
    DIFFERENCE_CONSUMED, /* in its steps other samples were consumed */
    DIFFERENCE_STATE     /* the states after so many steps differ */
};

/* The first difference by position. */
struct comparison_point {
    enum difference difference;
    uint64_t position; /* before it the ledger has no difference */
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
    uint64_t epochs; /* that are equal, before the difference */
    uint64_t steps;  /* in these */
    uint64_t begin;  /* the steps of the jobs in which those are: from here ... */
    uint64_t end;    /* ... to below here */
    uint64_t states; /* positions that both verified with equal digests, before the difference */
    uint64_t state;  /* the newest of them */
    struct comparison_point point;
};

/* "equal", "differs", "nothing in common". */
const char *comparison_outcome_name(enum comparison_outcome outcome);
/* "dataset", "begin", "length", "consumed", "state"; "none". */
const char *difference_name(enum difference difference);

/* Compares `a` with `b`, which outlive the comparison. */
void comparison_make(
    const cadre_verification *a, const cadre_verification *b, struct comparison *ret_comparison);

#endif
