/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "gpt: trains a language model over the bytes of a text\n"
    "  --text PATH      a file, or a folder whose files are joined (/usr/share/common-licenses)\n"
    "  --layers N       (2)\n"
    "  --heads N        of attention in each layer; divides the channels (4)\n"
    "  --channels N     (128)\n"
    "  --length N       bytes that it sees at a time (64)\n"
    "  --batch N        windows of so many bytes in a step, of all replicas together (16)\n"
    "  --steps N        of training (400)\n"
    "  --rate X         highest learning rate (0.002)\n"
    "  --warm-up N      steps in which the rate rises to it; then it falls to a tenth (50)\n"
    "  --decay X        of the matrices' weights, times the rate (0.1)\n"
    "  --seed N         of the initial weights, the shuffle and the sample (1)\n"
    "  --precision NAME of matrix products on a GPU: f32, tf32, bf16 (f32)\n"
    "  --report N       steps from one report to the next (50)\n"
    "  --ceiling        measure at the start what matrix products could reach\n"
    "  --sample N       bytes of text to write at the end (0)\n"
    "  --temperature X  of the sample: 0 takes the likeliest byte (0.8)\n";

/* Options that are a number: where it goes, and what it may be. */
static const struct number {
    const char *name;
    bool whole; /* int64_t or uint64_t, else float */
    double least, most;
    size_t offset;
} numbers[] = {
    {"layers", true, 1, 1000, offsetof(struct settings, shape.layers)},
    {"heads", true, 1, 1000, offsetof(struct settings, shape.heads)},
    {"channels", true, 1, 65536, offsetof(struct settings, shape.channels)},
    {"length", true, 1, 65536, offsetof(struct settings, shape.length)},
    {"batch", true, 1, 1000000, offsetof(struct settings, batch)},
    {"steps", true, 0, 1000000000, offsetof(struct settings, steps)},
    {"rate", false, 0, 100, offsetof(struct settings, rate)},
    {"warm-up", true, 0, 1000000000, offsetof(struct settings, warm_up)},
    {"decay", false, 0, 100, offsetof(struct settings, decay)},
    {"seed", true, 0, 1000000000, offsetof(struct settings, seed)},
    {"report", true, 1, 1000000000, offsetof(struct settings, report)},
    {"sample", true, 0, 1000000, offsetof(struct settings, sample)},
    {"temperature", false, 0, 100, offsetof(struct settings, temperature)},
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static bool read_number(const struct number *number, const char *text, struct settings *settings)
{
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    const bool fits = end != text && *end == '\0' && errno == 0 && value >= number->least &&
                      value <= number->most;
    if (!fits || (number->whole && value != (double)(int64_t)value)) {
        fprintf(stderr, "gpt: --%s is '%s', not a%s number from %.0f to %.0f\n", number->name, text,
            number->whole ? " whole" : "", number->least, number->most);
        return false;
    }
    char *field = (char *)settings + number->offset;
    if (number->whole) {
        memcpy(field, &(int64_t){(int64_t)value}, sizeof(int64_t));
    } else {
        memcpy(field, &(float){(float)value}, sizeof(float));
    }
    return true;
}

static bool read_precision(const char *text, enum precision *ret_precision)
{
    static const char *const names[] = {"f32", "tf32", "bf16"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_precision = (enum precision)i;
            return true;
        }
    }
    fprintf(stderr, "gpt: --precision is '%s'; there are f32, tf32 and bf16\n", text);
    return false;
}

static bool check(const struct settings *settings)
{
    const struct shape *shape = &settings->shape;
    if (shape->channels % shape->heads != 0) {
        fprintf(stderr, "gpt: --channels is %lld, which %lld heads cannot share alike\n",
            (long long)shape->channels, (long long)shape->heads);
        return false;
    }
    return true;
}

enum { TEXT = NUMBERS, PRECISION, CEILING, HELP, OPTIONS };

static bool take(int option, struct settings *settings)
{
    if (option >= 0 && option < NUMBERS) {
        return read_number(&numbers[option], optarg, settings);
    }
    switch (option) {
    case TEXT:
        settings->text = optarg;
        return true;
    case PRECISION:
        return read_precision(optarg, &settings->precision);
    case CEILING:
        settings->ceiling = true;
        return true;
    default:
        fputs(help, stderr);
        return false;
    }
}

bool settings_read(int argc, char **argv, struct settings *ret_settings)
{
    struct option options[OPTIONS + 1] = {
        [TEXT] = {"text", required_argument, NULL, TEXT},
        [PRECISION] = {"precision", required_argument, NULL, PRECISION},
        [CEILING] = {"ceiling", no_argument, NULL, CEILING},
        [HELP] = {"help", no_argument, NULL, HELP},
    };
    for (int i = 0; i < NUMBERS; i++) {
        options[i] = (struct option){numbers[i].name, required_argument, NULL, i};
    }
    *ret_settings = (struct settings){.text = "/usr/share/common-licenses",
        .shape = {.layers = 2, .heads = 4, .channels = 128, .length = 64},
        .batch = 16,
        .steps = 400,
        .warm_up = 50,
        .rate = 0.002f,
        .decay = 0.1f,
        .seed = 1,
        .report = 50,
        .temperature = 0.8f};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take(option, ret_settings)) {
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "gpt: '%s' is not an option; see --help\n", argv[optind]);
        return false;
    }
    return check(ret_settings);
}
