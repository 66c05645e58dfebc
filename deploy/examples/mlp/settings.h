/* SPDX-License-Identifier: Apache-2.0
 * The command line, and what it chooses: one of two networks. */
#ifndef MLP_SETTINGS_H
#define MLP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAYERS = 3 };

/* A network and its input. */
struct preset {
    const char *name;
    int64_t widths[LAYERS + 1]; /* pixels, hidden, hidden, classes */
    int64_t batch;              /* global: of all replicas together */
};

struct settings {
    const struct preset *preset;
    uint64_t epochs;
    float learning_rate;
    float momentum;
    uint64_t seed;
    size_t bucket_bytes; /* of gradients that travel together */
    const char *data;    /* folder of the data files; NULL: looked for */
};

/* False after printing what is wrong, or the help that was asked for. */
bool settings_read(int argc, char **argv, struct settings *ret_settings);

#endif
