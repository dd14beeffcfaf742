#include "long_lines.h"

enum { NOTED = 3 }; /* lines of each kind that are noted one by one */

void long_lines_note(long_lines *lines, int64_t line, int64_t units, int64_t read)
{
    const int64_t count = read < units ? ++lines->cut : ++lines->whole;
    if (lines->quiet || count > NOTED)
        return;
    if (read < units)
        fprintf(stderr, "attend: line %lld has %lld units; only the %s %lld are read (--max-source)\n",
                (long long)line + 1, (long long)units, lines->continues ? "last" : "first", (long long)read);
    else
        fprintf(stderr, "attend: line %lld has %lld units, more than the model was trained on\n", (long long)line + 1,
                (long long)units);
}

static void sum(int64_t count, const char *what)
{
    if (count > NOTED)
        fprintf(stderr, "attend: %lld more line%s %s\n", (long long)count - NOTED, count == NOTED + 1 ? "" : "s", what);
}

void long_lines_sum(const long_lines *lines)
{
    if (lines->quiet)
        return;
    sum(lines->cut, "had more units than --max-source");
    sum(lines->whole, "had more units than the model was trained on");
}
