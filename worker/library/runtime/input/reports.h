/* SPDX-License-Identifier: Apache-2.0
 * What people see of a training while it runs. The chief collects steps and metrics; a task of a
 * job sends them to the coordinator a few times a second, a program run by hand shows them itself
 * (show.h). The dataset whose epoch was begun first is the one that progress is counted in; others,
 * such as a test set read once per epoch, only add metrics. A program without datasets has its
 * steps counted. */
#ifndef CADRE_RUNTIME_REPORTS_H
#define CADRE_RUNTIME_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/input.h"
#include "cadre/strategy.h"
#include "common/base/error.h"
#include "common/model/job.h"

struct reports {
    bool by_hand;
    bool show;          /* by hand: wanted by the program */
    bool bar_drawn;     /* a bar that is redrawn is on the terminal */
    bool epoch_unshown; /* an epoch's text line is due where nothing is redrawn */
    bool changed;       /* since it was last sent or drawn */
    const cadre_distributed_dataset *primary;
    uint64_t started_us; /* of the primary's first epoch */
    uint64_t samples;    /* of the primary, since then */
    uint64_t steps;      /* likewise */
    uint64_t reported_us;
    uint64_t shards_us; /* when the last report of shards was sent */
    uint32_t metric_count;
    struct metric metrics[LIMIT_METRICS]; /* names point into `names` */
    char names[LIMIT_METRICS][LIMIT_NAME_BYTES];
    /* The newest state, as it is sent or drawn. */
    uint64_t epoch;
    uint64_t epochs;
    uint64_t step;
    uint64_t steps_per_epoch;
};

/* Makes the reports of a strategy; shown by hand unless the program turns that off. */
cadre_status reports_open(cadre_strategy *strategy, struct cadre_error *error);
/* Frees them. */
void reports_free(cadre_strategy *strategy);

/* Whether they are shown, by hand. */
bool reports_are_shown(const cadre_strategy *strategy);

/* An epoch begins. */
void reports_epoch(cadre_strategy *strategy, const cadre_distributed_dataset *distributed);

/* A step is applied: of a dataset with so many rows, or (NULL) of none. */
void reports_step(
    cadre_strategy *strategy, const cadre_distributed_dataset *distributed, int64_t rows);

/* Sends the newest state, whatever the time: before the end. */
void reports_flush(cadre_strategy *strategy);

/* Ends the bar on the terminal. */
void reports_end(cadre_strategy *strategy);

/* --- report_shards.c --- */

/* Sends the chief's report, in the program's thread. Of a dataset with many files some are named:
 * those that are not read yet come first. */
void report_shards(cadre_strategy *strategy);

#endif
