/* SPDX-License-Identifier: Apache-2.0
 * Slurm's short forms of lists, for slurm.c: names of hosts with ranges of numbers, and counts that
 * repeat. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/cluster/slurm.h"

/* Numbers of hosts; one more would overflow the count. */
#define DIGITS_MAX 9

void slurm_hosts_clear(struct slurm_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->names[i]);
    }
    free(hosts->names);
    *hosts = (struct slurm_hosts){.names = NULL};
}

/* The state of reading: `text` is for messages. */
struct reading {
    const char *text;
    struct slurm_hosts *hosts;
    struct cadre_error *error;
};

static cadre_status slurm_hosts_malformed(
    const struct reading *reading, const char *at, const char *why)
{
    return cadre_error_set(reading->error, CADRE_INVALID_ARGUMENT,
        "the list of hosts '%.*s' is malformed at its byte %zu: %s; write it as in "
        "n[01-03,7],gpu1",
        CLUSTER_TEXT_SHOWN, reading->text, (size_t)(at - reading->text), why);
}

static cadre_status add_host(struct reading *reading, const char *name, size_t length)
{
    struct slurm_hosts *hosts = reading->hosts;
    if (hosts->count == CADRE_CLUSTER_TASKS_MAX) {
        return cadre_error_set(reading->error, CADRE_RESOURCE_EXHAUSTED,
            "the list of hosts '%.*s' has more than %d names", CLUSTER_TEXT_SHOWN, reading->text,
            CADRE_CLUSTER_TASKS_MAX);
    }
    /* Doubled whenever it is full: at 0 and at the powers of two. */
    if ((hosts->count & (hosts->count - 1)) == 0) {
        size_t capacity = hosts->count == 0 ? 1 : 2 * hosts->count;
        char **grown = realloc(hosts->names, capacity * sizeof *grown);
        if (grown == NULL) {
            return cadre_error_set(
                reading->error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu hosts", capacity);
        }
        hosts->names = grown;
    }
    hosts->names[hosts->count] = strndup(name, length);
    if (hosts->names[hosts->count] == NULL) {
        return cadre_error_set(
            reading->error, CADRE_RESOURCE_EXHAUSTED, "no memory for the name of a host");
    }
    hosts->count++;
    return CADRE_OK;
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
}

/* Digits at *at, which is moved behind them. */
static cadre_status read_digits(
    struct reading *reading, const char **at, uint32_t *ret_number, int *ret_width)
{
    size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > DIGITS_MAX) {
        return slurm_hosts_malformed(
            reading, *at, digits == 0 ? "a number is expected here" : "the number is too long");
    }
    *ret_number = 0;
    *ret_width = (int)digits;
    for (size_t i = 0; i < digits; i++) {
        *ret_number = *ret_number * 10 + (uint32_t)((*at)[i] - '0');
    }
    *at += digits;
    return CADRE_OK;
}

static cadre_status expand_rest(
    struct reading *reading, const char *at, char *name, size_t length, const char **ret_end);

/* One range of a bracket, with all that follows the bracket at `rest`. */
static cadre_status expand_range(struct reading *reading, uint32_t low, uint32_t high, int width,
    const char *rest, char *name, size_t length, const char **ret_end)
{
    for (uint32_t number = low; number <= high; number++) {
        size_t left = CADRE_CLUSTER_ADDRESS_BYTES - length;
        int written = snprintf(name + length, left, "%0*" PRIu32, width, number);
        if (written < 0 || (size_t)written >= left) {
            return slurm_hosts_malformed(reading, rest, "a name is too long");
        }
        CADRE_TRY(expand_rest(reading, rest, name, length + (size_t)written, ret_end));
    }
    return CADRE_OK;
}

/* The bracket whose first byte is before `at`. */
static cadre_status expand_bracket(
    struct reading *reading, const char *at, char *name, size_t length, const char **ret_end)
{
    const char *close = strchr(at, ']');
    if (close == NULL) {
        return slurm_hosts_malformed(reading, at, "the bracket is not closed");
    }
    for (;;) {
        uint32_t low;
        uint32_t high;
        int width;
        int ignored;
        const char *from = at;
        CADRE_TRY(read_digits(reading, &at, &low, &width));
        high = low;
        if (*at == '-') {
            at++;
            CADRE_TRY(read_digits(reading, &at, &high, &ignored));
        }
        if (high < low) {
            return slurm_hosts_malformed(reading, from, "the range runs backwards");
        }
        CADRE_TRY(expand_range(reading, low, high, width, close + 1, name, length, ret_end));
        if (at == close) {
            return CADRE_OK;
        }
        if (*at != ',') {
            return slurm_hosts_malformed(
                reading, at, "a comma or the end of the bracket is expected here");
        }
        at++;
    }
}

