/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "mlp: trains a network of three dense layers with OpenBLAS\n"
    "  --model NAME   digits: 64-256-256-10 on 8x8 handwritten digits, batches of 64\n"
    "                 big: 784-2048-2048-10 on random numbers, batches of 256 (digits)\n"
    "  --epochs N     passes over the data (20)\n"
    "  --lr X         learning rate (0.1)\n"
    "  --seed N       of the initial weights and the shuffle (1)\n"
    "  --bucket-kib N gradients that travel together, while others are computed (4096)\n"
    "  --data FOLDER  where digits-train.bin and digits-test.bin lie (here, or beside mlp)\n";

static const struct preset presets[] = {
    {.name = "digits", .widths = {64, 256, 256, 10}, .batch = 64},
    {.name = "big", .widths = {784, 2048, 2048, 10}, .batch = 256},
};

static bool read_count(const char *name, const char *text, uint64_t least, uint64_t *ret_value)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < least ||
        value > INT32_MAX) {
        fprintf(stderr, "mlp: --%s is '%s', not a whole number from %llu to %d\n", name, text,
            (unsigned long long)least, INT32_MAX);
        return false;
    }
    *ret_value = value;
    return true;
}

static bool read_rate(const char *text, float *ret_value)
{
    char *end;
    *ret_value = strtof(text, &end);
    if (end == text || *end != '\0' || !(*ret_value > 0 && *ret_value < 100)) {
        fprintf(stderr, "mlp: --lr is '%s', not a number above 0 and below 100\n", text);
        return false;
    }
    return true;
}

static bool read_model(const char *text, const struct preset **ret_preset)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(presets[i].name, text) == 0) {
            *ret_preset = &presets[i];
            return true;
        }
    }
    fprintf(stderr, "mlp: --model is '%s'; there are digits and big\n", text);
    return false;
}

static bool take(int option, struct settings *settings)
{
    uint64_t kib = 0;
    switch (option) {
    case 'm':
        return read_model(optarg, &settings->preset);
    case 'e':
        return read_count("epochs", optarg, 1, &settings->epochs);
    case 'l':
        return read_rate(optarg, &settings->learning_rate);
    case 's':
        return read_count("seed", optarg, 0, &settings->seed);
    case 'b':
        if (!read_count("bucket-kib", optarg, 0, &kib)) {
            return false;
        }
        settings->bucket_bytes = kib * 1024;
        return true;
    case 'd':
        settings->data = optarg;
        return true;
    default:
        fputs(help, stderr);
        return false;
    }
}

bool settings_read(int argc, char **argv, struct settings *ret_settings)
{
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'},
        {"epochs", required_argument, NULL, 'e'},
        {"lr", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},
        {"bucket-kib", required_argument, NULL, 'b'},
        {"data", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *ret_settings = (struct settings){.preset = &presets[0],
        .epochs = 20,
        .learning_rate = 0.1f,
        .momentum = 0.9f,
        .seed = 1,
        .bucket_bytes = (size_t)4 << 20};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take(option, ret_settings)) {
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "mlp: '%s' is not an option; see --help\n", argv[optind]);
        return false;
    }
    return true;
}
