/* Small training runs in a temporary folder, for the tests of training. */
#ifndef TRAINING_OF_H
#define TRAINING_OF_H

/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "train/train.h"

#define DATA  "source", "train", "target", "train"
#define VALID "valid-source", "valid", "valid-target", "valid"

static char folder[] = "/tmp/attend-train-XXXXXX";

/* Lines of 2 to 6 of eight words, or of exactly `exact` words. */
static inline void write_lines(const char *path, int lines, int exact, uint64_t seed)
{
    FILE *file = fopen(path, "w");
    at_rng rng = {.seed = seed};
    for (int i = 0; i < lines; i++) {
        int words = exact ? exact : 2 + (int)at_rng_below(&rng, 5);
        for (int w = 0; w < words; w++)
            fprintf(file, "%s%c", w ? " " : "", 'a' + (int)at_rng_below(&rng, 8));
        fputc('\n', file);
    }
    fclose(file);
}

/* A folder with the files of DATA and VALID. */
static inline bool enter_training(void)
{
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return false;
    write_lines("train", 400, 0, 1);
    write_lines("valid", 60, 0, 2);
    return true;
}

static inline int leave_training(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* A small model that copies lines; further settings as NAME, VALUE ... NULL. */
static inline at_training *training_of(const char *output, ...)
{
    static const char *const common[][2] = {{"embedding", "16"}, {"hidden", "24"},     {"attention", "16"},
                                            {"maxout", "16"},    {"batch-size", "20"}, {"learning-rate", "0.005"}};
    at_error error = {0};
    at_training *training = at_training_new(&error);
    for (int i = 0; i < 6; i++)
        assert_true(at_training_set(training, common[i][0], common[i][1], &error));
    assert_true(at_training_set(training, "output", output, &error));
    va_list list;
    va_start(list, output);
    for (const char *name; (name = va_arg(list, const char *));)
        if (!at_training_set(training, name, va_arg(list, const char *), &error))
            fail_msg("%s", error.text);
    va_end(list);
    return training;
}

#endif
