/* SPDX-License-Identifier: Apache-2.0
 * conformance_cases FILE...: runs the cases of the files, one line for each that does not pass, and
 * "N passed, N failed, N skipped" at the end. Exit status 1 when one failed, 2 for a file that
 * cannot be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "areas.h"

static const struct {
    const char *name;
    void (*run)(struct conformance_case *self);
} areas[] = {
    {"auto_shard", area_auto_shard},
    {"batch_sizes", area_batch_sizes},
    {"compute_batch_size", area_compute_batch_size},
    {"dataset_from_function", area_dataset_from_function},
    {"distribute_dataset", area_distribute_dataset},
    {"element_spec", area_element_spec},
    {"input_context", area_input_context},
    {"input_options", area_input_options},
    {"iteration_end", area_iteration_end},
    {"lookup", area_lookup},
    {"rebatch_sizes", area_rebatch_sizes},
    {"rebatch_split", area_rebatch_split},
    {"values_from_function", area_values_from_function},
};

static unsigned long counts[3]; /* by verdict */

static void run_area(struct conformance_case *self, const char *area)
{
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) {
        if (strcmp(areas[i].name, area) == 0) {
            areas[i].run(self);
            return;
        }
    }
    case_skip(self, "%s: a part of the library that this runner does not ask", area);
}

static void run_case(const json_t *object, size_t number)
{
    static const char *const words[] = {"", "FAILED ", "skipped"};
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *area = json_string_value(json_object_get(object, "area"));
    struct conformance_case self = {
        .given = json_object_get(object, "given"), .expect = json_object_get(object, "expect")};
    if (area == NULL || !json_is_object(self.given) || !json_is_object(self.expect)) {
        case_skip(&self, "it is no object with \"area\", \"given\" and \"expect\"");
    } else {
        run_area(&self, area);
    }
    case_end(&self);
    counts[self.verdict]++;
    if (self.verdict != VERDICT_PASSED) {
        char unnamed[32];
        snprintf(unnamed, sizeof unnamed, "case %zu", number + 1);
        printf("%s %s: %s\n", words[self.verdict], id != NULL ? id : unnamed, self.why);
        fflush(stdout);
    }
}

static bool run_file(const char *path)
{
    json_error_t error;
    json_t *cases = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_array(cases)) {
        fprintf(stderr, "%s: %s\n", path,
            cases == NULL ? error.text : "the file holds no list of cases");
        if (cases == NULL && error.line > 0) {
            fprintf(stderr, "%s: line %d, column %d\n", path, error.line, error.column);
        }
        json_decref(cases);
        return false;
    }
    for (size_t i = 0; i < json_array_size(cases); i++) {
        run_case(json_array_get(cases, i), i);
    }
    json_decref(cases);
    return true;
}

int main(int argc, char **argv)
{
    bool readable = true;
    if (argc < 2) {
        fprintf(stderr, "usage: conformance_cases FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        readable = run_file(argv[i]) && readable;
    }
    printf("%lu passed, %lu failed, %lu skipped\n", counts[VERDICT_PASSED], counts[VERDICT_FAILED],
        counts[VERDICT_SKIPPED]);
    return !readable ? 2 : counts[VERDICT_FAILED] > 0;
}
