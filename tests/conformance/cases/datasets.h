/* SPDX-License-Identifier: Apache-2.0
 * The datasets of cases: {"source": .., "ops": [..]} as pipelines of the library. */
#ifndef CADRE_TESTS_CONFORMANCE_DATASETS_H
#define CADRE_TESTS_CONFORMANCE_DATASETS_H

#include "cadre/cadre.h"
#include "case.h"
#include "values.h"

struct case_dataset {
    cadre_dataset *data; /* the case's; retain it to hand it on */
    char structure[STRUCTURE_BYTES];
};

/* What is wrong with the pipeline is kept in the dataset; false is only what this runner does not
 * know, or a file that it cannot write. `reals`: the type of numbers that are not integers. */
bool dataset_build(struct conformance_case *self, const json_t *description, cadre_dtype reals,
    struct case_dataset *ret_dataset);

/* Elements that are given one by one, and may differ in shape: nothing is known of their number,
 * and of their shapes what all of them have in common, but never the first dimension. */
bool dataset_of_elements(struct conformance_case *self, const json_t *elements, cadre_dtype reals,
    cadre_dataset **ret_data);

/* Rows of a nested list: its slices where they have one shape, else one by one. */
bool dataset_of_slices(struct conformance_case *self, const json_t *values, cadre_dtype reals,
    cadre_dataset **ret_data);

/* Files of records (files.c). */
bool dataset_of_record_files(
    struct conformance_case *self, const json_t *source, cadre_dataset **ret_data);

/* A function of `text` for cadre_dataset_map; *ret_structure is that of its result. (map.c) */
bool dataset_map_expression(struct conformance_case *self, const char *text, cadre_dtype reals,
    struct case_dataset *dataset);

#endif
