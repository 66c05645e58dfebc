/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/clock.h"

/* The alternate screen, no cursor, lines are cut at the edge; and back. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char leave[] = "\033[?7h\033[?25h\033[?1049l";

static struct {
    volatile sig_atomic_t open;
    volatile sig_atomic_t resized;
    struct termios before;
} screen;

static void full_screen_put(const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno != EINTR) {
            return; /* the terminal was closed */
        }
        text += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
}

void full_screen_close(void)
{
    if (screen.open != 0) {
        screen.open = 0;
        full_screen_put(leave, sizeof leave - 1);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
    }
}

static void on_resize(int number)
{
    (void)number;
    screen.resized = 1;
}

/* All calls here are async-signal-safe. */
static void on_end(int number)
{
    full_screen_close();
    signal(number, SIG_DFL);
    raise(number);
}

/* SIGTSTP: restores the terminal, stops, and takes it again when continued. */
static void on_stop(int number)
{
    full_screen_put(leave, sizeof leave - 1);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
    (void)number;
    raise(SIGSTOP);
}

static void full_screen_take(void)
{
    struct termios raw = screen.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    full_screen_put(enter, sizeof enter - 1);
}

static void on_continue(int number)
{
    (void)number;
    if (screen.open != 0) {
        full_screen_take();
        screen.resized = 1;
    }
}

bool full_screen_open(void)
{
    static const int ends[] = {SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const char *kind = getenv("TERM");
    if (kind == NULL || kind[0] == '\0' || strcmp(kind, "dumb") == 0 || isatty(STDIN_FILENO) == 0 ||
        isatty(STDOUT_FILENO) == 0 || tcgetattr(STDIN_FILENO, &screen.before) != 0) {
        return false;
    }
    screen.open = 1;
    full_screen_take();
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)sigaction(ends[i], &(struct sigaction){.sa_handler = on_end}, NULL);
    }
    (void)sigaction(SIGWINCH, &(struct sigaction){.sa_handler = on_resize}, NULL);
    (void)sigaction(
        SIGTSTP, &(struct sigaction){.sa_handler = on_stop, .sa_flags = SA_RESTART}, NULL);
    (void)sigaction(
        SIGCONT, &(struct sigaction){.sa_handler = on_continue, .sa_flags = SA_RESTART}, NULL);
    return true;
}

void full_screen_show(const char *text, size_t size)
{
    struct winsize window;
    unsigned rows =
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0 ? window.ws_row : 24;
    const char *end = text + size;
    full_screen_put("\033[H", 3);
    for (unsigned row = 0; row < rows && text < end; row++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = newline != NULL ? (size_t)(newline - text) : (size_t)(end - text);
        full_screen_put(text, length);
        full_screen_put("\033[K", 3);
        if (row + 1 < rows) {
            full_screen_put("\r\n", 2);
        }
        text += length + 1;
    }
    full_screen_put("\033[J", 3);
}

int full_screen_key(uint64_t wait_us, bool *ret_resized)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char keys[16] = {0}; /* one key may send several bytes, the first of them Esc */
    int ready = 0;
    if (screen.resized == 0) {
        ready = poll(&input, 1, (int)(wait_us / CADRE_US_PER_MS));
    }
    *ret_resized = screen.resized != 0;
    screen.resized = 0;
    if (ready > 0 && (input.revents & (POLLHUP | POLLERR)) != 0) {
        return 'q'; /* the terminal was closed */
    }
    return ready > 0 && read(STDIN_FILENO, keys, sizeof keys) > 0 ? keys[0] : 0;
}
