/* SPDX-License-Identifier: Apache-2.0
 * The source whose elements are the rows of an array that numpy saved. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/files/file_rows.h"
#include "worker/library/input/files/npy_header.h"
#include "worker/library/input/node/source.h"

struct npy_dataset {
    cadre_dataset base;
    struct input_file file;
    struct npy_header header;
    int64_t row_bytes;
};

static void npy_destroy(cadre_dataset *self)
{
    input_file_close(&((struct npy_dataset *)self)->file);
}

static cadre_status npy_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)inputs;
    (void)error;
    const cadre_tensor_spec *whole = &((struct npy_dataset *)self)->header.spec;
    *ret_spec = (cadre_element_spec){
        .count = 1, .tensors = {{.dtype = whole->dtype, .rank = whole->rank - 1}}};
    memcpy(ret_spec->tensors[0].dims, whole->dims + 1, (whole->rank - 1) * sizeof whole->dims[0]);
    return CADRE_OK;
}

/* The rows at `places`, one behind the other, as a tensor of that shape. */
static cadre_status read_rows(const struct npy_dataset *npy, uint32_t rank, const int64_t *dims,
    const struct element_position positions[], size_t count, cadre_element *ret_element,
    struct cadre_error *error)
{
    const struct file_rows rows = {
        .file = &npy->file,
        .offset = npy->header.data_offset,
        .row_bytes = (size_t)npy->row_bytes,
        .step_bytes = (size_t)npy->row_bytes,
    };
    cadre_tensor *read = NULL;
    CADRE_TRY(tensor_create_unset(npy->header.spec.dtype, rank, dims, &read, error));
    cadre_status status = file_rows_read(&rows, positions, count, cadre_tensor_data(read), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(read);
        return status;
    }
    *ret_element = (cadre_element){.count = 1, .tensors = {read}};
    return CADRE_OK;
}

static cadre_status npy_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct npy_dataset *npy = (const struct npy_dataset *)self;
    const cadre_tensor_spec *whole = &npy->header.spec;
    CADRE_TRY(id_list_add(ids, position.index, error));
    return read_rows(npy, whole->rank - 1, whole->dims + 1, &position, 1, ret_element, error);
}

static cadre_status npy_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct npy_dataset *npy = (const struct npy_dataset *)self;
    const cadre_tensor_spec *whole = &npy->header.spec;
    int64_t dims[CADRE_RANK_MAX];
    memcpy(dims, whole->dims, sizeof dims);
    dims[0] = (int64_t)count;
    CADRE_TRY(source_ids_at(self, positions, count, ids, error));
    return read_rows(npy, whole->rank, dims, positions, count, ret_element, error);
}

static void npy_describe(const cadre_dataset *self, struct description *text)
{
    const struct npy_dataset *npy = (const struct npy_dataset *)self;
    const cadre_tensor_spec *whole = &npy->header.spec;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    description_add(text, "%s", tensor_shape_text(whole->dtype, whole->rank, whole->dims, shape));
    input_file_describe(&npy->file, text);
}

static const struct dataset_ops npy_ops = {
    .name = "npy",
    .describe = npy_describe,
    .destroy = npy_destroy,
    .spec = npy_spec,
    .at = npy_at,
    .gather = npy_gather,
    .ids_at = source_ids_at,
    .reads_files = true,
};

static cadre_status read_header(struct npy_dataset *npy, struct cadre_error *error)
{
    const struct input_file *file = &npy->file;
    uint8_t prefix[NPY_PREFIX_BYTES];
    size_t size = file->bytes < NPY_PREFIX_BYTES ? (size_t)file->bytes : NPY_PREFIX_BYTES;
    CADRE_TRY(input_file_read(file, 0, prefix, size, error));
    size_t wanted = 0;
    CADRE_TRY(npy_header_size(prefix, size, file->path, &wanted, error));
    size = (uint64_t)file->bytes < wanted ? (size_t)file->bytes : wanted;
    CADRE_FREE_AT_EXIT uint8_t *header = malloc(size);
    if (header == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s: no memory for an npy header of %zu bytes", file->path, size);
    }
    CADRE_TRY(input_file_read(file, 0, header, size, error));
    return npy_header_parse(header, size, file->path, &npy->header, error);
}

static cadre_status npy_open(struct npy_dataset *npy, const char *path, struct cadre_error *error)
{
    CADRE_TRY(input_file_open(&npy->file, path, true, error));
    CADRE_TRY(read_header(npy, error));
    const struct npy_header *header = &npy->header;
    if (header->spec.rank == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s holds a scalar, which has no rows; save an array of at least one dimension", path);
    }
    int64_t expected = header->data_offset + header->data_bytes;
    if (npy->file.bytes < expected) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is cut short: its header promises %" PRId64 " bytes, but it has %" PRId64
            "; copy the file again",
            path, expected, npy->file.bytes);
    }
    int64_t rows = header->spec.dims[0];
    npy->base.cardinality = rows;
    npy->row_bytes = rows == 0 ? 0 : header->data_bytes / rows;
    return CADRE_OK;
}

cadre_dataset *cadre_dataset_npy(const char *path)
{
    struct cadre_error error = {0};
    if (path == NULL) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "npy: the path is NULL");
        return dataset_failed(NULL, &error);
    }
    struct npy_dataset *npy = dataset_new(sizeof *npy, &npy_ops, NULL);
    if (npy == NULL) {
        return NULL;
    }
    if (npy_open(npy, path, &error) != CADRE_OK) {
        return dataset_failed(&npy->base, &error);
    }
    return &npy->base;
}
