/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "digits: learns to read 8x8 handwritten digits\n"
    "  --epochs N     passes over the training images (20)\n"
    "  --batch N      images per step, over all replicas (64)\n"
    "  --lr X         learning rate of the first epoch, falling to 0 (0.1)\n"
    "  --seed N       of the initial weights and the shuffle (1)\n"
    "  --data FOLDER  where digits-train.bin and digits-test.bin lie (here, or beside digits)\n"
    "  --no-progress  says nothing until the end\n";

static bool read_count(const char *name, const char *text, uint64_t least, uint64_t *ret_value)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < least ||
        value > INT64_MAX) {
        fprintf(stderr, "digits: --%s is '%s', not a whole number from %llu\n", name, text,
            (unsigned long long)least);
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
        fprintf(stderr, "digits: --lr is '%s', not a number above 0 and below 100\n", text);
        return false;
    }
    return true;
}

static bool take(int option, struct settings *settings)
{
    uint64_t batch = 0;
    switch (option) {
    case 'e':
        return read_count("epochs", optarg, 1, &settings->epochs);
    case 'b':
        if (!read_count("batch", optarg, 1, &batch)) {
            return false;
        }
        settings->batch = (int64_t)batch;
        return true;
    case 'l':
        return read_rate(optarg, &settings->learning_rate);
    case 's':
        return read_count("seed", optarg, 0, &settings->seed);
    case 'd':
        settings->data = optarg;
        return true;
    case 'n':
        settings->progress = false;
        return true;
    default:
        fputs(help, stderr);
        return false;
    }
}

bool settings_read(int argc, char **argv, struct settings *ret_settings)
{
    static const struct option options[] = {
        {"epochs", required_argument, NULL, 'e'},
        {"batch", required_argument, NULL, 'b'},
        {"lr", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},
        {"data", required_argument, NULL, 'd'},
        {"no-progress", no_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *ret_settings = (struct settings){
        .epochs = 20, .batch = 64, .learning_rate = 0.1f, .seed = 1, .progress = true};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take(option, ret_settings)) {
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "digits: '%s' is not an option; see --help\n", argv[optind]);
        return false;
    }
    return true;
}
