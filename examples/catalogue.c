/* What the library offers, by name: the entries of the attention operator and the models, one line each. A program that
 * lets its users choose needs no list of its own.
 *
 *     cc catalogue.c $(pkg-config --cflags --libs attend) -o catalogue && ./catalogue
 */
#include <stdio.h>

#include <attend.h>

static void print_entry(const at_entry *entry)
{
    const char *argument = entry->argument; /* "" | "W" | "[BUCKETS]", in brackets if it may be left out */
    printf("%-10s %s", entry->axis, entry->name);
    if (argument[0] == '[')
        printf("[:%s\n", argument + 1);
    else
        printf("%s%s\n", argument[0] ? ":" : "", argument);
}

int main(void)
{
    printf("attend %s\n", at_version());
    for (int i = 0; at_catalogue(i); i++)
        print_entry(at_catalogue(i));
    for (int i = 0; at_model_entry(i); i++)
        print_entry(at_model_entry(i));
    return 0;
}
