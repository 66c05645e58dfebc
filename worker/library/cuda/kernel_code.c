/* SPDX-License-Identifier: Apache-2.0
 * See kernel_code.h; the rules of compatibility are those of the CUDA C++ Programming Guide,
 * "Application Compatibility" and "Feature Set Compiler Targets". */
#include "worker/library/cuda/kernel_code.h"

#include <string.h>

struct architecture {
    uint32_t number; /* 10 * major + minor; 0: any */
    char letter;     /* 'a', 'f' or 0 */
    bool machine;    /* machine code */
    bool ptx;
};

static bool kernel_code_starts(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* Takes one word from `*rest`; false: there are no more. */
static bool kernel_code_next(const char **rest, struct architecture *ret)
{
    const char *at = *rest + strspn(*rest, " ;");
    if (*at == '\0') {
        return false;
    }
    *ret = (struct architecture){.machine = true, .ptx = true};
    while (*at >= '0' && *at <= '9' && ret->number < 10000) {
        ret->number = 10 * ret->number + (uint32_t)(*at++ - '0');
    }
    if (ret->number > 0 && (*at == 'a' || *at == 'f')) {
        ret->letter = *at++;
    }
    if (kernel_code_starts(at, "-real")) {
        ret->ptx = false;
    } else if (kernel_code_starts(at, "-virtual")) {
        ret->machine = false;
    }
    *rest = at + strcspn(at, " ;");
    return true;
}

bool kernel_code_runs(const char *architectures, uint32_t major, uint32_t minor)
{
    struct architecture code;
    uint32_t number = 10 * major + minor;
    while (kernel_code_next(&architectures, &code)) {
        bool family = code.number / 10 == major && code.number <= number;
        bool fits = code.letter == 'a'   ? code.number == number
                    : code.letter == 'f' ? family
                                         : (code.machine && family) || code.ptx;
        if (code.number == 0 || (fits && code.number <= number)) {
            return true;
        }
    }
    return false;
}

uint32_t kernel_code_least(const char *architectures)
{
    struct architecture code;
    uint32_t least = UINT32_MAX;
    while (kernel_code_next(&architectures, &code)) {
        least = code.number < least ? code.number : least;
    }
    return least == UINT32_MAX ? 0 : least;
}
