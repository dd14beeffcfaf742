/* One model for several threads: it is read from memory once, each thread translates its part of the lines with a clone
 * that shares the parameters, and Ctrl-C stops all of them.
 *
 *     cc threads.c $(pkg-config --cflags --libs attend) -pthread -o threads
 *     ./threads de-en.safetensors < test.de
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attend.h>

enum { THREADS = 2 };

static volatile int stop; /* once it is not 0, every call ends with AT_INTERRUPTED */

static void on_interrupt(int signal)
{
    (void)signal;
    stop = 1;
}

typedef struct part {
    at_translator *clone;
    const at_line *lines;
    int64_t first, count;
    char **texts; /* of all lines */
    at_error error;
} part;

static bool keep_text(void *context, int64_t line, const at_result *result)
{
    part *p = (part *)context;
    p->texts[line] = (char *)malloc(result->best[0].size + 1);
    if (p->texts[line])
        memcpy(p->texts[line], result->best[0].text, result->best[0].size + 1);
    return p->texts[line] != NULL;
}

static void *translate_part(void *context)
{
    part *p = (part *)context;
    at_search_settings settings;
    memset(&settings, 0, sizeof settings); /* 0 means the default */
    settings.first_line = p->first;
    settings.stop = &stop;
    at_translate(p->clone, &settings, p->lines + p->first, p->count, keep_text, p, &p->error);
    return NULL;
}

/* All bytes of a file; a program may have them compiled in, or from elsewhere. */
static void *read_bytes(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0 && (bytes = (char *)malloc((size_t)ftell(file) + 1))) {
        *size = (size_t)ftell(file);
        rewind(file);
        *size = fread(bytes, 1, *size, file);
    }
    if (file)
        fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: threads MODEL < LINES\n");
        return AT_USAGE;
    }
    at_error error;
    memset(&error, 0, sizeof error);
    size_t size = 0;
    void *bytes = read_bytes(argv[1], &size);
    at_translator *translator = at_translator_load_memory(bytes, size, &error);
    free(bytes);
    at_line_list *lines = at_line_list_read("-", &error);
    char **texts = lines ? (char **)calloc((size_t)lines->count + 1, sizeof *texts) : NULL;
    part parts[THREADS];
    pthread_t threads[THREADS];
    int started = 0;
    signal(SIGINT, on_interrupt);
    memset(parts, 0, sizeof parts);
    for (int i = 0; i < THREADS && translator && texts && error.code == AT_OK; i++) {
        part *p = &parts[i];
        p->clone = at_translator_clone(translator, &error);
        p->lines = lines->line;
        p->texts = texts;
        p->first = lines->count * i / THREADS;
        p->count = lines->count * (i + 1) / THREADS - p->first;
        if (p->clone && pthread_create(&threads[i], NULL, translate_part, p) == 0)
            started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        if (parts[i].error.code != AT_OK && error.code == AT_OK)
            error = parts[i].error;
    }
    for (int64_t i = 0; texts && i < lines->count; i++) {
        if (error.code == AT_OK)
            puts(texts[i]);
        free(texts[i]);
    }
    for (int i = 0; i < THREADS; i++)
        at_translator_free(parts[i].clone);
    free(texts);
    at_line_list_free(lines);
    at_translator_free(translator);
    if (error.code != AT_OK)
        fprintf(stderr, "threads: %s\n", error.text);
    return error.code == AT_OK && started == THREADS ? EXIT_SUCCESS : EXIT_FAILURE;
}
