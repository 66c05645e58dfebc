/* SPDX-License-Identifier: Apache-2.0
 * The mistakes of a newcomer, one row each: the wrong use, the status that it gets, and a part of
 * the message. None crashes, hangs or goes on in silence: a mistake in a step fails the step on all
 * replicas, and the strategy takes another step and ends. */
#ifndef CADRE_TESTS_RUNTIME_MISTAKES_H
#define CADRE_TESTS_RUNTIME_MISTAKES_H

#include "training.h"

#define FIXTURE_REPLICAS 2

/* What a row has at hand: a strategy of two replicas, and what a first program has. */
struct fixture {
    cadre_strategy *strategy;
    cadre_variable *weight;          /* f32 [2] */
    cadre_variable *steps;           /* i64, of the first replica */
    cadre_variable *truth;           /* bool */
    cadre_variable *sum;             /* f32, which sums */
    cadre_distributed_dataset *data; /* "data": three batches of two */
    cadre_tensor *pair;              /* f32 [2] */
    cadre_tensor *triple;            /* f32 [3] */
    cadre_tensor *scalar;            /* f32 */
    const struct mistake *mistake;
};

/* Exactly one of the two is there: `outside` is called between steps, `inside` in a step by each
 * replica. */
struct mistake {
    const char *what;
    cadre_status status;
    const char *expected_text;
    cadre_status (*between_steps)(struct fixture *fixture);
    cadre_status (*inside)(cadre_replica *replica, struct fixture *fixture);
};

#define BETWEEN_STEPS(function, status, expected_text)                                             \
    {                                                                                              \
#function, (status), (expected_text), .between_steps = (function)                          \
    }
#define INSIDE(function, status, expected_text)                                                    \
    {                                                                                              \
#function, (status), (expected_text), .inside = (function)                                 \
    }
#define BAD   CADRE_INVALID_ARGUMENT
#define EARLY CADRE_FAILED_PRECONDITION

/* Makes each of them, with a strategy of its own; the test fails with all that got another message.
 */
void mistakes_check(const struct mistake *mistakes, size_t count);

/* For functions that end with a tensor of theirs. */
cadre_status mistakes_release(cadre_tensor *tensor, cadre_status status);

#endif
