/* SPDX-License-Identifier: Apache-2.0
 * Replica functions that create variables, for the tests of that. */
#ifndef CADRE_TESTS_RUNTIME_CREATING_H
#define CADRE_TESTS_RUNTIME_CREATING_H

#include "training.h"

#define CREATED_MAX 4

/* What a replica function is to create, in this order, and what it got. */
struct creating {
    const char *names[CREATED_MAX];
    cadre_dtype dtype;
    uint32_t rank;
    int64_t dims[2];
    cadre_variable_options options;
    bool fails;    /* the step does, when all are created */
    bool forgives; /* the function does not look at errors of creation */
    double add;    /* each replica to its component of the first */
    cadre_variable *got[2][CREATED_MAX];
};

/* A step of it. */
cadre_status creating_run(cadre_strategy *strategy, struct creating *creating);

/* Between steps: a number. */
cadre_variable *creating_one(cadre_strategy *strategy, const char *name, double value);

/* Of a number, as cross-replica context reads it. */
double creating_value(const cadre_variable *variable);

#endif
