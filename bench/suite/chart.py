# SPDX-License-Identifier: Apache-2.0
"""chart.py - horizontal bars with a spread, as SVG that needs nothing but itself"""

from xml.sax.saxutils import escape

WIDTH, LABEL, RIGHT = 860, 210, 120
BAR, GAP, TOP, BOTTOM = 16, 9, 64, 34
COLOURS = {'stele': '#2f6db5', 'bound': '#7a7f87', 'peer': '#c9a227'}
NAMES = {'stele': 'stele', 'bound': 'upper bounds: fio, a minimal ring', 'peer': 'peers'}


def kind_of(name):
    if name.startswith('stele'):
        return 'stele'
    return 'bound' if name.startswith(('fio', 'ring')) else 'peer'


def step_of(top):
    """A round step that gives three to seven lines."""
    step = 10.0 ** -6
    while True:
        for factor in (1, 2, 5):
            if top / (step * factor) <= 6:
                return step * factor
        step *= 10


def number(value):
    if value >= 10000:
        return f'{value / 1000:.0f} k'
    if value >= 1000:
        return f'{value / 1000:.1f} k'
    return f'{value:.0f}' if value >= 100 else f'{value:.3g}'


def text(x, y, words, anchor='start', size=12, colour='#1b1f24', weight='normal'):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}" font-weight="{weight}">{escape(words)}</text>')


def bar(y, name, found, scale):
    middle = y + BAR / 2
    low, high = (LABEL + found[k] * scale for k in ('low', 'high'))
    width = max(1.0, found['median'] * scale)
    parts = [text(LABEL - 8, middle + 4, name, 'end',
                  weight='bold' if name == 'stele' else 'normal'),
             f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" '
             f'fill="{COLOURS[kind_of(name)]}"/>',
             f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {y + 4}v{BAR - 8}'
             f'M{high:.1f} {y + 4}v{BAR - 8}" stroke="#1b1f24" stroke-width="1.3" fill="none"/>',
             text(max(LABEL + width, high) + 7, middle + 4, number(found['median']))]
    return ''.join(parts)


def legend(kinds):
    parts, x = [], LABEL
    for kind in kinds:
        parts.append(f'<rect x="{x}" y="42" width="10" height="10" fill="{COLOURS[kind]}"/>')
        parts.append(text(x + 15, 51, NAMES[kind], size=11, colour='#57606a'))
        x += 32 + 6.2 * len(NAMES[kind])
    return ''.join(parts)


def bars(title, unit, rows):
    """rows: (name, spread), in the order shown; the SVG as text."""
    top = max(max(s['high'], s['median']) for _, s in rows) or 1
    scale = (WIDTH - LABEL - RIGHT) / top
    height = TOP + len(rows) * (BAR + GAP) + BOTTOM
    end = height - BOTTOM + 2
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
             f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             text(16, 26, title, size=15, weight='bold'),
             legend([k for k in COLOURS if any(kind_of(n) == k for n, _ in rows)])]
    step, at = step_of(top), 0
    while at * step <= top * 1.0001:
        x = LABEL + at * step * scale
        parts.append(f'<path d="M{x:.1f} {TOP - 4}V{end}" stroke="#d8dee4"/>')
        parts.append(text(x, end + 14, number(at * step), 'middle', 11, '#57606a'))
        at += 1
    parts.append(text(WIDTH - 12, end + 28, unit + '; whiskers: middle half of the rounds', 'end',
                      11, '#57606a'))
    for i, (name, found) in enumerate(rows):
        parts.append(bar(TOP + i * (BAR + GAP), name, found, scale))
    return '\n'.join(parts) + '\n</svg>\n'
