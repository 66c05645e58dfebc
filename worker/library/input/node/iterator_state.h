/* SPDX-License-Identifier: Apache-2.0
 * The position of an iterator as bytes: what checkpoints keep of pipelines that are not indexable.
 * Numbers, texts, tensors and lists of ids, one after the other; each is marked with its kind, so
 * that bytes of any origin are read safely, and wrong ones are an error. */
#ifndef CADRE_WORKER_INPUT_NODE_ITERATOR_STATE_H
#define CADRE_WORKER_INPUT_NODE_ITERATOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "common/base/error.h"
#include "worker/library/input/node/id_list.h"

/* Zeroed with a limit: empty. */
struct iterator_state_writer {
    uint8_t *bytes; /* malloc'ed; the owner's of the writer */
    size_t count;
    size_t capacity;
    size_t limit; /* RESOURCE_EXHAUSTED beyond; 0: no limit */
};

void iterator_state_writer_clear(struct iterator_state_writer *writer);
cadre_status iterator_state_write_number(
    struct iterator_state_writer *writer, uint64_t number, struct cadre_error *error);
cadre_status iterator_state_write_bytes(struct iterator_state_writer *writer, const void *bytes,
    size_t count, struct cadre_error *error);
cadre_status iterator_state_write_element(
    struct iterator_state_writer *writer, const cadre_element *element, struct cadre_error *error);
cadre_status iterator_state_write_ids(
    struct iterator_state_writer *writer, const struct id_list *ids, struct cadre_error *error);

struct iterator_state_reader {
    const uint8_t *bytes; /* borrowed */
    size_t count;
    size_t at;
};

/* INVALID_ARGUMENT: something else is there, or nothing. */
cadre_status iterator_state_read_number(
    struct iterator_state_reader *reader, uint64_t *ret_number, struct cadre_error *error);
/* Borrowed from the reader's bytes. */
cadre_status iterator_state_read_bytes(struct iterator_state_reader *reader, const void **ret_bytes,
    size_t *ret_count, struct cadre_error *error);
/* The caller's to clear. */
cadre_status iterator_state_read_element(
    struct iterator_state_reader *reader, cadre_element *ret_element, struct cadre_error *error);
/* Appends. */
cadre_status iterator_state_read_ids(
    struct iterator_state_reader *reader, struct id_list *ids, struct cadre_error *error);

#endif
