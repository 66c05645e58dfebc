/* SPDX-License-Identifier: Apache-2.0
 * Progress of a plain program for people: a count of steps and metrics, as the program reports
 * them. */
#ifndef CADRE_RUNTIME_PLAIN_REPORT_H
#define CADRE_RUNTIME_PLAIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/job.h"
#include "common/model/limits.h"

struct plain;

struct plain_report {
    uint64_t step;
    uint64_t steps;
    uint64_t reported_us;
    bool changed;   /* since it was last sent or drawn */
    bool bar_drawn; /* a bar that is redrawn is on the terminal */
    uint32_t metric_count;
    struct metric metrics[LIMIT_METRICS]; /* names point into `names` */
    char names[LIMIT_METRICS][LIMIT_NAME_BYTES];
};

/* Sends or prints what is new, at the end, and ends the bar on the terminal. */
void plain_report_end(struct plain *plain);

#endif
