/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "clicks.h"

static const char help[] =
    "recsys: predicts clicks from ids, whose table lies on parameter servers\n"
    "  --rounds N     rounds of training, each with a line of its own (20)\n"
    "  --closures N   batches in a round, by whichever worker is free (100)\n"
    "  --batch N      samples in a batch (512)\n"
    "  --rows N       ids, all of them: the rows of the table (1000000)\n"
    "  --rate X       of Adagrad (0.1)\n"
    "A worker, a ps and an evaluator are given the same options as the chief.\n";

static bool read_count(const char *name, int64_t least, int64_t most, int64_t *ret_value)
{
    char *end;
    errno = 0;
    long long value = strtoll(optarg, &end, 10);
    if (end == optarg || *end != '\0' || errno != 0 || value < least || value > most) {
        fprintf(stderr, "recsys: --%s is '%s', not a whole number from %lld to %lld\n", name,
            optarg, (long long)least, (long long)most);
        return false;
    }
    *ret_value = value;
    return true;
}

static bool read_rate(double *ret_rate)
{
    char *end;
    *ret_rate = strtod(optarg, &end);
    if (end == optarg || *end != '\0' || !(*ret_rate > 0 && *ret_rate <= 10)) {
        fprintf(stderr, "recsys: --rate is '%s', not a number above 0, up to 10\n", optarg);
        return false;
    }
    return true;
}

static bool take(int option, struct settings *settings)
{
    switch (option) {
    case 'r':
        return read_count("rounds", 1, 1000000, &settings->rounds);
    case 'c':
        return read_count("closures", 1, 100000, &settings->closures);
    case 'b':
        return read_count("batch", 1, 65536, &settings->batch);
    case 't':
        return read_count("rows", FIELDS, INT64_C(1) << 40, &settings->rows);
    case 'x':
        return read_rate(&settings->rate);
    default:
        fputs(help, stderr);
        return false;
    }
}

bool settings_read(int argc, char **argv, struct settings *ret_settings)
{
    static const struct option options[] = {
        {"rounds", required_argument, NULL, 'r'},
        {"closures", required_argument, NULL, 'c'},
        {"batch", required_argument, NULL, 'b'},
        {"rows", required_argument, NULL, 't'},
        {"rate", required_argument, NULL, 'x'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *ret_settings = (struct settings){
        .rows = 1000000, .rounds = 20, .closures = 100, .batch = 512, .rate = 0.1};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take(option, ret_settings)) {
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "recsys: '%s' is not an option; see --help\n", argv[optind]);
        return false;
    }
    return true;
}
