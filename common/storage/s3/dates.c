/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/s3/dates.h"

#include <stddef.h>
#include <string.h>

#define DAY_S    86400
#define YEAR_MAX 9999

struct moment {
    unsigned year, month, day, hour, minute, second;
};

/* `digits` decimal digits, and moves behind them. */
static bool read_number(const char **text, size_t digits, unsigned *ret_number)
{
    unsigned number = 0;
    for (size_t i = 0; i < digits; i++) {
        char c = (*text)[i];
        if (c < '0' || c > '9') {
            return false;
        }
        number = number * 10 + (unsigned)(c - '0');
    }
    *text += digits;
    *ret_number = number;
    return true;
}

static bool read_char(const char **text, char wanted)
{
    bool is = **text == wanted;
    *text += is ? 1 : 0;
    return is;
}

/* "00:00:00" */
static bool read_clock(const char **text, struct moment *moment)
{
    return read_number(text, 2, &moment->hour) && read_char(text, ':') &&
           read_number(text, 2, &moment->minute) && read_char(text, ':') &&
           read_number(text, 2, &moment->second);
}

/* Days since 1970, in the Gregorian calendar, whose leap years repeat after 400. */
static uint64_t days_of(const struct moment *moment)
{
    unsigned year = moment->month <= 2 ? moment->year - 1 : moment->year;
    unsigned month = moment->month <= 2 ? moment->month + 9 : moment->month - 3; /* from March */
    uint64_t days = (uint64_t)year * 365 + year / 4 - year / 100 + year / 400;
    days += (153 * month + 2) / 5 + moment->day - 1;
    return days - 719468; /* those before 1970 */
}

static bool seconds_of(const struct moment *moment, uint64_t *ret_s)
{
    if (moment->year < 1970 || moment->year > YEAR_MAX || moment->month < 1 || moment->month > 12 ||
        moment->day < 1 || moment->day > 31 || moment->hour > 23 || moment->minute > 59 ||
        moment->second > 60) {
        return false;
    }
    *ret_s = days_of(moment) * DAY_S + moment->hour * 3600 + moment->minute * 60 + moment->second;
    return true;
}

/* "May", and moves behind it. */
static bool read_month(const char **text, unsigned *ret_month)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (unsigned i = 0; i < 12; i++) {
        if (strncmp(*text, names + (size_t)3 * i, 3) == 0) {
            *text += 3;
            *ret_month = i + 1;
            return true;
        }
    }
    return false;
}

bool s3_http_date_parse(const char *text, uint64_t *ret_s)
{
    struct moment moment;
    if (text == NULL || strlen(text) < 5 || text[3] != ',' || text[4] != ' ') {
        return false;
    }
    text += 5;
    return read_number(&text, 2, &moment.day) && read_char(&text, ' ') &&
           read_month(&text, &moment.month) && read_char(&text, ' ') &&
           read_number(&text, 4, &moment.year) && read_char(&text, ' ') &&
           read_clock(&text, &moment) && strcmp(text, " GMT") == 0 && seconds_of(&moment, ret_s);
}

bool s3_iso_date_parse(const char *text, uint64_t *ret_us)
{
    struct moment moment;
    uint64_t seconds = 0;
    uint64_t us = 0;
    bool good = text != NULL && read_number(&text, 4, &moment.year) && read_char(&text, '-') &&
                read_number(&text, 2, &moment.month) && read_char(&text, '-') &&
                read_number(&text, 2, &moment.day) && read_char(&text, 'T') &&
                read_clock(&text, &moment);
    if (good && read_char(&text, '.')) {
        unsigned digit = 0;
        for (uint64_t unit = 100000; read_number(&text, 1, &digit); unit /= 10) {
            us += digit * unit;
        }
    }
    good = good && (strcmp(text, "Z") == 0 || strcmp(text, "+00:00") == 0) &&
           seconds_of(&moment, &seconds);
    if (good) {
        *ret_us = seconds * 1000000 + us;
    }
    return good;
}
