/* SPDX-License-Identifier: Apache-2.0
 * Tensors as text: numpy's repr and TensorFlow's forms around array_text.c. */
#include "worker/library/device/tensor_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"

static const char *const numpy_names[] = {
    [CADRE_DTYPE_NONE] = "none",
    [CADRE_F64] = "float64",
    [CADRE_F32] = "float32",
    [CADRE_F16] = "float16",
    [CADRE_BF16] = "bfloat16",
    [CADRE_I64] = "int64",
    [CADRE_I32] = "int32",
    [CADRE_I16] = "int16",
    [CADRE_I8] = "int8",
    [CADRE_U32] = "uint32",
    [CADRE_U16] = "uint16",
    [CADRE_U8] = "uint8",
    [CADRE_BOOL] = "bool",
    [CADRE_STRING] = "string",
};

static void shape_text(const cadre_tensor *tensor, FILE *to)
{
    uint32_t rank = cadre_tensor_rank(tensor);
    fputc('(', to);
    for (uint32_t axis = 0; axis < rank; axis++) {
        fprintf(to, "%s%" PRId64, axis == 0 ? "" : ", ", cadre_tensor_dim(tensor, axis));
    }
    fputs(rank == 1 ? ",)" : ")", to);
}

/* array([1., 2.], dtype=float32), as numpy's repr. */
static void array_repr(const cadre_tensor *tensor, FILE *to)
{
    static const char front[] = "array(";
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    bool implied = (dtype == CADRE_F64 || dtype == CADRE_I64 || dtype == CADRE_BOOL) &&
                   cadre_tensor_count(tensor) > 0;
    struct array_margins margins = {.separator = ", ", .before = strlen(front), .after = 1};
    fputs(front, to);
    size_t columns_used = array_text(tensor, &margins, to);
    if (cadre_tensor_count(tensor) == 0 && cadre_tensor_rank(tensor) > 1) {
        fputs(", shape=", to);
        shape_text(tensor, to);
    }
    if (!implied) {
        char type[32];
        int columns = snprintf(
            type, sizeof type, "dtype=%s", dtype == CADRE_STRING ? "object" : numpy_names[dtype]);
        bool fits = columns_used + 1 + (size_t)columns + 2 <= ARRAY_TEXT_COLUMNS;
        fprintf(to, fits ? ", %s" : ",\n      %s", type);
    }
    fputc(')', to);
}

/* The elements, behind an end of line where they take several lines of text. */
static cadre_status elements_text(
    const cadre_tensor *tensor, enum tensor_form form, FILE *to, struct cadre_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory != NULL && cadre_tensor_rank(tensor) == 0) {
        element_text(tensor, 0, memory);
    } else if (memory != NULL && form == TENSOR_FORM_STR) {
        array_text(tensor, &(struct array_margins){.separator = " "}, memory);
    } else if (memory != NULL) {
        array_repr(tensor, memory);
    }
    bool failed = memory == NULL || ferror(memory) != 0;
    failed = (memory != NULL && fclose(memory) != 0) || failed;
    if (!failed) {
        fputs(memchr(text, '\n', bytes) != NULL ? "\n" : "", to);
        fwrite(text, 1, bytes, to);
    }
    free(text);
    return failed ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a text")
                  : CADRE_OK;
}

cadre_status tensor_text(
    const cadre_tensor *tensor, enum tensor_form form, FILE *to, struct cadre_error *error)
{
    cadre_tensor *here = NULL;
    CADRE_TRY(tensor_on_host(tensor, &here, error));
    const char *type = numpy_names[cadre_tensor_dtype(here)];
    if (form != TENSOR_FORM_STR) {
        fputs(form == TENSOR_FORM_REPR ? "<cadre_tensor: shape=" : "shape=", to);
        shape_text(here, to);
        fprintf(to, "%s dtype=%s, numpy=", form == TENSOR_FORM_REPR ? "," : "", type);
    } else {
        fputs("cadre_tensor(", to);
    }
    cadre_status status = elements_text(here, form, to, error);
    if (form == TENSOR_FORM_STR) {
        fputs(", shape=", to);
        shape_text(here, to);
        fprintf(to, ", dtype=%s)", type);
    } else if (form == TENSOR_FORM_REPR) {
        fputc('>', to);
    }
    cadre_tensor_release(here);
    return status;
}

cadre_status text_print(text_writer write, const void *of, FILE *file, struct cadre_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    cadre_status status = CADRE_OK;
    if (memory != NULL) {
        status = write(of, memory, error);
        fputc('\n', memory);
    }
    if (memory == NULL || ferror(memory) != 0) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a text");
    }
    if (memory != NULL && fclose(memory) != 0 && status == CADRE_OK) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a text");
    }
    if (status == CADRE_OK && fwrite(text, 1, bytes, file) != bytes) {
        status = cadre_error_errno(error, errno, "%zu bytes of text could not be written", bytes);
    }
    free(text);
    return status;
}

static cadre_status write_tensor(const void *of, FILE *to, struct cadre_error *error)
{
    return tensor_text(of, TENSOR_FORM_STR, to, error);
}

cadre_status cadre_tensor_print(const cadre_tensor *tensor, FILE *file)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(tensor, __func__, "tensor", &error);
    if (status == CADRE_OK) {
        status = argument_require(file, __func__, "file", &error);
    }
    if (status == CADRE_OK) {
        status = text_print(write_tensor, tensor, file, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}
