/* SPDX-License-Identifier: Apache-2.0
 * Random pipelines of all kinds of nodes, for the tests of this folder. A plan is a short program
 * for a stack of datasets, so that the same pipeline can be built again, also when building or
 * reading it fails. */
#ifndef CADRE_TESTS_INPUT_RANDOM_PIPELINES_H
#define CADRE_TESTS_INPUT_RANDOM_PIPELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/dataset.h"

#define PLAN_STEPS_MAX 24

struct plan_step {
    uint8_t step;  /* enum step of random_pipelines.c */
    uint32_t with; /* a random number that says how */
};

struct plan {
    struct plan_step steps[PLAN_STEPS_MAX];
    size_t count;
    bool by_index; /* a shuffle of all stands somewhere: cannot be read in order only */
};

/* Writes the files that plans read, into the scratch folder. */
void plan_files_make(void);

/* A plan that gives at least one element and at most 40, without an error, in epochs 0 and 1. */
void plan_draw(struct plan *plan, uint64_t seed);

/* What it says; NULL or a failed dataset where that fails. `in_order`: no source can be read by
 * place. */
cadre_dataset *plan_build(const struct plan *plan, bool in_order);

/* The same tree once more, each node made by its own `rebuild`. */
cadre_dataset *rebuild_all(const cadre_dataset *data);

/* For messages; one of two buffers that are used in turn. */
const char *plan_text(const struct plan *plan);

#endif
