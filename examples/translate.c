/* A trained model in a program of your own: reads lines, prints for each its translation, the log-probability, and for
 * every word of the translation the source word with the largest weight.
 *
 *     cc translate.c $(pkg-config --cflags --libs attend) -o translate
 *     attend train --source train.de --target train.en --output de-en.safetensors
 *     ./translate de-en.safetensors < test.de
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attend.h>

/* Called once for every line, in order; what `result` points to is valid until we return. */
static bool print_result(void *context, int64_t line, const at_result *result)
{
    const at_hypothesis *best = &result->best[0];
    (void)context;
    (void)line;
    printf("%s\n  log-probability %.4f\n", best->text, best->score);
    for (int64_t t = 0; best->weights && t < best->count; t++) {
        int32_t source = best->links[t];
        if (source >= 0)
            printf("  %s <- %s %.2f\n", best->names[t], result->source_names[source],
                   (double)best->weights[t * result->source_units + source]);
    }
    return true; /* false would stop the search */
}

/* Called for every line. A program that answers while its input is still being written returns AT_STREAM_WAIT when
 * at_line_reader_ready is false. */
static at_stream next_line(void *context, at_line *line, at_error *error)
{
    return at_line_reader_next((at_line_reader *)context, line, error) ? AT_STREAM_LINE : AT_STREAM_END;
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

    at_line_reader *reader = at_line_reader_open("-", &error);
    if (translator && reader)
        at_translate_stream(translator, &settings, next_line, print_result, reader, &error);
    at_line_reader_free(reader);
    at_translator_free(translator);
    if (error.code != AT_OK)
        fprintf(stderr, "translate: %s\n", error.text);
    return error.code == AT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
