/* SPDX-License-Identifier: Apache-2.0
 * A curve as characters: a cell of a terminal has 2 by 4 dots in Braille, or one in ASCII. Pure. */
#ifndef CADRE_CLI_RENDER_CURVE_H
#define CADRE_CLI_RENDER_CURVE_H

#include <stdbool.h>
#include <stdio.h>

#include "cadre/client.h"

#define CURVE_COLUMNS_MIN 20
#define CURVE_COLUMNS_MAX 400
#define CURVE_ROWS        8

/* How it is drawn. */
struct curve_style {
    unsigned columns; /* of the whole, with the numbers at its side */
    bool braille;     /* the terminal shows UTF-8 */
};

/* Draws the finite values of a series: CURVE_ROWS rows with the highest and the lowest value at
 * their side, and a row with the first and the last step; a bucket is a bar from its minimum to its
 * maximum. Steps at which a generation began are marked in that row. False: no value is finite, and
 * nothing was drawn. */
bool curve_draw(const cadre_series *series, const cadre_job_series *job,
    const struct curve_style *style, FILE *out);

/* A number in at most six digits, as the curve's axis has it; "NaN", "Infinity", "-Infinity". */
#define CURVE_NUMBER_BYTES 32
const char *curve_number(double value, char text[CURVE_NUMBER_BYTES]);

#endif
