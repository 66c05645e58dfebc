/* SPDX-License-Identifier: Apache-2.0
 * The times that `cadre logs --since` accepts. */
#include "coordinator/cli/since.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"

/* Reads digits, `least` to 12 of them; returns what follows, or NULL. */
static const char *read_number(const char *text, size_t least, size_t most, uint64_t *ret_number)
{
    size_t digits = 0;
    *ret_number = 0;
    while (digits < most && isdigit((unsigned char)text[digits])) {
        *ret_number = *ret_number * 10 + (uint64_t)(text[digits++] - '0');
    }
    return digits >= least ? text + digits : NULL;
}

static bool parse_duration(const char *text, uint64_t *ret_us)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {{"ms", CADRE_US_PER_MS}, {"s", CADRE_US_PER_S}, {"m", 60 * CADRE_US_PER_S},
        {"h", 3600 * CADRE_US_PER_S}, {"d", 86400 * CADRE_US_PER_S}};
    uint64_t number;
    const char *unit = read_number(text, 1, 7, &number);
    for (size_t i = 0; unit != NULL && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            *ret_us = number * units[i].us;
            return true;
        }
    }
    return false;
}

/* "Z", or "+01:00". */
static bool parse_zone(const char *text, int64_t *ret_s)
{
    uint64_t hours = 0;
    uint64_t minutes = 0;
    *ret_s = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        return true;
    }
    int64_t sign = text[0] == '+' ? 1 : text[0] == '-' ? -1 : 0;
    const char *at = sign != 0 ? read_number(text + 1, 2, 2, &hours) : NULL;
    at = at != NULL && *at == ':' ? read_number(at + 1, 2, 2, &minutes) : NULL;
    *ret_s = sign * (int64_t)(hours * 3600 + minutes * 60);
    return at != NULL && *at == '\0' && hours < 24 && minutes < 60;
}

/* "2026-11-29T06:40:04.123Z" */
static bool parse_time(const char *text, uint64_t *ret_us)
{
    static const char separators[] = "--T::";
    static const uint64_t least[] = {1970, 1, 1, 0, 0, 0};
    static const uint64_t most[] = {9999, 12, 31, 23, 59, 60};
    uint64_t fields[6];
    uint64_t fraction_us = 0;
    int64_t zone_s;
    const char *at = text;
    for (size_t i = 0; i < 6; i++) {
        at = read_number(at, i == 0 ? 4 : 2, i == 0 ? 4 : 2, &fields[i]);
        bool separated = at != NULL && (i == 5 || toupper((unsigned char)*at) == separators[i] ||
                                           (i == 2 && *at == ' '));
        if (!separated || fields[i] < least[i] || fields[i] > most[i]) {
            return false;
        }
        at += i < 5 ? 1 : 0;
    }
    if (*at == '.') {
        uint64_t unit_us = CADRE_US_PER_S / 10;
        for (at++; isdigit((unsigned char)*at); at++, unit_us /= 10) {
            fraction_us += (uint64_t)(*at - '0') * unit_us;
        }
    }
    struct tm calendar = {.tm_year = (int)fields[0] - 1900,
        .tm_mon = (int)fields[1] - 1,
        .tm_mday = (int)fields[2],
        .tm_hour = (int)fields[3],
        .tm_min = (int)fields[4],
        .tm_sec = (int)fields[5]};
    if (!parse_zone(at, &zone_s)) {
        return false;
    }
    int64_t seconds = (int64_t)timegm(&calendar) - zone_s;
    *ret_us = seconds > 0 ? (uint64_t)seconds * CADRE_US_PER_S + fraction_us : 1;
    return calendar.tm_mday == (int)fields[2]; /* else there is no such day */
}

bool since_parse(const char *text, uint64_t now_us, uint64_t *ret_us)
{
    uint64_t ago_us;
    if (parse_duration(text, &ago_us)) {
        *ret_us = ago_us < now_us ? now_us - ago_us : 1;
        return true;
    }
    return parse_time(text, ret_us);
}
