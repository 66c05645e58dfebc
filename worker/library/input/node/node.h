/* SPDX-License-Identifier: Apache-2.0
 * What a dataset is inside: a tree of nodes (mostly a chain), each with a small table of functions.
 * A new source or transformation is one file that fills one table; nothing else knows its name.
 *
 * Two ways to read:
 *  - By index, where the whole tree is indexable. *Makers* (sources, map, batch, zip) have `at`.
 *    *Re-indexing* nodes (shuffle of all, take, skip, shard, repeat) have `locate`: their elements
 *    are those of the input at another place; nothing is read to find it.
 *  - In order, through iterators. Every node that can stand on an input that is not indexable has
 *    `iterate`, and so has a source that reads better in order than by index.
 * A node is immutable once built, but for what it finds out once and keeps (cardinality, an index);
 * its functions may be called from several threads at once. Iterators have memory, and one thread
 * at a time. */
#ifndef CADRE_WORKER_INPUT_NODE_NODE_H
#define CADRE_WORKER_INPUT_NODE_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "common/base/error.h"
#include "worker/library/input/node/id_list.h"
#include "worker/library/input/node/iterator_state.h"

/* Where an element stands: number `index` of epoch `epoch`. */
struct element_position {
    uint64_t index;
    uint64_t epoch;
};

/* How an iteration is wanted. */
struct pass {
    uint64_t epoch;
    bool ordered; /* the same order each time, whatever `unordered` says */
};

