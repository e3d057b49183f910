# SPDX-License-Identifier: Apache-2.0
"""order.py - how well an order mixes: one figure of neighbours, one of the whole

Of ids that are indices of the source, as they came.
"""


def correlation(values):
    """Of values and their positions; 0 for a perfect shuffle, 1 for none."""
    count = len(values)
    if count < 2:
        return 0.0
    mean_x, mean_y = (count - 1) / 2, sum(values) / count
    xy = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(values))
    xx = sum((x - mean_x) ** 2 for x in range(count))
    yy = sum((y - mean_y) ** 2 for y in values)
    return xy / (xx * yy) ** 0.5 if xx and yy else 0.0


def neighbours(values, count):
    """Mean distance of samples that follow each other, by that of a perfect shuffle (n/3)."""
    if len(values) < 2:
        return 0.0
    total = sum(abs(a - b) for a, b in zip(values, values[1:]))
    return total / (len(values) - 1) / (count / 3)


def batch_spread(values, batch, count):
    """How many twentieths of the source a batch has samples of, by that of a perfect shuffle."""
    parts = 20
    expected = parts * (1 - (1 - 1 / parts) ** batch)
    seen = [len({v * parts // count for v in values[at:at + batch]})
            for at in range(0, len(values) - batch + 1, batch)]
    return sum(seen) / len(seen) / expected if seen else 0.0


def figures(values, batch, count):
    return {'correlation': correlation(values), 'neighbours': neighbours(values, count),
            'batch_spread': batch_spread(values, batch, count),
            'distinct': len(set(values)), 'delivered': len(values), 'of': count}
