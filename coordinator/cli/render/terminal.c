/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/utf8.h"

struct text_style terminal_style_of(FILE *out)
{
    struct text_style text_style = {0};
    struct winsize size;
    if (isatty(fileno(out)) == 0) {
        return text_style;
    }
    const char *refused = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    text_style.colour =
        (refused == NULL || refused[0] == '\0') && kind != NULL && strcmp(kind, "dumb") != 0;
    text_style.columns =
        ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    return text_style;
}

const char *colour_start(const struct text_style *text_style, enum colour colour)
{
    static const char *const starts[] = {
        "", "\033[31m", "\033[32m", "\033[33m", "\033[34m", "\033[2m"};
    return text_style->colour ? starts[colour] : "";
}

const char *colour_end(const struct text_style *text_style, enum colour colour)
{
    return text_style->colour && colour != COLOUR_NONE ? "\033[0m" : "";
}

void terminal_print(FILE *out, const char *text)
{
    char cleaned[ESCAPER_GROWTH * 256 + 16];
    struct escaper escaper = {0};
    size_t left = strlen(text);
    if (isatty(fileno(out)) == 0) {
        fputs(text, out);
        return;
    }
    while (left > 0) {
        size_t take = left < 256 ? left : 256;
        left -= take;
        fwrite(cleaned, 1, escaper_add(&escaper, text, take, left == 0, cleaned), out);
        text += take;
    }
}

size_t text_columns(const char *text)
{
    size_t columns = 0;
    size_t left = strlen(text);
    while (left > 0) {
        size_t length = utf8_printable(text, left);
        length = length > 0 ? length : 1;
        text += length;
        left -= length;
        columns++;
    }
    return columns;
}

size_t text_print(FILE *out, const char *text, size_t columns)
{
    size_t done = 0;
    size_t left = strlen(text);
    while (left > 0 && (columns == 0 || done < columns)) {
        size_t length = utf8_printable(text, left);
        if (length == 0) {
            fputc('?', out);
            length = 1;
        } else {
            fwrite(text, 1, length, out);
        }
        text += length;
        left -= length;
        done++;
    }
    return done;
}
