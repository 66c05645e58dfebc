/* SPDX-License-Identifier: Apache-2.0
 * Lists of small files whose records are numbers, and the function that opens one: for the tests of
 * sharing out by files. Record r of file f is 1000 f + r. */
#ifndef CADRE_TESTS_INPUT_FILE_LISTS_H
#define CADRE_TESTS_INPUT_FILE_LISTS_H

#include "worker/library/input/node/node.h"

/* The names (CADRE_STRING scalars) of `count` files of records[0], records[1], ... records, written
 * to the scratch folder. */
cadre_dataset *file_names(const int64_t records[], size_t count);

/* The same for files of one length. */
cadre_dataset *alike_file_names(size_t count, int64_t records);

/* The records of such files as one source that holds the list of them: CADRE_I64 scalars. */
cadre_dataset *file_list(const int64_t records[], size_t count);

/* A cadre_dataset_function: the records of the file, CADRE_I64 scalars. */
cadre_status open_file(const cadre_element *in, cadre_dataset **ret_data, void *user);

#endif