/* Expands the rest of one name at `at`, behind the `length` bytes in `name`. Brackets nest in
 * calls, as many as the length of a name allows: each adds a digit. */
static cadre_status expand_rest(
    struct reading *reading, const char *at, char *name, size_t length, const char **ret_end)
{
    while (is_name_byte(*at)) {
        if (length + 1 >= CADRE_CLUSTER_ADDRESS_BYTES) {
            return slurm_hosts_malformed(reading, at, "a name is too long");
        }
        name[length++] = *at++;
    }
    if (*at == '[') {
        return expand_bracket(reading, at + 1, name, length, ret_end);
    }
    if (*at != ',' && *at != '\0') {
        return slurm_hosts_malformed(reading, at, "this byte is not allowed in a name");
    }
    if (length == 0) {
        return slurm_hosts_malformed(reading, at, "a name is expected here");
    }
    *ret_end = at;
    return add_host(reading, name, length);
}

cadre_status slurm_hosts_expand(
    const char *text, struct slurm_hosts *ret_hosts, struct cadre_error *error)
{
    *ret_hosts = (struct slurm_hosts){.names = NULL};
    struct reading reading = {.text = text, .hosts = ret_hosts, .error = error};
    char name[CADRE_CLUSTER_ADDRESS_BYTES];
    const char *at = text;
    if (strnlen(text, CADRE_CLUSTER_TEXT_BYTES_MAX + 1) > CADRE_CLUSTER_TEXT_BYTES_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the list of hosts '%.*s' is longer than %d bytes", CLUSTER_TEXT_SHOWN, text,
            CADRE_CLUSTER_TEXT_BYTES_MAX);
    }
    for (;;) {
        const char *end = at;
        CADRE_TRY(expand_rest(&reading, at, name, 0, &end));
        if (*end == '\0') {
            return CADRE_OK;
        }
        at = end + 1;
    }
}

/* --- counts --- */

static cadre_status bad_counts(const char *text, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the numbers of tasks on the hosts are '%.*s'; write them as in 2(x3),1, each from 1 to %d",
        CLUSTER_TEXT_SHOWN, text, CADRE_CLUSTER_TASKS_MAX);
}

/* 1 to CADRE_CLUSTER_TASKS_MAX; 0 when there is no such number. */
static uint32_t read_count(const char **at)
{
    uint32_t number = 0;
    size_t digits = strspn(*at, "0123456789");
    for (size_t i = 0; i < digits && number <= CADRE_CLUSTER_TASKS_MAX; i++) {
        number = number * 10 + (uint32_t)((*at)[i] - '0');
    }
    *at += digits;
    return number <= CADRE_CLUSTER_TASKS_MAX ? number : 0;
}

cadre_status slurm_counts_expand(
    const char *text, uint32_t **ret_counts, size_t *ret_count, struct cadre_error *error)
{
    const char *at = text;
    *ret_count = 0;
    *ret_counts = calloc(CADRE_CLUSTER_TASKS_MAX, sizeof **ret_counts);
    if (*ret_counts == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the numbers of tasks");
    }
    for (;; at++) {
        uint32_t repeats = 1;
        uint32_t tasks = read_count(&at);
        if (strncmp(at, "(x", 2) == 0) {
            at += 2;
            repeats = read_count(&at);
            repeats = *at == ')' ? repeats : 0;
            at += *at == ')' ? 1 : 0;
        }
        bool ends = *at == '\0';
        if (tasks == 0 || repeats == 0 || (!ends && *at != ',') ||
            *ret_count + repeats > CADRE_CLUSTER_TASKS_MAX) {
            return bad_counts(text, error);
        }
        for (uint32_t i = 0; i < repeats; i++) {
            (*ret_counts)[(*ret_count)++] = tasks;
        }
        if (ends) {
            return CADRE_OK;
        }
    }
}
