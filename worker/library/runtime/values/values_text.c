/* SPDX-License-Identifier: Apache-2.0
 * Per-replica values as TensorFlow prints them. */
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_text.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/values/values.h"

static cadre_status write_component(const cadre_per_replica *value, uint32_t component,
    enum tensor_form form, FILE *to, struct cadre_error *error)
{
    cadre_tensor *const *tensors = cadre_local_results(value, component);
    if (cadre_per_replica_is_plain(value, component)) {
        return tensor_text(tensors[0], form, to, error);
    }
    fputs("PerReplica:{\n", to);
    for (uint32_t i = 0; i < value->replicas; i++) {
        fprintf(to, "%s  %u: ", i == 0 ? "" : ",\n", i);
        CADRE_TRY(tensor_text(tensors[i], form, to, error));
    }
    fputs("\n}", to);
    return CADRE_OK;
}

static cadre_status write_value(const void *of, FILE *to, struct cadre_error *error)
{
    const cadre_per_replica *value = of;
    if (value->components == 1) {
        return write_component(value, 0, TENSOR_FORM_STR, to, error);
    }
    fputc('(', to);
    for (uint32_t i = 0; i < value->components; i++) {
        fputs(i == 0 ? "" : ", ", to);
        CADRE_TRY(write_component(value, i, TENSOR_FORM_REPR, to, error));
    }
    fputc(')', to);
    return CADRE_OK;
}

cadre_status cadre_value_print(const cadre_per_replica *value, FILE *file)
{
    struct cadre_error error = {0};
    cadre_status status = per_replica_require(value, __func__, "value", &error);
    if (status == CADRE_OK) {
        status = argument_require(file, __func__, "file", &error);
    }
    if (status == CADRE_OK) {
        status = text_print(write_value, value, file, &error);
    }
    return border(status, &error);
}
