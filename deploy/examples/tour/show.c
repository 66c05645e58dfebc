/* SPDX-License-Identifier: Apache-2.0
 * Values of tensors as text. */
#include "show.h"

#include <inttypes.h>
#include <stdio.h>

static void show_value(const cadre_tensor *tensor, int64_t at)
{
    const void *data = cadre_tensor_const_data(tensor);
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_F32:
        printf("%.7g", (double)((const float *)data)[at]);
        break;
    case CADRE_F64:
        printf("%.15g", ((const double *)data)[at]);
        break;
    case CADRE_I64:
        printf("%" PRId64, ((const int64_t *)data)[at]);
        break;
    case CADRE_I32:
        printf("%" PRId32, ((const int32_t *)data)[at]);
        break;
    case CADRE_STRING: {
        const cadre_string *text = (const cadre_string *)data + at;
        printf("%.*s", (int)text->size, text->bytes);
        break;
    }
    default:
        printf("a value of type %s", cadre_dtype_name(cadre_tensor_dtype(tensor)));
        break;
    }
}

/* The part of the tensor that begins with value `*at`, from dimension `axis` on. */
static void show_part(const cadre_tensor *tensor, uint32_t axis, int64_t *at)
{
    if (axis == cadre_tensor_rank(tensor)) {
        show_value(tensor, (*at)++);
        return;
    }
    printf("[");
    for (int64_t i = 0; i < cadre_tensor_dim(tensor, axis); i++) {
        printf("%s", i > 0 ? " " : "");
        show_part(tensor, axis + 1, at);
    }
    printf("]");
}

void show(const cadre_tensor *tensor)
{
    int64_t at = 0;
    show_part(tensor, 0, &at);
}

void show_replicas(const cadre_per_replica *value, uint32_t component)
{
    printf("(");
    for (uint32_t r = 0; r < cadre_per_replica_count(value); r++) {
        printf("%s", r > 0 ? ", " : "");
        show(cadre_local_results(value, component)[r]);
    }
    printf(")\n");
}
