/* SPDX-License-Identifier: Apache-2.0
 * See number_text.h. */
#include "worker/library/device/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/half.h"

#define DIGITS_MAX 17 /* the most that a double needs */

static double read_back(const char *text, cadre_dtype dtype)
{
    switch (dtype) {
    case CADRE_F32:
        return (double)strtof(text, NULL);
    case CADRE_F16:
        return (double)half_from_f16(half_to_f16(strtof(text, NULL)));
    case CADRE_BF16:
        return (double)half_from_bf16(half_to_bf16(strtof(text, NULL)));
    default:
        return strtod(text, NULL);
    }
}

/* "-1.25e+01", with any point of the locale. */
static struct decimal decimal_read(const char *text)
{
    struct decimal decimal = {.negative = *text == '-'};
    for (; *text != 'e' && *text != '\0'; text++) {
        if (*text >= '0' && *text <= '9') {
            CADRE_ASSERT(decimal.count < (int)sizeof decimal.digits);
            decimal.digits[decimal.count++] = *text;
        }
    }
    decimal.exponent = *text == 'e' ? (int)strtol(text + 1, NULL, 10) : 0;
    while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0') {
        decimal.count--;
    }
    return decimal;
}

static struct decimal number_text_rounded(double number, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, number);
    return decimal_read(text);
}

struct decimal decimal_of(double number, cadre_dtype dtype, int digits_after_point, bool scientific)
{
    char text[64];
    int digits = 0;
    do {
        snprintf(text, sizeof text, "%.*e", digits, number);
    } while (++digits < DIGITS_MAX && read_back(text, dtype) != number);
    struct decimal shortest = decimal_read(text);
    int most = digits_after_point + 1 + (scientific ? 0 : shortest.exponent);
    if (digits_after_point < 0 || shortest.count <= most) {
        return shortest;
    }
    CADRE_ASSERT(most > 0);
    return number_text_rounded(number, most);
}

int decimal_whole(const struct decimal *decimal)
{
    return decimal->exponent >= 0 ? decimal->exponent + 1 : 1;
}

int decimal_digits_after_point(const struct decimal *decimal)
{
    bool zero = decimal->count == 1 && decimal->digits[0] == '0';
    int digits_after_point = decimal->count - 1 - decimal->exponent;
    return zero || digits_after_point < 0 ? 0 : digits_after_point;
}

/* The digit at ten to the power of `power`. */
static char digit_at(const struct decimal *decimal, int power)
{
    int at = decimal->exponent - power;
    return at >= 0 && at < decimal->count ? decimal->digits[at] : '0';
}

void decimal_plain(
    const struct decimal *decimal, int digits_after_point, char text[NUMBER_TEXT_BYTES])
{
    int own = decimal_digits_after_point(decimal);
    int last = -(own > digits_after_point ? own : digits_after_point);
    int used = 0;
    if (decimal->negative) {
        text[used++] = '-';
    }
    for (int power = decimal_whole(decimal) - 1; power >= last; power--) {
        text[used++] = digit_at(decimal, power);
        if (power == 0) {
            text[used++] = '.';
        }
        CADRE_ASSERT(used < NUMBER_TEXT_BYTES);
    }
    text[used] = '\0';
}

void decimal_scientific(const struct decimal *decimal, int digits_after_point, int exponent_digits,
    char text[NUMBER_TEXT_BYTES])
{
    int used = snprintf(
        text, NUMBER_TEXT_BYTES, "%s%c.", decimal->negative ? "-" : "", decimal->digits[0]);
    for (int at = 1; at < decimal->count || at <= digits_after_point; at++) {
        CADRE_ASSERT(used < NUMBER_TEXT_BYTES - 16);
        text[used++] = at < decimal->count ? decimal->digits[at] : '0';
    }
    snprintf(text + used, (size_t)(NUMBER_TEXT_BYTES - used), "e%c%0*d",
        decimal->exponent < 0 ? '-' : '+', exponent_digits, abs(decimal->exponent));
}

void decimal_alone(double number, cadre_dtype dtype, char text[NUMBER_TEXT_BYTES])
{
    if (!isfinite(number)) {
        snprintf(
            text, NUMBER_TEXT_BYTES, "%s", isnan(number) ? "nan" : (number < 0 ? "-inf" : "inf"));
        return;
    }
    struct decimal decimal = decimal_of(number, dtype, -1, false);
    bool zero = fpclassify(number) == FP_ZERO;
    if (zero || (fabs(number) >= 1e-4 && fabs(number) < 1e16)) {
        decimal_plain(&decimal, 1, text);
        return;
    }
    decimal_scientific(&decimal, 0, 2, text);
    char *point = strchr(text, '.');
    CADRE_ASSERT(point != NULL);
    if (decimal.count == 1) {
        memmove(point, point + 1, strlen(point)); /* "1.e-05" is written 1e-05 */
    }
}
