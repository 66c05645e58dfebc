/* SPDX-License-Identifier: Apache-2.0
 * Predictions for a whole set, in the set's order, whichever task made them. */
#ifndef RECORDS_PREDICT_H
#define RECORDS_PREDICT_H

#include "model.h"

enum { PREDICT_BATCH = 96, PREDICTIONS_MAX = 4096 };

/* Prediction i is that of record i. Registered by the program (cadre_state_register), so that a
 * task that joins in the middle knows those that were made before. */
struct predictions {
    int64_t count;
    char digits[PREDICTIONS_MAX];
};

/* Predicts the records of `data`, batches of PREDICT_BATCH (image, label, number) in the order of
 * the numbers. */
void predict(cadre_strategy *strategy, cadre_distributed_dataset *data, struct model *model,
    struct predictions *ret_predictions);

#endif
