# SPDX-License-Identifier: Apache-2.0
"""figures.py - medians, spreads, ratios within rounds, and when a round does not count

Nothing here measures or prints. A ratio is taken within each round, between runs that stood
next to each other, and only then over the rounds: what all runs of a round share cancels out.
"""

# A round is noisy when somebody else had that much of the machine, the hypervisor took that
# much of it, or the same reads ran so much faster or slower at its end than at its beginning.
BUSY_MAX = 0.15
STEAL_MAX = 0.02
DRIFT_MAX = 0.15
# Below that share of good rounds the machine was too noisy to say anything.
GOOD_SHARE_MIN = 0.5


def quantile(values, share):
    """Linear between the two nearest ranks, as most tools have it; None for no values."""
    values = sorted(values)
    if not values:
        return None
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def spread(values):
    """Median, quartiles, count; None for no values."""
    if not values:
        return None
    return {'median': median(values), 'low': quantile(values, 0.25),
            'high': quantile(values, 0.75), 'count': len(values)}


def noise(busy, steal, before=None, after=None):
    """Why a round does not count; empty if it does. Shares of the machine, rates of anchors."""
    reasons = []
    if busy > BUSY_MAX:
        reasons.append(f'others used {busy:.0%} of the machine')
    if steal > STEAL_MAX:
        reasons.append(f'the hypervisor took {steal:.1%}')
    if before and after:
        drift = max(before, after) / min(before, after) - 1
        if drift > DRIFT_MAX:
            reasons.append(f'the device drifted by {drift:.0%}')
    return reasons


def counting_rounds(rounds):
    """The good rounds, or all of them when too few are good: (rounds, whether they are good)."""
    good = [r['round'] for r in rounds if not r['noise']]
    if len(good) >= max(1, GOOD_SHARE_MIN * len(rounds)):
        return good, True
    return [r['round'] for r in rounds], False


def by_round(points, reader, field):
    return {p['round']: p[field] for p in points
            if p['reader'] == reader and p.get(field) is not None and not p.get('invalid')}


def best(points, readers, field, rounds, smallest=False):
    """Of several readers (the variants of one) the name of that with the best median."""
    medians = {}
    for reader in readers:
        values = [v for r, v in by_round(points, reader, field).items() if r in rounds]
        if values:
            medians[reader] = median(values)
    if not medians:
        return None
    return (min if smallest else max)(medians, key=medians.get)


def ratios(points, above, below, field, rounds):
    """Of each round in which both ran: the one's figure by the other's."""
    a, b = by_round(points, above, field), by_round(points, below, field)
    return [a[r] / b[r] for r in rounds if r in a and r in b and b[r]]


def reached(value, floor, aim, at_most=False):
    """'aim', 'floor' or 'missed'; None stays None."""
    if value is None:
        return None
    if at_most:
        value, floor, aim = -value, -floor, -aim
    return 'aim' if value >= aim else 'floor' if value >= floor else 'missed'
