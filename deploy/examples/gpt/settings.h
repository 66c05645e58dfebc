/* SPDX-License-Identifier: Apache-2.0
 * The command line. */
#ifndef GPT_SETTINGS_H
#define GPT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "network.h"

struct settings {
    const char *text; /* a file, or a folder whose files are joined */
    struct shape shape;
    int64_t batch; /* windows of all replicas together */
    uint64_t steps;
    uint64_t warm_up; /* steps in which the rate rises; then it falls by a cosine to a tenth */
    float rate;
    float decay;
    uint64_t seed;
    enum precision precision;
    uint64_t report; /* steps from one report to the next */
    bool ceiling;    /* measure what matrix products could reach */
    int64_t sample;  /* bytes of text to write at the end */
    float temperature;
};

/* False after printing what is wrong, or the help that was asked for. */
bool settings_read(int argc, char **argv, struct settings *ret_settings);

#endif
