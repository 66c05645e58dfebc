/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/cli/trace/trace_conclusion.h"

#define MANY   0.5
#define LISTED 0.03
#define UNLIKE 3 /* a step that takes so many times as long is mentioned */

/* ", whose input is slow" */
static const char *cause_text(enum trace_split part)
{
    static const char *const texts[TRACE_SPLITS] = {[TRACE_SPLIT_INPUT] = ", whose input is slow",
        [TRACE_SPLIT_FUNCTION] = ", whose function takes longer",
        [TRACE_SPLIT_WAIT] = ", which waits for others itself",
        [TRACE_SPLIT_TRANSFER] = ", whose collectives take longer",
        [TRACE_SPLIT_RELEASE] = ", whose steps are released late",
        [TRACE_SPLIT_APPLY] = ", which applies a step for longer",
        [TRACE_SPLIT_CHECKPOINT] = ", which saves a checkpoint",
        [TRACE_SPLIT_REGROUP] = ", which regroups",
        [TRACE_SPLIT_PULL] = ", whose reads from servers take longer",
        [TRACE_SPLIT_PUSH] = ", whose pushes to servers take longer",
        [TRACE_SPLIT_SCHEDULE] = ", which schedules closures for longer",
        [TRACE_SPLIT_CLOSURES] = ", which waits for closures itself",
        [TRACE_SPLIT_LIBRARY] = ", which is longer between its function and the next step",
        [TRACE_SPLIT_PROGRAM] = ", whose program does other things between steps"};
    return texts[part];
}

/* "function", as it is listed. */
static const char *part_text(enum trace_split part)
{
    static const char *const texts[TRACE_SPLITS] = {[TRACE_SPLIT_INPUT] = "input",
        [TRACE_SPLIT_FUNCTION] = "function",
        [TRACE_SPLIT_WAIT] = "waiting for other tasks",
        [TRACE_SPLIT_TRANSFER] = "collectives",
        [TRACE_SPLIT_RELEASE] = "release by the coordinator",
        [TRACE_SPLIT_APPLY] = "apply",
        [TRACE_SPLIT_CHECKPOINT] = "checkpoint",
        [TRACE_SPLIT_REGROUP] = "regrouping",
        [TRACE_SPLIT_PULL] = "reads from servers",
        [TRACE_SPLIT_PUSH] = "pushes to servers",
        [TRACE_SPLIT_SCHEDULE] = "scheduling closures",
        [TRACE_SPLIT_CLOSURES] = "waiting for closures",
        [TRACE_SPLIT_LIBRARY] = "cadre_run itself",
        [TRACE_SPLIT_PROGRAM] = "the program between steps"};
    return texts[part];
}

static enum trace_split largest_of(const double split[TRACE_SPLITS])
{
    enum trace_split largest = TRACE_SPLIT_INPUT;
    for (int part = 1; part < TRACE_SPLITS; part++) {
        largest = split[part] > split[largest] ? (enum trace_split)part : largest;
    }
    return largest;
}

static int percent(double share)
{
    return (int)(share * 100 + 0.5);
}

static void sentence_add(char text[TRACE_SENTENCE_BYTES], const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, TRACE_SENTENCE_BYTES - length, "%s", more);
}

#define TIME_BYTES 32

/* "12.3 ms" */
static const char *time_text(double us, char text[TIME_BYTES])
{
    double shown = us < 1000 ? us : us < 1e6 ? us / 1e3 : us / 1e6;
    const char *unit = us < 1000 ? "us" : us < 1e6 ? "ms" : "s";
    snprintf(text, TIME_BYTES, "%.3g %s", shown, unit);
    return text;
}

/* "A step takes the others 12.3 ms: 52% function, 41% waiting for other tasks, 4% input." */
static void list_split(
    const struct trace_conclusion *conclusion, bool own_numbers, char text[TRACE_SENTENCE_BYTES])
{
    double left[TRACE_SPLITS];
    char piece[96];
    char time[TIME_BYTES];
    snprintf(piece, sizeof piece,
        "%s takes %s%s:", own_numbers ? "From one collective to the next it" : "A step",
        conclusion->of_others ? "the others " : "", time_text(conclusion->step_us, time));
    sentence_add(text, piece);
    memcpy(left, conclusion->split, sizeof left);
    for (int i = 0; i < TRACE_SPLITS; i++) {
        enum trace_split largest = largest_of(left);
        if (left[largest] < LISTED && i > 0) {
            break;
        }
        snprintf(piece, sizeof piece, "%s %d%% %s", i > 0 ? "," : "", percent(left[largest]),
            own_numbers && largest == TRACE_SPLIT_PROGRAM ? "the program" : part_text(largest));
        sentence_add(text, piece);
        left[largest] = -1;
    }
    sentence_add(text, ".");
}

/* " Step 157 took 3.01 s, 99% of it waiting for task 1." */
static void add_longest(const struct trace_store *store, const struct trace_conclusion *conclusion,
    char text[TRACE_SENTENCE_BYTES])
{
    char piece[160];
    char time[TIME_BYTES];
    snprintf(piece, sizeof piece, " %s %" PRIu64 " took %s",
        store->own_numbers ? "That before collective" : "Step", conclusion->longest,
        time_text(conclusion->longest_us, time));
    sentence_add(text, piece);
    if (conclusion->longest_for != TRACE_NO_PROCESS && conclusion->longest_wait >= MANY) {
        snprintf(piece, sizeof piece, ", %d%% of it waiting for task %" PRIu32,
            percent(conclusion->longest_wait), store->processes[conclusion->longest_for].task.task);
        sentence_add(text, piece);
    }
    sentence_add(text, ".");
}

void trace_sentence(const struct trace_store *store, const struct trace_conclusion *conclusion,
    char ret_text[TRACE_SENTENCE_BYTES])
{
    char piece[160];
    ret_text[0] = '\0';
    if (conclusion->steps == 0) {
        sentence_add(ret_text, "No step was recorded.");
        return;
    }
    const struct trace_share *slowest =
        conclusion->slowest != TRACE_NO_PROCESS ? &conclusion->shares[conclusion->slowest] : NULL;
    enum trace_split most = largest_of(conclusion->split);
    if (slowest != NULL) {
        enum trace_split cause = largest_of(slowest->longer);
        snprintf(piece, sizeof piece, "%d%% of %s is waiting for task %" PRIu32 "%s. ",
            percent(slowest->awaited), store->own_numbers ? "the time" : "a step",
            store->processes[slowest->process].task.task,
            slowest->longer[cause] <= 0 ? ""
            : store->own_numbers && cause == TRACE_SPLIT_PROGRAM
                ? ", whose program takes longer from one collective to the next"
                : cause_text(cause));
        sentence_add(ret_text, piece);
    } else if (most == TRACE_SPLIT_INPUT && conclusion->split[most] >= MANY) {
        snprintf(piece, sizeof piece, "%d%% of a step is waiting for input, in all tasks. ",
            percent(conclusion->split[most]));
        sentence_add(ret_text, piece);
    }
    list_split(conclusion, store->own_numbers, ret_text);
    if (conclusion->steps >= 4 && conclusion->longest_us >= UNLIKE * conclusion->step_us) {
        add_longest(store, conclusion, ret_text);
    }
}
