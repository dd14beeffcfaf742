/* Errors for programs: the code is the category of the failure, the message is for the user. Setting names are
 * in backquotes in a message, so that a program can show them in its own way: here in capitals.
 *
 *     cc errors.c $(pkg-config --cflags --libs attend) -o errors && ./errors
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <attend.h>

/* In the order of at_code. */
static const char *const kinds[] = {
    "no error",                  /* AT_OK */
    "failed",                    /* AT_FAILED: none of the following */
    "wrong setting or argument", /* AT_USAGE */
    "out of memory",             /* AT_MEMORY */
    "file not accessible",       /* AT_FILE */
    "file damaged or unknown",   /* AT_FORMAT */
    "sizes do not fit together", /* AT_SHAPE */
    "not supported",             /* AT_UNSUPPORTED */
    "interrupted",               /* AT_INTERRUPTED */
};

static void report(at_error *error)
{
    bool name = false;
    printf("%s: ", kinds[error->code]);
    for (const char *c = error->text; *c; c++)
        if (*c == '`')
            name = !name;
        else
            putchar(name ? toupper((unsigned char)*c) : *c);
    putchar('\n');
    memset(error, 0, sizeof *error); /* handled: the error may be used again */
}

int main(void)
{
    at_error error;
    memset(&error, 0, sizeof error);

    at_array_free(at_npy_read("no/such/file.npy", &error));
    at_translator_free(at_translator_load("also/missing", &error)); /* does nothing: the first error is kept */
    report(&error);

    at_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.score = "scalled";
    at_call call;
    memset(&call, 0, sizeof call);
    at_attend(&settings, &call, &error);
    report(&error);

    static float x[8];
    settings.score = "scaled";
    settings.heads = 3; /* of 8 columns */
    call.query = call.key = call.value = call.out = x;
    call.batch = call.queries = call.keys = 1;
    call.query_width = call.key_width = call.value_width = 8;
    at_attend(&settings, &call, &error);
    report(&error);
    return 0;
}
