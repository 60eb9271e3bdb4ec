/* The lines of a mail. */
#include "mail.h"

#include <openssl/evp.h>
#include <string.h>
#include <time.h>

/* A line has at most 78 bytes, and an encoded word 75 (RFC 5322 §2.1.1, RFC 2047 §2): "Subject: "
 * and "=?UTF-8?B?…?=" leave room for 52 letters. */
#define PLAIN_SUBJECT_BYTES 68
#define WORD_BYTES 39
#define ENCODED_LINE_BYTES 75
#define PLAIN_LINE_BYTES 900
/* Of the endpoint's key, in the ids. */
#define KEY_LETTERS 12

/* ---- the header ---- */

static bool mail_is_plain(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < ' ' || text.bytes[i] > '~')
            return false;
    }
    return true;
}

static bool looks_encoded(struct str text)
{
    for (size_t i = 1; i < text.length; i++) {
        if (text.bytes[i - 1] == '=' && text.bytes[i] == '?')
            return true;
    }
    return false;
}

/* At most WORD_BYTES of it, and whole characters. */
static size_t word_length(struct str text)
{
    size_t length = text.length;
    if (length <= WORD_BYTES)
        return length;
    for (length = WORD_BYTES; length > 1 && ((unsigned char)text.bytes[length] & 0xC0) == 0x80;)
        length--;
    return length;
}

static void write_subject(struct buffer *out, struct str text)
{
    buffer_append_text(out, "Subject:");
    if (mail_is_plain(text) && !looks_encoded(text) && text.length <= PLAIN_SUBJECT_BYTES) {
        buffer_append_format(out, " %.*s\r\n", STR_ARGS(text));
        return;
    }
    while (text.length > 0) {
        unsigned char word[4 * (WORD_BYTES / 3 + 1) + 1];
        size_t length = word_length(text);
        EVP_EncodeBlock(word, (const unsigned char *)text.bytes, (int)length);
        text = str_slice(text.bytes + length, text.length - length);
        buffer_append_format(out, " =?UTF-8?B?%s?=\r\n", (const char *)word);
    }
}

/* RFC 5322 §3.3, in any locale. */
static void write_date(struct buffer *out, int64_t at_ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t at_s = (time_t)(at_ms / 1000);
    struct tm parts;
    gmtime_r(&at_s, &parts);
    buffer_append_format(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[parts.tm_wday],
                         parts.tm_mday, months[parts.tm_mon], 1900 + parts.tm_year, parts.tm_hour,
                         parts.tm_min, parts.tm_sec);
}

static void write_recipients(struct buffer *out, const struct config_strings *to)
{
    for (size_t i = 0; i < to->count; i++)
        buffer_append_format(out, "%s %s%s\r\n", i == 0 ? "To:" : "", to->items[i],
                             i + 1 < to->count ? "," : "");
}

/* The first mail of a thread has an id that the later ones know without having seen it. */
static void write_ids(struct buffer *out, const struct mail *mail)
{
    const char *domain = strrchr(mail->notify->from, '@');
    if (mail->begins_thread) {
        buffer_append_format(out, "Message-ID: <%s.%.*s%s>\r\n", mail->thread, KEY_LETTERS,
                             mail->key, domain);
        return;
    }
    buffer_append_format(out, "Message-ID: <%s.%.*s%s>\r\n", mail->id, KEY_LETTERS, mail->key,
                         domain);
    buffer_append_format(out, "In-Reply-To: <%s.%.*s%s>\r\n", mail->thread, KEY_LETTERS, mail->key,
                         domain);
    buffer_append_format(out, "References: <%s.%.*s%s>\r\n", mail->thread, KEY_LETTERS, mail->key,
                         domain);
}

/* ---- the text ---- */

/* Whether every server takes the text as it is. */
static bool is_plain_text(struct str text)
{
    struct str line;
    while (text.length > 0) {
        str_cut(text, '\n', &line, &text);
        if (!mail_is_plain(line) || line.length > PLAIN_LINE_BYTES)
            return false;
    }
    return true;
}

/* RFC 2045 §6.7. */
static void write_quoted_line(struct buffer *out, struct str line)
{
    size_t column = 0;
    for (size_t i = 0; i < line.length; i++) {
        unsigned char c = (unsigned char)line.bytes[i];
        bool is_last = i + 1 == line.length;
        bool stays = c > ' ' ? c <= '~' && c != '=' : c == ' ' && !is_last;
        size_t width = stays ? 1 : 3;
        if (column + width > ENCODED_LINE_BYTES) {
            buffer_append_text(out, "=\r\n");
            column = 0;
        }
        buffer_append_format(out, stays ? "%c" : "=%02X", c);
        column += width;
    }
    buffer_append_text(out, "\r\n");
}

static void mail_write_text(struct buffer *out, struct str text, bool is_quoted)
{
    struct str line;
    while (text.length > 0) {
        str_cut(text, '\n', &line, &text);
        if (is_quoted)
            write_quoted_line(out, line);
        else
            buffer_append_format(out, "%.*s\r\n", STR_ARGS(line));
    }
}

void mail_write(struct buffer *out, const struct mail *mail)
{
    bool is_quoted = !is_plain_text(mail->text);
    write_date(out, mail->at_ms);
    buffer_append_format(out, "From: %s\r\n", mail->notify->from);
    write_recipients(out, &mail->notify->to);
    write_subject(out, mail->subject);
    write_ids(out, mail);
    /* No holiday notice answers it (RFC 3834 §5). */
    buffer_append_text(out, "Auto-Submitted: auto-generated\r\n");
    if (mail->is_urgent)
        buffer_append_text(out, "Importance: high\r\n");
    buffer_append_text(out, "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n");
    buffer_append_format(out, "Content-Transfer-Encoding: %s\r\n\r\n",
                         is_quoted ? "quoted-printable" : "7bit");
    mail_write_text(out, mail->text, is_quoted);
}
