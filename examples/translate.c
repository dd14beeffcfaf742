/* A trained model in a program of your own: reads lines, prints for each its translation, the log-probability, and for
 * every word of the translation the source word the model looked at most.
 *
 *     cc translate.c $(pkg-config --cflags --libs attend) -o translate
 *     attend train --source train.de --target train.en --output de-en.safetensors
 *     ./translate de-en.safetensors < test.de
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attend.h>

/* Called once for every line, in order; what `found` points to is ours until we return. */
static bool print_found(void *context, int64_t line, const at_found *found)
{
    const at_hypothesis *best = &found->best[0];
    (void)context;
    (void)line;
    printf("%s\n  log-probability %.4f\n", best->text, best->score);
    for (int64_t t = 0; best->weights && t < best->count; t++) {
        int32_t source = best->links[t];
        if (source >= 0)
            printf("  %s <- %s %.2f\n", best->names[t], found->source_names[source],
                   (double)best->weights[t * found->source_units + source]);
    }
    return true; /* false would stop the search */
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: translate MODEL < LINES\n");
        return AT_USAGE;
    }
    at_error error;
    memset(&error, 0, sizeof error);
    at_translator *translator = at_translator_load(argv[1], &error);

    at_search_settings settings;
    memset(&settings, 0, sizeof settings); /* 0 means the default */
    settings.beam = 4;
    settings.length_penalty = 0.6;
    settings.wants_weights = true;

    static char line[100000];
    while (translator && error.code == AT_OK && fgets(line, sizeof line, stdin)) {
        const char *text = line;
        size_t size = strcspn(line, "\n");
        at_translate(translator, &settings, &text, &size, 1, print_found, NULL, &error);
        settings.first_line++;
    }
    at_translator_free(translator);
    if (error.code != AT_OK)
        fprintf(stderr, "translate: %s\n", error.text);
    return error.code;
}
