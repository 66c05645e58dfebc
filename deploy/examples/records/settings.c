/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "records: learns handwritten digits from TFRecord files (records-make makes them)\n"
    "  --epochs N           passes over the training records (20)\n"
    "  --batch N            records per step, over all replicas (64)\n"
    "  --seed N             of the shuffles (1)\n"
    "  --shard auto|file|data\n"
    "                       auto, file: tasks read whole files; data: single records (auto)\n"
    "  --gzip               the files are compressed\n"
    "  --data FOLDER        where they lie (.)\n";

static bool read_count(const char *name, uint64_t least, uint64_t *ret_value)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(optarg, &end, 10);
    if (optarg[0] < '0' || optarg[0] > '9' || *end != '\0' || errno != 0 || value < least ||
        value > INT64_MAX) {
        fprintf(stderr, "records: --%s is '%s', not a whole number from %llu\n", name, optarg,
            (unsigned long long)least);
        return false;
    }
    *ret_value = value;
    return true;
}

static bool read_shard(cadre_shard_policy *ret_shard)
{
    static const struct {
        const char *name;
        cadre_shard_policy policy;
    } policies[] = {
        {"auto", CADRE_SHARD_AUTO}, {"file", CADRE_SHARD_FILE}, {"data", CADRE_SHARD_DATA}};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(optarg, policies[i].name) == 0) {
            *ret_shard = policies[i].policy;
            return true;
        }
    }
    fprintf(stderr, "records: --shard is '%s', not auto, file or data\n", optarg);
    return false;
}

static bool take(int option, struct settings *settings)
{
    uint64_t batch = 0;
    switch (option) {
    case 'e':
        return read_count("epochs", 1, &settings->epochs);
    case 'b':
        if (!read_count("batch", 1, &batch)) {
            return false;
        }
        settings->batch = (int64_t)batch;
        return true;
    case 's':
        return read_count("seed", 0, &settings->seed);
    case 'p':
        return read_shard(&settings->shard);
    case 'z':
        settings->compression = CADRE_COMPRESSION_GZIP;
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
        {"epochs", required_argument, NULL, 'e'},
        {"batch", required_argument, NULL, 'b'},
        {"seed", required_argument, NULL, 's'},
        {"shard", required_argument, NULL, 'p'},
        {"gzip", no_argument, NULL, 'z'},
        {"data", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *ret_settings = (struct settings){.epochs = 20, .batch = 64, .seed = 1, .data = "."};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take(option, ret_settings)) {
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "records: '%s' is not an option; see --help\n", argv[optind]);
        return false;
    }
    return true;
}
