/* SPDX-License-Identifier: Apache-2.0
 * What the documents share: calls that must work or be refused, and values as text, for a sentence
 * and what comes of it to stand beside each other. */
#ifndef CADRE_TESTS_DOCUMENTS_H
#define CADRE_TESTS_DOCUMENTS_H

#include "tests/unit/runtime/training.h"

/* A strategy of this process alone, with so many replicas, is training_strategy(n). */

/* The call must work. */
#define OK(call) assert_public_ok(call)

/* The call must be refused with this status; the message must contain `part`. */
#define REFUSED(call, status, part) assert_public_error(call, status, part)

/* One-dimensional tensors, the caller's: floats(1, 2.5), integers(1, 2, 3), words("a", "b"). */
#define floats(...)                                                                                \
    documents_tensor(CADRE_F32, sizeof((const float[]){__VA_ARGS__}) / sizeof(float),              \
        (const float[]){__VA_ARGS__})
#define integers(...)                                                                              \
    documents_tensor(CADRE_I64, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),          \
        (const int64_t[]){__VA_ARGS__})
#define strings(...)                                                                               \
    documents_strings(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                      \
        (const char *const[]){__VA_ARGS__})
cadre_tensor *documents_tensor(cadre_dtype dtype, size_t count, const void *values);
cadre_tensor *documents_strings(size_t count, const char *const values[]);

/* The same values in rows of so many: rows(2, floats(1, 2, 3, 4)) is [[1 2] [3 4]]. Takes the
 * tensor. */
cadre_tensor *rows(int64_t columns, cadre_tensor *tensor);

/* The tensor holds these values: "5", "[1 2.5]", "[[1 2] [3 4]]", "[a b]". */
void assert_tensor(const cadre_tensor *tensor, const char *wanted);

/* The same, and gives it back. */
void assert_given(cadre_tensor *tensor, const char *wanted);

/* The tensors of all local replicas of one component: "5 6", "[1] [2]". */
void assert_replicas(const cadre_per_replica *value, uint32_t component, const char *wanted);

/* The elements of a dataset, in order; the components of one have a comma between them:
 * "0,[1 2] 1,[3 4]". Takes one reference of it. */
void assert_elements(cadre_dataset *data, const char *wanted);

/* Runs a function that needs no input and gives no output, once on each replica. */
void on_each_replica(cadre_strategy *strategy, cadre_replica_function function, void *user);

/* What `print` writes to a file must be this. */
#define assert_printed(print, wanted)                                                              \
    do {                                                                                           \
        FILE *file = documents_open();                                                             \
        OK(print);                                                                                 \
        documents_check(file, wanted);                                                             \
    } while (0)
FILE *documents_open(void);
void documents_check(FILE *file, const char *wanted);

#endif
