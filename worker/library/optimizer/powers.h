/* SPDX-License-Identifier: Apache-2.0
 * Powers and a cosine that have the same bits on every machine: libm chooses its code by the
 * processor, and replicas on different machines must compute the same rate. Relative error
 * 1e-13. */
#ifndef CADRE_OPTIMIZER_POWERS_H
#define CADRE_OPTIMIZER_POWERS_H

#include <stdint.h>

/* base^exponent by repeated squaring. */
double power_integer(double base, uint64_t exponent);
/* base^exponent; base >= 0 and finite, exponent >= 0. */
double power_real(double base, double exponent);
/* cos(pi * x) for x from 0 to 1. */
double cosine_of_pi(double x);

#endif
