/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/utf8.h"
#include "coordinator/cli/cleaner.h"

struct look terminal_look(FILE *out)
{
    struct look look = {0};
    struct winsize size;
    if (isatty(fileno(out)) == 0) {
        return look;
    }
    const char *refused = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    look.colour =
        (refused == NULL || refused[0] == '\0') && kind != NULL && strcmp(kind, "dumb") != 0;
    look.columns = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    return look;
}

const char *colour_start(const struct look *look, enum colour colour)
{
    static const char *const starts[] = {
        "", "\033[31m", "\033[32m", "\033[33m", "\033[34m", "\033[2m"};
    return look->colour ? starts[colour] : "";
}

const char *colour_end(const struct look *look, enum colour colour)
{
    return look->colour && colour != COLOUR_NONE ? "\033[0m" : "";
}

void terminal_say(FILE *out, const char *text)
{
    char cleaned[CLEANER_GROWTH * 256 + 16];
    struct cleaner cleaner = {0};
    size_t left = strlen(text);
    if (isatty(fileno(out)) == 0) {
        fputs(text, out);
        return;
    }
    while (left > 0) {
        size_t take = left < 256 ? left : 256;
        left -= take;
        fwrite(cleaned, 1, cleaner_take(&cleaner, text, take, left == 0, cleaned), out);
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
