/* SPDX-License-Identifier: Apache-2.0
 * The command line of `records`. */
#ifndef RECORDS_SETTINGS_H
#define RECORDS_SETTINGS_H

#include <cadre/cadre.h>

struct settings {
    uint64_t epochs;
    int64_t batch; /* global: of all replicas together */
    uint64_t seed;
    cadre_shard_policy shard; /* FILE, DATA or AUTO */
    cadre_compression compression;
    const char *data; /* folder of the record files */
};

/* False after printing what is wrong, or the help that was asked for. */
bool settings_read(int argc, char **argv, struct settings *ret_settings);

#endif
