/* Markdown for the generated parts of the documents. */
#include "taskgate/core/markdown.h"

#define WIDTH 120

void markdown_append_item(struct buffer *out, struct str text)
{
    struct str word;
    size_t column = 1;
    buffer_append_char(out, '-');
    while (text.length > 0) {
        str_cut(text, ' ', &word, &text);
        size_t width = str_utf8_count(word);
        bool fits = column == 1 || column + 1 + width <= WIDTH;
        buffer_append_text(out, fits ? " " : "\n  ");
        buffer_append(out, word);
        column = fits ? column + 1 + width : 2 + width;
    }
    buffer_append_char(out, '\n');
}
