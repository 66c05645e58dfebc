/* SPDX-License-Identifier: Apache-2.0
 * What a dataset is inside: a chain of nodes, each with a small table of functions. A new source or
 * transformation is one file that fills one table; nothing else knows its name.
 *
 * Three kinds of node:
 *  - Sources and makers (range, npy, map, batch): have `at`. An element is a function of its place.
 *  - Re-indexing nodes (shuffle of all, take, skip, shard, repeat, prefetch): have `locate`. Their
 *    elements are those of the input, at another place; nothing is read to find it.
 *  - Sequential nodes (shuffle with a buffer, and everything above one): have only `iterate`.
 * A node is immutable once built, and its functions may be called from several threads at once. */
#ifndef CADRE_WORKER_INPUT_NODE_H
#define CADRE_WORKER_INPUT_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "common/base/error.h"
#include "worker/input/id_list.h"

/* Where an element stands: number `index` of epoch `epoch`. */
struct place {
    uint64_t index;
    uint64_t epoch;
};

struct dataset_ops {
    const char *name; /* as the user called it, for messages */

    /* Frees what the node itself owns, not the node and not its input. May be NULL. */
    void (*destroy)(cadre_dataset *self);

    /* What the elements look like, given those of the input (NULL for a source). NULL: as the
     * input's. */
    cadre_status (*spec)(cadre_dataset *self, const cadre_element_spec *input,
        cadre_element_spec *ret_spec, struct cadre_error *error);

    /* Re-indexing nodes: where in the input the element lies. */
    struct place (*locate)(const cadre_dataset *self, struct place place);

    /* Reads one element and appends the ids of the samples it is made of. On error *ret_element is
     * left empty and the ids are void. */
    cadre_status (*at)(cadre_dataset *self, struct place place, cadre_element *ret_element,
        struct id_list *ids, struct cadre_error *error);

    /* Appends the ids that `at` would, without reading. Wherever there is `at`. */
    cadre_status (*ids_at)(
        cadre_dataset *self, struct place place, struct id_list *ids, struct cadre_error *error);

    /* Batching nodes: the rows of an element, without reading it; and `at` for some of its rows,
     * count >= 1. */
    int64_t (*rows)(const cadre_dataset *self, struct place place);
    cadre_status (*at_rows)(cadre_dataset *self, struct place place, int64_t first, int64_t count,
        cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

    /* Batching nodes: the size asked for. */
    int64_t (*batch_size)(const cadre_dataset *self);

    /* Reads in order where the input is not indexable. NULL: the input's own order serves (such
     * nodes keep the input's elements and their order). */
    cadre_status (*iterate)(cadre_dataset *self, uint64_t epoch, cadre_iterator **ret_iterator,
        struct cadre_error *error);

    /* The elements are those of the input, whichever and in whatever order: the batch size of the
     * input is that of this node (the walk of semantics 1.4). */
    bool keeps_elements;

    bool reads_files; /* a source that does */
};

struct cadre_dataset {
    const struct dataset_ops *ops;
    atomic_uint references;
    cadre_dataset *input;       /* NULL for sources */
    int64_t cardinality;        /* or CADRE_CARDINALITY_... */
    bool indexable;             /* `at` or `locate` works down to the sources */
    struct cadre_error failure; /* code CADRE_OK: none */
};

/* --- building --- */

/* True when `data` is there and has no error yet; else a transformation returns `data` as it is. */
bool dataset_usable(const cadre_dataset *data);

/* A node of `bytes` bytes that starts with a cadre_dataset, zeroed behind it. Takes over the
 * reference of `input` (NULL for a source), also on failure. Cardinality and indexability are those
 * of the input; a source is indexable. NULL when there is no memory. */
void *dataset_new(size_t bytes, const struct dataset_ops *ops, cadre_dataset *input);

/* A dataset that stands for `error`. Takes over the reference of `input`, which may be NULL. */
cadre_dataset *dataset_failed(cadre_dataset *input, const struct cadre_error *error);

/* --- reading: walk down the re-indexing nodes, then ask the table --- */

cadre_status dataset_status(const cadre_dataset *data, struct cadre_error *error);

cadre_status dataset_spec(
    cadre_dataset *data, cadre_element_spec *ret_spec, struct cadre_error *error);

/* The batch size as semantics 1.4 finds it; CADRE_CARDINALITY_UNKNOWN if it cannot. */
int64_t dataset_batch_size(const cadre_dataset *data, const cadre_element_spec *spec);

/* The size of the first dimension of all components, CADRE_DIMENSION_ANY if not known or not one.
 */
int64_t element_spec_rows(const cadre_element_spec *spec);

/* Only for indexable datasets, with a place inside the cardinality. */
cadre_status dataset_at(cadre_dataset *data, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error);
cadre_status dataset_ids_at(
    cadre_dataset *data, struct place place, struct id_list *ids, struct cadre_error *error);

/* Rows of an element without reading it; CADRE_CARDINALITY_UNKNOWN when only reading tells. */
int64_t dataset_rows(cadre_dataset *data, struct place place);

/* Only where dataset_rows knows, and count >= 1. */
cadre_status dataset_at_rows(cadre_dataset *data, struct place place, int64_t first, int64_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

/* Any dataset, in order. The iterator holds a reference of its own. */
cadre_status dataset_iterate(
    cadre_dataset *data, uint64_t epoch, cadre_iterator **ret_iterator, struct cadre_error *error);

/* --- iterators --- */

struct iterator_ops {
    /* The next element and its ids, OUT_OF_RANGE at the end. Not called again after a failure. */
    cadre_status (*next)(cadre_iterator *self, cadre_element *ret_element, struct id_list *ids,
        struct cadre_error *error);
    /* Frees what the iterator itself owns, not the iterator and not its input. May be NULL. */
    void (*destroy)(cadre_iterator *self);
};

struct cadre_iterator {
    const struct iterator_ops *ops;
    cadre_dataset *data;        /* what it reads; a reference */
    cadre_iterator *input;      /* of the dataset's input; NULL at the bottom */
    struct cadre_error stopped; /* the end or an error, given again on each call */
};

/* An iterator of `bytes` bytes that starts with a cadre_iterator, reading `self`; with
 * `input_epoch` its input is an iterator of the dataset's input, without (NULL) it has none. */
cadre_status iterator_new(size_t bytes, const struct iterator_ops *ops, cadre_dataset *self,
    const uint64_t *input_epoch, cadre_iterator **ret_iterator, struct cadre_error *error);

/* `ids` may be NULL. */
cadre_status iterator_next(cadre_iterator *iterator, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error);

/* The error that means the end. */
cadre_status iterator_end(struct cadre_error *error);

#endif
