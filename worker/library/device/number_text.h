/* SPDX-License-Identifier: Apache-2.0
 * Numbers as people read them: the shortest decimal that reads back as the same number. */
#ifndef CADRE_WORKER_DEVICE_NUMBER_TEXT_H
#define CADRE_WORKER_DEVICE_NUMBER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"

/* Room for any number that these functions write. */
#define NUMBER_TEXT_BYTES 352

/* d.ddd times ten to the power of `exponent`; no zeros at the end but of 0, which is one digit. */
struct decimal {
    bool negative;
    int count;
    int exponent;
    char digits[20];
};

/* The shortest decimal of a finite number of a floating type. With `digits_after_point` >= 0 it is
 * rounded to so many behind the point of its plain form (`scientific`: of d.ddd) where the shortest
 * has more; it then has a digit there. */
struct decimal decimal_of(
    double number, cadre_dtype dtype, int digits_after_point, bool scientific);

/* Digits before the point of the plain form: 2 of "12.", 1 of "0.05". */
int decimal_whole(const struct decimal *decimal);
/* Digits behind it: 0 of "12.", 2 of "0.05". */
int decimal_digits_after_point(const struct decimal *decimal);

/* Writes "-12.5", with zeros up to `digits_after_point` behind the point; always with a point. */
void decimal_plain(
    const struct decimal *decimal, int digits_after_point, char text[NUMBER_TEXT_BYTES]);
/* Writes "-1.25e+01", with zeros up to `digits_after_point` and to `exponent_digits`; always with a
 * point. */
void decimal_scientific(const struct decimal *decimal, int digits_after_point, int exponent_digits,
    char text[NUMBER_TEXT_BYTES]);

/* One number alone: "1.0", "1e-05", "nan". */
void decimal_alone(double number, cadre_dtype dtype, char text[NUMBER_TEXT_BYTES]);

#endif
