/* SPDX-License-Identifier: Apache-2.0
 * The variables that a task's program has created. Their list, and the names that they get, are the
 * production's: worker/library/runtime/variables/variable_list.c and state/variable_name.c. Apart
 * from sim.h, because both have a struct mesh. */
#ifndef CADRE_SIM_CREATED_H
#define CADRE_SIM_CREATED_H

#include <stdbool.h>
#include <stdint.h>

struct created;

/* A layout as it travels with a state: 2 bits for each name and number; 0: no variable was created.
 */
#define LAYOUT_NAMES   3
#define LAYOUT_NUMBERS 10
enum layout_cell { LAYOUT_ABSENT = 0, LAYOUT_BETWEEN_STEPS, LAYOUT_IN_FUNCTION };

/* Without variables; freed by created_close. */
struct created *created_open(void);
/* Accepts NULL. */
void created_close(struct created *created);
/* Of the variables in the list. */
uint64_t created_layout(const struct created *created);

/* Its replica function begins a run. */
void created_step(struct created *created);
/* A call of its program: the variable that is to be created, as a layout of it alone; it is fresh,
 * and in no list yet. 0: it exists, and is returned. `wrong`: planted, with a wrong number. */
uint64_t created_ask(struct created *created, uint32_t name, bool between, bool wrong);
/* The newest fresh one enters the list. */
void created_put(struct created *created);
/* What a state has: a layout of one variable. */
void created_take(struct created *created, uint64_t variable);
/* What was under way is over; `undone`: without a result. */
void created_end(struct created *created, bool undone);
/* Its program holds all of them. */
void created_hand_over(struct created *created);

#endif
