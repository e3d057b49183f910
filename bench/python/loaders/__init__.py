# SPDX-License-Identifier: Apache-2.0
"""Loaders by name: each reads its own form of the same samples, as its documentation shows."""

from . import ours, pipelines, shards, torched

ALL = {kind.name: kind for part in (ours, torched, shards, pipelines) for kind in part.ALL}
