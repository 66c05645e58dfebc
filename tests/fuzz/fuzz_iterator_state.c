/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as the saved position of a pipeline. They are read as whatever they
 * say they are; each item that is accepted is written again and comes out the same. */
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/input/node/iterator_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The element is here because dataset.c, which has it, is not linked. */
void cadre_element_release(cadre_element *element)
{
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor_release(element->tensors[i]);
    }
    *element = (cadre_element){0};
}

static cadre_status copy_item(struct iterator_state_reader *reader,
    struct iterator_state_writer *writer, struct cadre_error *error)
{
    uint64_t number = 0;
    const void *bytes = NULL;
    size_t count = 0;
    cadre_element element = {0};
    struct id_list ids = {0};
    cadre_status status = CADRE_OK;
    switch (reader->bytes[reader->at]) {
    case 'n':
        CADRE_TRY(iterator_state_read_number(reader, &number, error));
        return iterator_state_write_number(writer, number, error);
    case 'b':
        CADRE_TRY(iterator_state_read_bytes(reader, &bytes, &count, error));
        return iterator_state_write_bytes(writer, bytes, count, error);
    case 'i':
        status = iterator_state_read_ids(reader, &ids, error);
        status = status == CADRE_OK ? iterator_state_write_ids(writer, &ids, error) : status;
        id_list_clear(&ids);
        return status;
    default:
        status = iterator_state_read_element(reader, &element, error);
        status =
            status == CADRE_OK ? iterator_state_write_element(writer, &element, error) : status;
        cadre_element_release(&element);
        return status;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct iterator_state_reader reader = {.bytes = data, .count = size};
    struct iterator_state_writer writer = {0};
    struct cadre_error error = {0};
    while (reader.at < size) {
        size_t from = reader.at;
        cadre_status status = copy_item(&reader, &writer, &error);
        CADRE_ASSERT(reader.at <= size && writer.count == reader.at);
        if (status != CADRE_OK) {
            CADRE_ASSERT(status == CADRE_INVALID_ARGUMENT || status == CADRE_RESOURCE_EXHAUSTED);
            CADRE_ASSERT(error.code == status && error.text[0] != '\0' && reader.at == from);
            break;
        }
    }
    CADRE_ASSERT(writer.count == 0 || memcmp(writer.bytes, data, writer.count) == 0);
    iterator_state_writer_clear(&writer);
    return 0;
}
