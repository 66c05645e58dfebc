/* SPDX-License-Identifier: Apache-2.0
 * An update as the numbers that all its elements share: the arguments of loops and kernels. */
#ifndef CADRE_OPTIMIZER_TERMS_H
#define CADRE_OPTIMIZER_TERMS_H

#include <stdint.h>

/* Of an update, as far as its rule has them. */
struct update_terms {
    double rate;  /* ADAM: with both corrections; LAMB: times the trust ratio */
    double decay; /* times the rate, but for LAMB */
    double momentum;
    double rho;
    double rest_rho; /* 1 - rho */
    double rest1;    /* 1 - beta1 */
    double rest2;
    double correct1; /* LAMB: 1 / (1 - beta1^t) */
    double correct2;
    double epsilon;
};

enum update_kind {
    UPDATE_SGD,
    UPDATE_MOMENTUM,
    UPDATE_NESTEROV,
    UPDATE_ADAGRAD,
    UPDATE_RMSPROP,
    UPDATE_RMSPROP_MOMENTUM,
    UPDATE_RMSPROP_CENTERED,
    UPDATE_RMSPROP_CENTERED_MOMENTUM,
    UPDATE_ADAM,
    UPDATE_LAMB
};
#define UPDATE_KINDS (UPDATE_LAMB + 1)

struct optimizer_rule;

/* The arguments of optimizer_apply. */
struct update_terms optimizer_terms(
    const struct optimizer_rule *rule, double rate, uint64_t updates, double trust);
/* Which loop updates by the rule. */
enum update_kind optimizer_update_kind(const struct optimizer_rule *rule);

#endif
