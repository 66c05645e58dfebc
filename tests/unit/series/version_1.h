/* SPDX-License-Identifier: Apache-2.0
 * Files of a job's values as coordinators wrote them whose records named no source. */
#ifndef CADRE_TESTS_UNIT_SERIES_VERSION_1_H
#define CADRE_TESTS_UNIT_SERIES_VERSION_1_H

#include "common/wire/wire.h"

/* Appends the records of a whole file of version 2, all of them of the training, as version 1 had
 * them. */
void version_1_of(const struct wire_buffer *file, struct wire_buffer *ret_old);

#endif
