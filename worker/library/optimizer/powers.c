/* SPDX-License-Identifier: Apache-2.0
 * See powers.h. Uses additions, products and quotients only, and the exact functions of libm. */
#include "worker/library/optimizer/powers.h"

#include <math.h>

#define LN_2   0.69314718055994530942
#define PI     3.14159265358979323846
#define ROOT_2 0.70710678118654752440

double power_integer(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent != 0; exponent >>= 1) {
        if ((exponent & 1) != 0) {
            result *= base;
        }
        base *= base;
    }
    return result;
}

/* ln(1 + ...) by the series of artanh, which is short because |s| < 0.172. x > 0. */
static double powers_logarithm(double x)
{
    int exponent = 0;
    double mantissa = frexp(x, &exponent); /* from 0.5 to less than 1 */
    if (mantissa < ROOT_2) {
        mantissa *= 2;
        exponent--;
    }
    double s = (mantissa - 1) / (mantissa + 1);
    double sum = 0;
    for (int k = 25; k >= 1; k -= 2) {
        sum = sum * (s * s) + 1.0 / k;
    }
    return exponent * LN_2 + 2 * s * sum;
}

static double powers_exponential(double x)
{
    if (!(x > -1400 && x < 1400)) { /* 0, or more than a double holds */
        return x < 0 ? 0 : x > 0 ? (double)INFINITY : x;
    }
    double whole = floor(x / LN_2 + 0.5);
    double rest = x - whole * LN_2;
    double sum = 1;
    for (int k = 18; k >= 1; k--) {
        sum = 1 + sum * rest / k;
    }
    return ldexp(sum, (int)whole);
}

double power_real(double base, double exponent)
{
    if (exponent == 0) {
        return 1;
    }
    if (base == 0) {
        return 0;
    }
    double whole = floor(exponent);
    if (whole > 1e9) { /* the result is 0, 1 or infinity, or nearly so */
        return powers_exponential(exponent * powers_logarithm(base));
    }
    double rest = exponent - whole;
    double power = power_integer(base, (uint64_t)whole);
    return rest == 0 ? power : power * powers_exponential(rest * powers_logarithm(base));
}

/* Of |x| <= pi/4: 1 - x^2/2! ..., or x - x^3/3! ... divided by x. */
static double powers_alternating(double x, int odd)
{
    double sum = 1;
    for (int k = 22; k >= 2; k -= 2) {
        sum = 1 - sum * x * x / (k * (k - 1 + 2 * odd));
    }
    return sum;
}

double cosine_of_pi(double x)
{
    if (x > 0.5) {
        return -cosine_of_pi(1 - x);
    }
    double rest = PI * (0.5 - x);
    return x <= 0.25 ? powers_alternating(PI * x, 0) : rest * powers_alternating(rest, 1);
}
