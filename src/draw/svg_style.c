#include "draw/label_internal.h"
#include "draw/ramp_internal.h"
#include "draw/svg_internal.h"

static void add_rules(at_buffer *text, at_ramp ramp)
{
    static const char *const fixed[] = {
        [AT_RAMP_LIGHT] =
            ".ground{fill:#fff}text{fill:#1c2733}.muted{fill:#566573}.lo{fill:#22303c}.hi{fill:#fff}"
            ".gold{stroke:#d9480f}.lines{stroke:#fff}.bar{fill:#8497a8}.frame{stroke:#b8c4cf}.nan{fill:#c9c9c9}\n",
        [AT_RAMP_DARK] =
            ".ground{fill:#15171c}text{fill:#e4e8ee}.muted{fill:#a3afbb}.lo{fill:#d8dee6}.hi{fill:#10131a}"
            ".gold{stroke:#ff4fa3}.lines{stroke:#15171c}.bar{fill:#6c7f92}.frame{stroke:#4a5663}.nan{fill:#606060}\n",
    };
    at_buffer_print(text, "%s", fixed[ramp]);
    for (int level = 0; level <= AT_SVG_LEVELS; level++) {
        int rgb[3];
        at_ramp_colour(ramp, (float)level / AT_SVG_LEVELS, rgb);
        at_buffer_print(text, ".s%d{fill:#%02x%02x%02x}%s", level, rgb[0], rgb[1], rgb[2],
                        level % 8 == 7 || level == AT_SVG_LEVELS ? "\n" : "");
    }
}

void at_svg_begin(at_buffer *text, int width, int height, const char *title, at_theme theme)
{
    at_buffer_print(text,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                    "role=\"img\">\n<title>",
                    width, height, width, height);
    at_label_add_markup(text, title, 200);
    at_buffer_print(text, "</"
                          "title>\n<style>\ntext{font-family:system-ui,sans-serif;white-space:pre}.title{font-weight:"
                          "bold}.gold{fill:none;stroke-width:2}"
                          ".frame,.lines{fill:none}\n");
    add_rules(text, theme == AT_THEME_DARK ? AT_RAMP_DARK : AT_RAMP_LIGHT);
    if (theme == AT_THEME_AUTO) {
        at_buffer_print(text, "@media screen and (prefers-color-scheme:dark){\n");
        add_rules(text, AT_RAMP_DARK);
        at_buffer_print(text, "}\n");
    }
    at_buffer_print(text, "</style>\n<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", width, height);
}
