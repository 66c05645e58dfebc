/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/screen.h"

#include <stdarg.h>
#include <string.h>

void screen_open(struct screen *screen, FILE *out, FILE *err)
{
    *screen = (struct screen){.out = out,
        .err = err,
        .out_style = terminal_style_of(out),
        .err_style = terminal_style_of(err)};
    screen->live = screen->err_style.columns > 0;
}

static void screen_erase(struct screen *screen)
{
    if (screen->drawn) {
        fputs("\r\033[K", screen->err);
        fflush(screen->err);
        screen->drawn = false;
    }
}

static void screen_draw(struct screen *screen)
{
    if (!screen->live || screen->status[0] == '\0') {
        return;
    }
    fputc('\r', screen->err);
    text_print(screen->err, screen->status, screen->err_style.columns - 1);
    fputs("\033[K", screen->err);
    fflush(screen->err);
    screen->drawn = true;
}

void screen_close(struct screen *screen)
{
    screen_erase(screen);
    screen->status[0] = '\0';
}

void screen_write(struct screen *screen, int stream, const char *bytes, size_t size)
{
    FILE *to = stream == 2 ? screen->err : screen->out;
    screen_erase(screen);
    fwrite(bytes, 1, size, to);
    fflush(to);
    screen_draw(screen);
}

void screen_note(struct screen *screen, const char *format, ...)
{
    char text[SCREEN_NOTE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    screen_erase(screen);
    vsnprintf(text, sizeof text, format, arguments);
    terminal_print(screen->err, text);
    fputc('\n', screen->err);
    fflush(screen->err);
    va_end(arguments);
    screen_draw(screen);
}

void screen_status(struct screen *screen, const char *text)
{
    if (!screen->live || strcmp(screen->status, text) == 0) {
        return;
    }
    snprintf(screen->status, sizeof screen->status, "%s", text);
    if (text[0] == '\0') {
        screen_erase(screen);
    } else {
        screen_draw(screen);
    }
}
