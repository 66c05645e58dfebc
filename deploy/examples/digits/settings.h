/* SPDX-License-Identifier: Apache-2.0
 * The command line. */
#ifndef DIGITS_SETTINGS_H
#define DIGITS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct settings {
    uint64_t epochs;
    int64_t batch; /* global: of all replicas together */
    float learning_rate;
    uint64_t seed;
    const char *data; /* folder of the data files; NULL: looked for */
    bool progress;
};

/* False after printing what is wrong, or the help that was asked for. */
bool settings_read(int argc, char **argv, struct settings *ret_settings);

#endif
