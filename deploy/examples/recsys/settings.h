/* SPDX-License-Identifier: Apache-2.0
 * The command line of `recsys`. */
#ifndef RECSYS_SETTINGS_H
#define RECSYS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct settings {
    int64_t rows; /* of the table: ids, all fields together */
    int64_t rounds;
    int64_t closures; /* a round */
    int64_t batch;    /* samples a closure */
    double rate;
};

/* False after printing what is wrong, or the help that was asked for. */
bool settings_read(int argc, char **argv, struct settings *ret_settings);

#endif
