#!/usr/bin/env python3
"""Writes fold_table.h: python3 src/json/fold_table.py > src/json/fold_table.h

By Python's own Unicode data: full case folding of the canonical decomposition, until nothing
changes. What is compatible with ASCII text alone (full width, ligatures, mathematical letters)
folds to that text, i with and without a dot to i, and what is not shown to nothing.
"""
import unicodedata

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt.
HIDDEN = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]


def is_hidden(point):
    return any(first <= point <= last for first, last in HIDDEN)


def step(text):
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


def fold(point):
    if is_hidden(point):
        return ""
    if point in (0x130, 0x131):
        return "i"
    compatible = unicodedata.normalize("NFKD", chr(point)).casefold()
    if compatible.isascii():
        return compatible
    text = step(chr(point))
    while step(text) != text:
        text = step(text)
    return text


def is_composed_hangul(point):
    return 0xAC00 <= point <= 0xD7A3


points = [p for p in range(0x80, 0x110000) if not 0xD800 <= p <= 0xDFFF and not is_composed_hangul(p)]
folds = {p: f for p in points if (f := fold(p)) != chr(p)}
assert all(len(f.encode()) <= 3 * len(chr(p).encode()) for p, f in folds.items())
assert all("".join(folds.get(ord(c), c) for c in f) == f for f in folds.values())

ranges, texts = [], []
for point, text in folds.items():
    if is_hidden(point):
        continue
    if len(text) != 1:
        texts.append((point, text))
        continue
    delta = ord(text) - point
    last = ranges[-1] if ranges else None
    distance = point - last[1] if last else 0
    if last and last[3] == delta and distance in (1, 2) and last[2] in (0, distance):
        last[1], last[2] = point, distance
    else:
        ranges.append([point, point, 0, delta])


def quote(text):
    return '"' + "".join(c if c.isalnum() and c.isascii() or c == " " else
                         "\\%03o" % ord(c) if c.isascii() else
                         "\\u%04X" % ord(c) if ord(c) < 0x10000 else "\\U%08X" % ord(c) for c in text) + '"'


def write(rows):
    line = "   "
    for row in rows:
        if len(line) + len(row) + 2 > 100:
            print(line)
            line = "   "
        line += " " + row + ","
    print(line)


print(f"/* Made by fold_table.py of Unicode {unicodedata.unidata_version}: what characters fold to. */")
print("#pragma once\n\n#include <stdint.h>\n\n/* clang-format off */")
print("/* Every `step`th from `first` to `last` folds to the character `delta` from it. */")
print("static const struct {\n    uint32_t first, last, step;\n    int32_t delta;\n} fold_ranges[] = {")
write("{0x%X, 0x%X, %d, %d}" % (first, last, gap or 1, delta) for first, last, gap, delta in ranges)
print("};\n\n/* Those that fold to text. */")
print("static const struct {\n    uint32_t character;\n    const char *text;\n} fold_texts[] = {")
write("{0x%X, %s}" % (point, quote(text)) for point, text in texts)
print("};\n\n/* Those that are not shown fold to nothing. */")
print("static const struct {\n    uint32_t first, last;\n} fold_hidden[] = {")
write("{0x%X, 0x%X}" % pair for pair in HIDDEN)
print("};\n/* clang-format on */")
