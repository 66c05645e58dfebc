/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/list_devices/use.h"

#include <inttypes.h>

#include "worker/library/cuda/nvml.h"

static void use_print(const struct nvml_use *use, FILE *out)
{
    if (use->has_percent) {
        fprintf(out, "%" PRIu32 ",", use->percent);
    } else {
        fprintf(out, "-,");
    }
    if (use->has_memory) {
        fprintf(out, "%" PRIu64, use->memory_bytes);
    } else {
        fputc('-', out);
    }
}

/* False: the input has ended; what follows its last newline is no request. */
static bool use_take_request(FILE *in)
{
    int byte;
    do {
        byte = getc(in);
    } while (byte != EOF && byte != '\n');
    return byte != EOF;
}

/* Says, to people, of which names nothing will be known. */
static void use_explain(char *const *names, size_t count)
{
    char reason[256];
    bool there = nvml_is_there(reason);
    if (!there) {
        fprintf(stderr, "cadre-devices: the use of GPUs is not known: %s\n", reason);
    }
    for (size_t i = 0; there && i < count; i++) {
        if (!nvml_has(names[i])) {
            fprintf(stderr,
                "cadre-devices: NVML has no GPU %s now; cadre-devices prints the UUIDs\n",
                names[i]);
        }
    }
}

bool use_answer_all(char *const *names, size_t count, FILE *in, FILE *out)
{
    use_explain(names, count);
    while (!ferror(out) && use_take_request(in)) {
        for (size_t i = 0; i < count; i++) {
            struct nvml_use use;
            nvml_use_of(names[i], &use);
            fputs(i > 0 ? " " : "", out);
            use_print(&use, out);
        }
        fputc('\n', out);
        (void)fflush(out);
    }
    return !ferror(out);
}
