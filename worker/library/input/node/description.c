/* SPDX-License-Identifier: Apache-2.0
 * A dataset as text: one line a node, the sources first. Two workers compare it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/library/input/node/node.h"

#define INDENT 2

struct description {
    FILE *stream; /* NULL: no memory */
};

void description_add(struct description *text, const char *format, ...)
{
    va_list arguments;
    if (text->stream != NULL) {
        va_start(arguments, format);
        vfprintf(text->stream, format, arguments);
        va_end(arguments);
    }
}

static void description_describe(const cadre_dataset *data, struct description *text)
{
    for (uint32_t i = 0; i < data->input_count; i++) {
        description_describe(data->inputs[i], text);
    }
    description_add(text, "%*s%s", INDENT * (int)data->depth, "", data->ops->name);
    if (data->ops->describe != NULL) {
        description_add(text, ": ");
        data->ops->describe(data, text);
    }
    description_add(text, "\n");
}

char *dataset_describe(const cadre_dataset *data)
{
    char *bytes = NULL;
    size_t count = 0;
    struct description text = {.stream = open_memstream(&bytes, &count)};
    if (text.stream == NULL) {
        return NULL;
    }
    description_describe(data, &text);
    if (fclose(text.stream) != 0) {
        free(bytes);
        return NULL;
    }
    return bytes;
}
