/* Tasks that generate their own data, the same for the same seed everywhere: pairs of lines, and the links between their
 * words where these are known. Test data never occurs in training data. */
#ifndef TASKS_H
#define TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How large a task of words is. */
typedef struct task_size {
    int symbols;     /* different words: w0, w1 ... */
    int least, most; /* words in a line */
} task_size;
enum { MOST_SYMBOLS = 10000, MOST_WORDS = 1000 };

typedef struct cli_task {
    const char *name, *line;
    /* from[j] is the index of the source word that the j-th target word is; NULL: a task of letters, with neither
     * sizes nor links */
    void (*order)(const int *words, int count, int *from);
    bool by_word;  /* equal words are interchangeable, so that their links are possible rather than sure */
    bool pictures; /* scenes.h draws the sources: task_write is for the others */
} cli_task;

/* In a fixed order; NULL past the last. */
const cli_task *task_at(int index);

/* Writes one pair, and its links if they are known; `kept` pairs are for tests. False if the task has
 * too few different lines to keep some apart. */
bool task_write(const cli_task *task, task_size size, uint64_t *random, bool kept, FILE *source, FILE *target,
                FILE *links);

/* The random numbers: a seed spread over all bits, and a draw from 0 .. below - 1. */
uint64_t task_mix(uint64_t seed);
int task_draw(uint64_t *state, int below);

/* A date as one of many people would write it, and in ISO 8601; `kept` days are for tests. */
enum { DATE_TEXT = 64 };
void task_date(uint64_t *random, bool kept, char text[DATE_TEXT], char iso[DATE_TEXT]);

#endif