/* Text that describes a node; see `describe`. Grows as it must; fails silently without memory. */
struct description;
void description_add(struct description *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a source that holds a list of files fills (dataset_ops.lists); sharding/file_list_source.h
 * says what it is for. */
struct file_list_source {
    size_t (*count)(const cadre_dataset *self);
    const char *(*path)(const cadre_dataset *self, size_t number); /* number < count */
    /* The same source of one file: one reference. */
    cadre_dataset *(*alone)(const cadre_dataset *self, const char *path);
};

struct dataset_ops {
    const char *name; /* as the user called it, for messages */

    /* Frees what the node itself owns, not the node and not its inputs. May be NULL. */
    void (*destroy)(cadre_dataset *self);

    /* The same transformation of other inputs (input_count of them), as its constructor would make
     * it: the constructor is what it calls. Takes the references over. NULL for sources. */
    cadre_dataset *(*rebuild)(const cadre_dataset *self, cadre_dataset *const inputs[]);

    /* Adds one line without line end: the parameters, in an order that never changes, so that two
     * processes that built the same pipeline have the same text. Of files the names without their
     * folders and the sizes. Functions of the program cannot be described. NULL: none. */
    void (*describe)(const cadre_dataset *self, struct description *text);

    /* What the elements look like, given those of the inputs (one for each; NULL for a source).
     * NULL: as those of the first input. */
    cadre_status (*spec)(cadre_dataset *self, const cadre_element_spec inputs[],
        cadre_element_spec *ret_spec, struct cadre_error *error);
    bool spec_alone; /* `spec` needs none of the inputs', and gets NULL */

    /* Number of elements, from dataset_cardinality of the inputs, as far as that is known now.
     * UNKNOWN may become known when the dataset is prepared, and never changes otherwise. NULL:
     * that of the first input; of a source what it set in `cardinality`. */
    int64_t (*cardinality)(const cadre_dataset *self);

    /* How many samples there are, where ids are 0 to one less; 0: not known. NULL: as the first
     * input; of a source its cardinality. */
    uint64_t (*samples)(const cadre_dataset *self);

    /* Sources that are indexable only after some work (an index of records): does it, once, at the
     * first call. After success the cardinality is known. NULL: nothing to do. */
    cadre_status (*prepare)(cadre_dataset *self, struct cadre_error *error);

    /* --- by index; only called when the tree is indexable and prepared --- */

    /* Re-indexing nodes: turns `count` places of this node into places of the input, in place. */
    void (*locate)(const cadre_dataset *self, struct element_position positions[], size_t count);

    /* Makers: reads one element and appends the ids of the samples it is made of. On error
     * *ret_element is left empty and the ids are void. */
    cadre_status (*at)(cadre_dataset *self, struct element_position position,
        cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

    /* Makers: `count` >= 1 elements stacked under a new first dimension, as batch makes them; they
     * are alike in shape, or it is INVALID_ARGUMENT. NULL: `at` for each, then tensor_stack. Worth
     * having where it saves a tensor or a system call per element. */
    cadre_status (*gather)(cadre_dataset *self, const struct element_position positions[],
        size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

    /* Makers: appends the ids that `at` would for each of the places, without reading. */
    cadre_status (*ids_at)(cadre_dataset *self, const struct element_position positions[],
        size_t count, struct id_list *ids, struct cadre_error *error);

    /* Batching nodes: the rows of an element, without reading it; and `at` for some of its rows,
     * count >= 1. `rows` may say CADRE_CARDINALITY_UNKNOWN; then `at_rows` is not called. */
    int64_t (*rows)(const cadre_dataset *self, struct element_position position);
    cadre_status (*at_rows)(cadre_dataset *self, struct element_position position, int64_t first,
        int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

    /* --- in order --- */

    /* NULL: the input's own order serves (nodes that only re-index, and change neither elements nor
     * their order). */
    cadre_status (*iterate)(cadre_dataset *self, const struct pass *pass,
        cadre_iterator **ret_iterator, struct cadre_error *error);

    /* --- distribution --- */

    /* The size of its batches: a batching node's own; a node of several inputs' that all agree in
     * it; else CADRE_CARDINALITY_UNKNOWN. NULL: see keeps_elements. */
    int64_t (*batch_size)(const cadre_dataset *self);

    /* The elements are those of the input, whichever and in whatever order: the batch size of the
     * input is that of this node (the walk of semantics 1.4). */
    bool keeps_elements;

    bool reads_files;                     /* a source that does */
    const struct file_list_source *lists; /* of a source that holds a list of them */

    /* flat_map and interleave: whether the elements of the input are names of files that the
     * program's function opens; it is called for the first one to see. NULL: no. */
    cadre_status (*opens_names)(cadre_dataset *self, bool *ret_opens, struct cadre_error *error);
};

struct cadre_dataset {
    const struct dataset_ops *ops;
    atomic_uint references;
    cadre_dataset *input;   /* the first input; NULL for sources */
    cadre_dataset **inputs; /* all of them: &input, or the node's own array, which it frees */
    uint32_t input_count;
    uint32_t depth;              /* nodes below it, at the most; walks of the tree are recursive */
    uint32_t nodes;              /* that a walk meets: those of each input, and itself */
    _Atomic int64_t cardinality; /* as known; dataset_cardinality asks */
    bool indexable;              /* can be read by index, once prepared */
    bool by_index_only;          /* has a node that needs that (a shuffle of all) */
    bool works_ahead; /* has a node with threads of its own, which reading in order alone gives */
    bool repeats;     /* has a node that gives elements several times in an epoch */
    bool has_names;   /* a node of it gives names to components */
    const char *const *_Atomic names; /* of its components, once its spec was asked for */
    struct cadre_error failure;       /* code CADRE_OK: none */
};

/* --- building --- */

/* A node deeper than that, or on top of more, is there, but has failed with INVALID_ARGUMENT. An
 * input that stands in two places is met twice. */
#define DATASET_DEPTH_MAX 1000
#define DATASET_NODES_MAX 100000

/* True when `data` is there and has no error yet; else a transformation returns `data` as it is. */
bool dataset_usable(const cadre_dataset *data);

/* A node of `bytes` bytes that starts with a cadre_dataset, zeroed behind it. Takes over the
 * reference of `input` (NULL for a source), also on failure. Indexability is that of the input; a
 * source is indexable. NULL when there is no memory. */
void *dataset_new(size_t bytes, const struct dataset_ops *ops, cadre_dataset *input);

/* The same with `count` >= 1 inputs, of which all references are taken over. When one of them
 * cannot be used the result is that one (NULL if it is NULL): ask dataset_usable, and return it as
 * it is. Indexable when all are. */
void *dataset_new_joined(
    size_t bytes, const struct dataset_ops *ops, cadre_dataset *const inputs[], size_t count);

/* A dataset that stands for `error`. Takes over the reference of `input`, which may be NULL. */
cadre_dataset *dataset_failed(cadre_dataset *input, const struct cadre_error *error);

/* --- asking --- */

cadre_status dataset_status(const cadre_dataset *data, struct cadre_error *error);

cadre_status dataset_spec(
    cadre_dataset *data, cadre_element_spec *ret_spec, struct cadre_error *error);

/* The names of the components, for those that look at its elements: reads the spec first where a
 * node gives names and it was not read before. NULL: they have none. Any thread. */
const char *const *dataset_names(cadre_dataset *data);

/* As known now. */
int64_t dataset_cardinality(const cadre_dataset *data);

/* Number of samples, whose ids are 0 to one less; 0: not known. */
uint64_t dataset_samples(const cadre_dataset *data);

/* Makes an indexable dataset ready for being read by index; cheap when it is. Any thread. */
cadre_status dataset_prepare(cadre_dataset *data, struct cadre_error *error);

/* Several lines, the sources first, indented by depth: "tfrecord: 2 files ...", "  batch: 64 ...".
 * malloc'ed; NULL without memory. */
char *dataset_describe(const cadre_dataset *data);

/* The batch size as semantics 1.4 finds it; CADRE_CARDINALITY_UNKNOWN if it cannot. */
int64_t dataset_batch_size(const cadre_dataset *data, const cadre_element_spec *spec);

/* The size of the first dimension of all components, CADRE_DIMENSION_ANY if not known or not one.
 */
int64_t element_spec_rows(const cadre_element_spec *spec);

/* What an element looks like. */
void element_spec_of(const cadre_element *element, cadre_element_spec *ret_spec);

/* INVALID_ARGUMENT: there are ragged or sparse components, which `who` cannot put into batches. */
cadre_status element_spec_check_plain(
    const cadre_element_spec *spec, const char *who, struct cadre_error *error);

/* Whether both have the same components in type and rank. */
bool element_spec_agrees(const cadre_element_spec *spec, const cadre_element_spec *other);

/* Dimensions in which `other` differs become CADRE_DIMENSION_ANY, where the two agree. */
void element_spec_widen(cadre_element_spec *spec, const cadre_element_spec *other);

/* Whether all elements have one shape, so that any number of them can be stacked. */
bool element_spec_is_uniform(const cadre_element_spec *spec);

/* --- by index: only for indexable, prepared datasets, with positions inside the cardinality. They
 * walk down the re-indexing nodes, then call the table. --- */

cadre_status dataset_at(cadre_dataset *data, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

/* Several elements as one batch; the `positions` are overwritten. */
cadre_status dataset_gather(cadre_dataset *data, struct element_position positions[], size_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);
cadre_status dataset_ids_at(cadre_dataset *data, struct element_position positions[], size_t count,
    struct id_list *ids, struct cadre_error *error);

/* Rows of an element without reading it; CADRE_CARDINALITY_UNKNOWN when that takes reading it. */
int64_t dataset_rows(cadre_dataset *data, struct element_position position);

/* Only where dataset_rows knows, and count >= 1. */
cadre_status dataset_at_rows(cadre_dataset *data, struct element_position position, int64_t first,
    int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

/* --- in order --- */

/* Any dataset. By index where it must be, or where nothing has to be prepared for it and no node
 * works ahead; else through `iterate`. The iterator holds a reference of its own. */
cadre_status dataset_iterate(cadre_dataset *data, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error);

struct iterator_ops {
    /* The next element and its ids, OUT_OF_RANGE at the end. Not called again after a failure. */
    cadre_status (*next)(cadre_iterator *self, cadre_element *ret_element, struct id_list *ids,
        struct cadre_error *error);

    /* 1 to `wanted` elements at once, stacked under a new first dimension; OUT_OF_RANGE at the end.
     * Asked only where element_spec_is_uniform. NULL: `next` for each, then tensor_stack. Worth
     * having where it saves a tensor per element. */
    cadre_status (*next_rows)(cadre_iterator *self, size_t wanted, cadre_element *ret_element,
        size_t *ret_count, struct id_list *ids, struct cadre_error *error);

    /* Passes over up to `count` elements; *ret_skipped is less only at the end. NULL: `next`. */
    cadre_status (*skip)(
        cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error);

    /* Writes where the iterator itself stands, not its input, between two calls of next; and goes
     * there, right after it was made for the same pass of the same dataset. What was saved is
     * checked: INVALID_ARGUMENT. NULL, both: it cannot; it is then read again from the start. */
    cadre_status (*save)(
        cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error);
    cadre_status (*restore)(
        cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error);

    /* `save` writes where the input stands too, and `restore` sees to it: the input's iterator is
     * another one from time to time (repeat, flat_map). */
    bool saves_input;

    /* Frees what the iterator itself owns, not the iterator and not its input. May be NULL. */
    void (*destroy)(cadre_iterator *self);
};

struct cadre_iterator {
    const struct iterator_ops *ops;
    cadre_dataset *data; /* what it reads; a reference */
    struct pass pass;
    cadre_iterator *input;      /* of the dataset's input; NULL at the bottom */
    const char *const *names;   /* of the components that the program gets; NULL: none */
    struct cadre_error stopped; /* the end or an error, given again on each call */
};

/* An iterator of `bytes` bytes that starts with a cadre_iterator, reading `self`; with
 * `input_pass` its input is an iterator of the dataset's first input, without (NULL) it has none.
 */
cadre_status iterator_new(size_t bytes, const struct iterator_ops *ops, cadre_dataset *self,
    const struct pass *pass, const struct pass *input_pass, cadre_iterator **ret_iterator,
    struct cadre_error *error);

/* `ids` may be NULL. */
cadre_status iterator_next(cadre_iterator *iterator, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error);

/* 1 to `wanted` elements stacked; elements of different shapes are INVALID_ARGUMENT. OUT_OF_RANGE
 * at the end. `ids` may be NULL. */
cadre_status iterator_next_rows(cadre_iterator *iterator, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error);

cadre_status iterator_skip(
    cadre_iterator *iterator, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error);

/* Where the iterator and all below it stand. UNIMPLEMENTED when one of them cannot tell. */
cadre_status iterator_save(
    cadre_iterator *iterator, struct iterator_state_writer *writer, struct cadre_error *error);
cadre_status iterator_restore(
    cadre_iterator *iterator, struct iterator_state_reader *reader, struct cadre_error *error);

/* The error that means the end. */
cadre_status iterator_end(struct cadre_error *error);

/* `save` and `restore` of iterators that have no position but their input's. */
cadre_status iterator_save_nothing(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error);
cadre_status iterator_restore_nothing(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error);

#endif
