/* Training on lines that the program has in memory: numbers and the words for their digits. Then the model is loaded and
 * reads a number it has not seen.
 *
 *     cc train_memory.c $(pkg-config --cflags --libs attend) -o train_memory && ./train_memory digits.safetensors
 */
#include <stdio.h>
#include <string.h>

#include <attend.h>

enum { PAIRS = 900, LONGEST = 40 };

static const char *const words[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};

static bool print_text(void *context, int64_t line, const at_result *result)
{
    (void)context;
    (void)line;
    printf("%s\n", result->best[0].text);
    return true;
}

int main(int argc, char **argv)
{
    static char numbers[PAIRS][4], texts[PAIRS][LONGEST];
    static at_line sources[PAIRS], targets[PAIRS];
    static const char *const settings[][2] = {{"source-vocab", "char"},   {"embedding", "32"}, {"hidden", "64"},
                                              {"attention", "32"},        {"maxout", "32"},    {"batch-size", "20"},
                                              {"learning-rate", "0.005"}, {"updates", "300"}};
    if (argc != 2) {
        fprintf(stderr, "usage: train_memory MODEL\n");
        return AT_USAGE;
    }
    for (int i = 0; i < PAIRS; i++) { /* 100 to 999, without 472 */
        const int n = i == 372 ? 100 : i + 100;
        snprintf(numbers[i], sizeof numbers[i], "%d", n);
        snprintf(texts[i], sizeof texts[i], "%s %s %s", words[n / 100], words[n / 10 % 10], words[n % 10]);
        sources[i].text = numbers[i];
        sources[i].size = strlen(numbers[i]);
        targets[i].text = texts[i];
        targets[i].size = strlen(texts[i]);
    }

    at_error error;
    memset(&error, 0, sizeof error);
    at_training *training = at_training_new(&error);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        at_training_set(training, settings[i][0], settings[i][1], &error);
    at_training_set(training, "output", argv[1], &error);
    at_training_data(training, AT_TRAIN, sources, targets, PAIRS, &error);
    at_train_result result;
    at_training_run(training, NULL, NULL, NULL, &result, &error);
    at_training_free(training);

    at_search_settings search;
    memset(&search, 0, sizeof search);
    const at_line unseen = {"472", 3};
    at_translator *translator = error.code == AT_OK ? at_translator_load(argv[1], &error) : NULL;
    if (translator)
        at_translate(translator, &search, &unseen, 1, print_text, NULL, &error);
    at_translator_free(translator);
    if (error.code != AT_OK)
        fprintf(stderr, "train_memory: %s\n", error.text);
    return error.code;
}
