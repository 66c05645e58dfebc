/* SPDX-License-Identifier: Apache-2.0
 * What the arguments of the program under test `traced` say. */
#ifndef CADRE_TESTS_INTEGRATION_TRACED_H
#define CADRE_TESTS_INTEGRATION_TRACED_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/cadre.h"

struct traced {
    uint64_t steps;
    uint64_t saves;
    bool plain;
    bool ps;
    int input_ms; /* of this task */
    int function_ms;
    int between_ms;
    cadre_variable *sum;
};

/* traced_ps.c: a step is a few closures, each of which reads a variable of the servers and changes
 * it, and a join. Returns what main returns. */
int train_on_servers(struct traced *options);

#endif
